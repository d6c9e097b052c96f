"""Logging in: a conversation whose steps the mechanism prescribes, carried in Kafka's own requests.

PLAIN shows the password, so it belongs inside TLS. SCRAM (RFC 5802, with SHA-256 or SHA-512) shows only that both sides
know it: each signs what was said so far with a key made from the password, and the broker has to prove itself as well.
As in Kafka, names and passwords are taken as they are, without the preparation of RFC 4013.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Protocol

from zurau.client.errors import NotTrusted
from zurau.client.security.settings import Login
from zurau.ids import Address
from zurau.wire.kafka.messages.sasl_authenticate import SaslAuthenticateRequest
from zurau.wire.kafka.messages.sasl_handshake import SaslHandshakeRequest
from zurau.wire.kafka.schema import R, Request


class Ask(Protocol):
    """Sends a request and waits for its answer."""

    def __call__(self, message: Request[R], /) -> R: ...


#: What the client says next; it is sent what the broker answered.
Conversation = Generator[bytes, bytes, None]

#: Fewer make guessing cheap; more than the largest keep us busy for no good reason.
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 1 << 22


def log_in(ask: Ask, login: Login, address: Address) -> None:
    """Prove who we are. Raises `NotTrusted` when the broker does not believe it, or cannot prove itself."""
    offer = ask(SaslHandshakeRequest(mechanism=login.mechanism))
    if offer.error_code:
        offered = f"offers {', '.join(offer.mechanisms)}" if offer.mechanisms else "does not let anybody log in there"
        raise NotTrusted(f"{address} does not take {login.mechanism}: it {offered}; see sasl.mechanism")
    talk = _plain(login) if login.mechanism == "PLAIN" else scram(login, secrets.token_urlsafe(24))
    try:
        words = next(talk)
        while True:
            answer = ask(SaslAuthenticateRequest(auth_bytes=words))
            if answer.error_code:
                reason = answer.error_message or "name or password is wrong"
                raise NotTrusted(f"{address} did not let {login.username!r} in: {reason}")
            words = talk.send(answer.auth_bytes)
    except StopIteration:
        return
    except ValueError as error:
        raise NotTrusted(f"{address} answered the login of {login.username!r} wrongly: {error}") from error


def _plain(login: Login) -> Conversation:
    yield f"\0{login.username}\0{login.password}".encode()


def scram(login: Login, nonce: str) -> Conversation:
    """Raises `ValueError` when the broker says what no broker that knows the password would say."""
    algorithm = login.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    fields = _fields(challenge)
    combined, iterations = fields.get("r", ""), int(fields.get("i", "0"))
    if not combined.startswith(nonce) or len(combined) == len(nonce):
        raise ValueError("its nonce does not continue ours")
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"{iterations} iterations; it should be {ITERATIONS_MIN} or some more")
    salted = hashlib.pbkdf2_hmac(
        algorithm, login.password.encode(), base64.b64decode(fields.get("s", ""), validate=True), iterations
    )
    last = f"c=biws,r={combined}"
    said = f"{first},{challenge},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), said, algorithm)
    proof = bytes(ours ^ theirs for ours, theirs in zip(client_key, signature, strict=True))
    verdict = _fields((yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode())
    if "e" in verdict:
        raise ValueError(verdict["e"])
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), said, algorithm)
    if not hmac.compare_digest(base64.b64decode(verdict.get("v", ""), validate=True), expected):
        raise ValueError("it does not know the password itself")


def _fields(message: str) -> dict[str, str]:
    """`r=...,s=...,i=...`; a field that is not so makes the message useless."""
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}
