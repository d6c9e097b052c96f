"""How a client and a broker come to trust each other, said in the settings of Kafka's own clients.

`security.protocol` says whether a connection is encrypted (SSL) and whether the client logs in (SASL). Certificates and
keys are PEM, as files or as text; Java's own stores are refused with the command that turns them into PEM. The names
that librdkafka has for the same things are understood too.

What is asked for and cannot be done is refused: nothing goes out in the clear that should not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from zurau.errors import SettingsError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: The mechanisms that are known, and the class of Java's that a `sasl.jaas.config` names for each.
MECHANISMS = {"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}

#: librdkafka's names, and Java's.
ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
NAMES = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        *ALIASES,
    }
)
_CONVERT = {
    "truststore": "keytool -list -rfc -keystore {path} > {stem}.pem",
    "keystore": (
        "keytool -importkeystore -srckeystore {path} -destkeystore {stem}.p12 -deststoretype PKCS12"
        " && openssl pkcs12 -in {stem}.p12 -out {stem}.pem -noenc"
    ),
}
_JAAS = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r'([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s;"\']+)')


@dataclass(frozen=True, slots=True)
class Tls:
    """Texts and files are PEM. Without trusted certificates those of the system count."""

    trusted_file: str | None = None
    trusted_pem: str | None = None
    #: Who we are, for brokers that ask: certificates, and a key that may be in the same file.
    own_file: str | None = None
    own_pem: str | None = field(default=None, repr=False)
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_host_name: bool = True


@dataclass(frozen=True, slots=True)
class Login:
    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """No `tls`: in the clear. No `login`: nobody asks who we are, or the certificate tells."""

    tls: Tls | None = None
    login: Login | None = None


PLAIN_TEXT = Security()


def parse_security(properties: Mapping[str, str]) -> Security:
    """From settings by their names; those that have nothing to do with security are passed over."""
    given = {ALIASES.get(name, name): value for name, value in properties.items() if is_about_security(name)}
    unknown = sorted(name for name in given if name not in NAMES)
    if unknown:
        raise SettingsError(f"{', '.join(unknown)} cannot be obeyed here, and is not ignored; leave it out")
    protocol = given.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SettingsError(f"security.protocol: {protocol!r} is not one of {', '.join(PROTOCOLS)}")
    uses_tls, logs_in = protocol.endswith("SSL"), protocol.startswith("SASL")
    _refuse_unused(given, protocol, "ssl.", "SSL or SASL_SSL", is_used=uses_tls)
    _refuse_unused(given, protocol, "sasl.", "SASL_SSL", is_used=logs_in)
    return Security(_parse_tls(given) if uses_tls else None, _parse_login(given) if logs_in else None)


def is_about_security(name: str) -> bool:
    return name == "security.protocol" or name.startswith(("ssl.", "sasl."))


def _refuse_unused(given: Mapping[str, str], protocol: str, prefix: str, advice: str, *, is_used: bool) -> None:
    unused = sorted(name for name in given if name.startswith(prefix))
    if unused and not is_used:
        raise SettingsError(
            f"{', '.join(unused)} would do nothing, because security.protocol is {protocol}; set it to {advice},"
            " or leave these settings out"
        )


def _parse_tls(given: Mapping[str, str]) -> Tls:
    for store in ("truststore", "keystore"):
        kind = given.get(f"ssl.{store}.type", "PEM").strip().upper()
        if kind != "PEM":
            raise not_pem(store, given.get(f"ssl.{store}.location", f"{store}.jks"), kind)
    chain, key = given.get("ssl.keystore.certificate.chain"), given.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise SettingsError("ssl.keystore.certificate.chain and ssl.keystore.key belong together; give both")
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", "", "none"}:
        raise SettingsError(f"ssl.endpoint.identification.algorithm: {algorithm!r} is neither https nor empty")
    return Tls(
        trusted_file=given.get("ssl.truststore.location"),
        trusted_pem=given.get("ssl.truststore.certificates"),
        own_file=given.get("ssl.keystore.location"),
        own_pem=None if chain is None else f"{key}\n{chain}\n",
        key_file=given.get("ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        checks_host_name=algorithm == "https",
    )


def not_pem(store: str, path: str, kind: str) -> SettingsError:
    command = _CONVERT[store].format(path=path, stem=path.rpartition(".")[0] or path)
    return SettingsError(
        f"ssl.{store}: {path} is {kind}, and only PEM can be read here; turn it into PEM with `{command}`, then set"
        f" ssl.{store}.location to that file and ssl.{store}.type to PEM"
    )


def _parse_login(given: Mapping[str, str]) -> Login:
    mechanism = given.get("sasl.mechanism", "").strip().upper()
    if mechanism not in MECHANISMS:
        wrong = f"{mechanism!r} is not known here" if mechanism else "it is missing"
        raise SettingsError(f"sasl.mechanism: {wrong}; use one of {', '.join(MECHANISMS)}")
    if "sasl.jaas.config" in given:
        username, password = _parse_jaas(given["sasl.jaas.config"], mechanism)
    else:
        username, password = given.get("sasl.username"), given.get("sasl.password")
    if not username or password is None:
        raise SettingsError(
            f"{mechanism} needs a name and a password; give them as sasl.username and sasl.password, or as"
            f" sasl.jaas.config={_example(mechanism)}"
        )
    return Login(mechanism, username, password)


def _parse_jaas(text: str, mechanism: str) -> tuple[str | None, str | None]:
    """The one line of Java's that names a class and its options. Its text may hold a password, so it is not shown."""
    found = _JAAS.fullmatch(text)
    if found is None:
        raise SettingsError(f"sasl.jaas.config cannot be read; it must be like {_example(mechanism)}")
    if found.group(1).rpartition(".")[2] != MECHANISMS[mechanism]:
        raise SettingsError(f"sasl.jaas.config: {found.group(1)} does not fit {mechanism}; use {_example(mechanism)}")
    options = {name: _unquote(value) for name, value in _JAAS_OPTION.findall(found.group(2))}
    return options.get("username"), options.get("password")


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value


def _example(mechanism: str) -> str:
    module = MECHANISMS[mechanism]
    package = f"org.apache.kafka.common.security.{'plain' if mechanism == 'PLAIN' else 'scram'}"
    return f'{package}.{module} required username="NAME" password="PASSWORD";'
