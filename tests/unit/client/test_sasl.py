"""Logging in with SCRAM, against the example of RFC 7677 and against brokers that are not what they say."""

from __future__ import annotations

import pytest

from zurau.client.security import Login
from zurau.client.security.sasl import scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def talk_to(challenge: str, username: str = "user"):
    """A conversation after the broker's first answer, and what the client said before and after it."""
    talk = scram(Login("SCRAM-SHA-256", username, "pencil"), NONCE)
    return talk, next(talk), talk.send(challenge.encode())


def test_the_example_of_the_rfc():
    talk, first, last = talk_to(CHALLENGE)
    assert first == f"n,,n=user,r={NONCE}".encode()
    assert last == (
        f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    with pytest.raises(StopIteration):
        talk.send(VERDICT)


def test_commas_and_equal_signs_in_names_are_escaped():
    assert talk_to(CHALLENGE, "a=b,c")[1] == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (CHALLENGE.replace(NONCE, "another"), "nonce"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (CHALLENGE.replace("4096", "1"), "1 iterations"),
        (CHALLENGE.replace("4096", "9999999999"), "iterations"),
        (CHALLENGE.replace("4096", "x"), "invalid literal"),
        (CHALLENGE.replace("W22Z", "!!!!"), "base64"),
        ("nonsense", "nonce"),
    ],
)
def test_a_challenge_that_makes_no_sense_is_refused(challenge, message):
    with pytest.raises(ValueError, match=f"(?i){message}"):
        talk_to(challenge)


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (VERDICT.replace(b"6rri", b"AAAA"), "does not know the password"),
        (b"", "does not know the password"),
        (b"e=unknown-user", "unknown-user"),
    ],
)
def test_a_broker_has_to_prove_that_it_knows_the_password(verdict, message):
    talk, _, _ = talk_to(CHALLENGE)
    with pytest.raises(ValueError, match=message):
        talk.send(verdict)
