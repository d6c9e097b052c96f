"""What settings of Kafka's clients say about trust."""

from __future__ import annotations

import pytest

from zurau.client.security import PLAIN_TEXT, Login, Security, Tls, parse_security
from zurau.errors import SettingsError

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}


def test_nothing_said_is_in_the_clear():
    assert parse_security({"bootstrap.servers": "x", "linger.ms": "5"}) == PLAIN_TEXT
    assert parse_security({"security.protocol": "plaintext"}) == PLAIN_TEXT


@pytest.mark.parametrize(
    "jaas",
    [
        f'{SCRAM} required username="alice" password="it\'s \\"secret\\"";',
        f"  {SCRAM}\n  required\n  username=alice\n  password='it\\'s \"secret\"' tokenauth=false ; ",
    ],
)
def test_a_line_of_jaas_is_read(jaas):
    found = parse_security({**LOGIN, "sasl.jaas.config": jaas})
    assert found == Security(login=Login("SCRAM-SHA-512", "alice", 'it\'s "secret"'))


def test_name_and_password_may_be_given_as_in_librdkafka():
    given = {"security.protocol": "sasl_ssl", "sasl.mechanisms": "PLAIN", "sasl.username": "a", "sasl.password": "b"}
    assert parse_security(given | {"ssl.ca.location": "ca.pem"}) == Security(Tls("ca.pem"), Login("PLAIN", "a", "b"))


def test_certificates_are_files_or_texts():
    files = {"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM", "ssl.keystore.location": "own.pem"}
    assert parse_security({"security.protocol": "SSL", **files}).tls == Tls("ca.pem", own_file="own.pem")
    texts = {"ssl.truststore.certificates": "CA", "ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K"}
    assert parse_security({"security.protocol": "SSL", **texts}).tls == Tls(trusted_pem="CA", own_pem="K\nC\n")


def test_host_names_are_checked_unless_that_is_turned_off():
    name = "ssl.endpoint.identification.algorithm"
    assert parse_security({"security.protocol": "SSL"}).tls == Tls(checks_host_name=True)
    assert parse_security({"security.protocol": "SSL", name: ""}).tls == Tls(checks_host_name=False)


def test_secrets_are_not_shown():
    found = parse_security(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "a",
            "sasl.password": "hush",
            "ssl.keystore.key": "hush",
            "ssl.keystore.certificate.chain": "c",
            "ssl.key.password": "hush",
        }
    )
    assert "hush" not in repr(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"security.protocol": "TLS"}, "is not one of PLAINTEXT, SSL"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism would do nothing, because security.protocol is PLAINTEXT"),
        ({**LOGIN, "ssl.ca.location": "x"}, "ssl.truststore.location would do nothing"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism: it is missing; use one of PLAIN"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "'GSSAPI' is not known here"),
        (LOGIN, "SCRAM-SHA-512 needs a name and a password"),
        ({**LOGIN, "sasl.jaas.config": "nonsense"}, "sasl.jaas.config cannot be read; it must be like org.apache"),
        ({**LOGIN, "sasl.jaas.config": 'x.PlainLoginModule required username="a";'}, "does not fit SCRAM-SHA-512"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "x"}, "ssl.cipher.suites cannot be obeyed"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x"}, "belong together"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "x"}, "neither https nor empty"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "a/t.jks", "ssl.truststore.type": "JKS"},
            r"a/t.jks is JKS.*`keytool -list -rfc -keystore a/t.jks > a/t.pem`",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "k.p12", "ssl.keystore.type": "PKCS12"},
            r"k.p12 is PKCS12.*openssl pkcs12 -in k.p12 -out k.pem",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_advice(given, message):
    with pytest.raises(SettingsError, match=message):
        parse_security(given)
