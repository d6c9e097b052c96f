"""TLS around a connection: whom we trust, who we are, and what to say when one side does not trust the other."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

from zurau.client.errors import ConnectionLost, NotTrusted
from zurau.client.security.settings import Tls, not_pem
from zurau.errors import SettingsError
from zurau.ids import Address

_PEM = b"-----BEGIN "


def secure(plain: socket.socket, tls: Tls, address: Address) -> ssl.SSLSocket:
    """The same connection, encrypted."""
    try:
        return _context(tls).wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise NotTrusted(
            f"{address} is not trusted: {error.verify_message}; name the certificate that vouches for it with"
            " ssl.truststore.location (PEM)"
        ) from error
    except ssl.SSLError as error:
        raise no_agreement(error, address) from error
    except OSError as error:
        raise ConnectionLost(f"lost the connection to {address}: {error.strerror or error}") from error


def no_agreement(error: ssl.SSLError, address: Address) -> NotTrusted:
    return NotTrusted(
        f"{address} and this client could not agree on TLS: {error.reason or error}; does that port speak TLS, and does"
        " it ask for a certificate (ssl.keystore.location)?"
    )


@lru_cache(maxsize=16)
def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.checks_host_name
    if tls.trusted_file is None and tls.trusted_pem is None:
        context.load_default_certs()
    try:
        if tls.trusted_file is not None:
            context.load_verify_locations(cafile=_checked(tls.trusted_file, "truststore"))
        if tls.trusted_pem is not None:
            context.load_verify_locations(cadata=tls.trusted_pem)
        if tls.own_file is not None:
            _load_own(context, tls, _checked(tls.own_file, "keystore"))
        elif tls.own_pem is not None:
            _load_own_text(context, tls, tls.own_pem)
    except ssl.SSLError as error:
        raise SettingsError(
            f"a certificate or key cannot be read: {error.reason or error}; they must be PEM, and an encrypted key"
            " needs ssl.key.password"
        ) from error
    return context


def _load_own(context: ssl.SSLContext, tls: Tls, path: str) -> None:
    # Without a password OpenSSL would ask for one on the terminal.
    context.load_cert_chain(path, tls.key_file, tls.key_password or "")


def _load_own_text(context: ssl.SSLContext, tls: Tls, text: str) -> None:
    """Python takes keys only from files, so there is one for a moment, which nobody else can read."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        _load_own(context, tls, path)
    finally:
        Path(path).unlink()


def _checked(path: str, store: str) -> str:
    """The path, if a PEM file is there. Kafka calls its stores JKS unless told otherwise, and many are."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(1 << 20)
    except OSError as error:
        raise SettingsError(f"ssl.{store}.location: {path}: {error.strerror}") from error
    if _PEM not in content:
        raise not_pem(store, path, "not PEM")
    return path
