"""How a client and a broker come to trust each other: settings, TLS, logging in."""

from __future__ import annotations

from zurau.client.security.properties import parse_properties, read_properties
from zurau.client.security.settings import PLAIN_TEXT, Login, Security, Tls, is_about_security, parse_security

__all__ = [
    "PLAIN_TEXT",
    "Login",
    "Security",
    "Tls",
    "is_about_security",
    "parse_properties",
    "parse_security",
    "read_properties",
]
