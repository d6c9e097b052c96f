"""Certificates for tests, made with openssl: one authority, a broker for 127.0.0.1 and a client that it vouches for."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")


class Unavailable(Exception):
    """There is no openssl on this machine."""


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files; those of broker and client hold their key and their certificate."""

    authority: Path
    broker: Path
    client: Path


def make_certificates(directory: Path) -> Certificates:
    if shutil.which("openssl") is None:
        raise Unavailable("openssl is not on the PATH")
    authority = directory / "authority.pem"
    _openssl("req", "-x509", *_KEY, "-keyout", f"{authority}.key", "-out", str(authority), "-subj", "/CN=authority")
    return Certificates(authority, _signed(directory, "broker", authority), _signed(directory, "client", authority))


def _signed(directory: Path, name: str, authority: Path) -> Path:
    key, request, certificate = (directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
    names = ("-addext", "subjectAltName=IP:127.0.0.1")
    _openssl("req", *_KEY, "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}", *names)
    signing = ("-CA", str(authority), "-CAkey", f"{authority}.key", "-CAcreateserial", "-copy_extensions", "copy")
    _openssl("x509", "-req", "-in", str(request), "-out", str(certificate), *signing)
    both = directory / f"{name}.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
