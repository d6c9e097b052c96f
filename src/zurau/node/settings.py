"""Where settings come from: flags, then environment variables, then a TOML file, then defaults.

A setting has one name everywhere: `retention_ms` is `--retention-ms`, `ZURAU_RETENTION_MS` and `retention_ms = ...` in
the file. Kafka's own names (`log.retention.ms`) are understood in the file too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from zurau.broker.settings import BrokerSettings
from zurau.errors import SettingsError
from zurau.ids import Address
from zurau.log.settings import LogSettings
from zurau.machines.groups.settings import GroupSettings
from zurau.settings import INT32_MAX, KIB, MIB, Setting, did_you_mean, setting, settings_of

ENVIRONMENT_PREFIX = "ZURAU_"
#: Kafka's word for its protocol in the clear, and the name of a listener that speaks it.
PLAINTEXT = "PLAINTEXT"
#: The name of the listener for HTTP.
HTTP = "HTTP"
#: Where brokers listen for each other, unless they are told otherwise.
PEER_PORT = 9192


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What may differ from one broker of a cluster to the next."""

    dir: str = setting("zurau-data", "log.dirs", doc="Directory for everything that is stored. Made if absent.")
    kafka: str = setting(
        "127.0.0.1:9092",
        "listeners",
        doc="HOST:PORT to listen on for Kafka clients; PLAINTEXT://HOST:PORT is the same. Port 0 takes a free one.",
    )
    http: str = setting(
        "",
        "zurau.http.listener",
        doc="HOST:PORT to listen on for HTTP clients. Port 0 takes a free one. Empty: nowhere.",
    )
    http_names: tuple[str, ...] = setting(
        (),
        "zurau.http.names",
        doc="Names by which HTTP clients may call this broker, besides addresses, localhost and names without a dot: "
        "a page in a browser must not get at it under a name of its own. *: any.",
    )
    http_body_max_bytes: int = setting(
        2 * MIB,
        "zurau.http.body.max.bytes",
        at_least=KIB,
        at_most=16 * MIB,
        doc="Largest body of an HTTP request.",
    )
    advertise: str = setting(
        "",
        "advertised.listeners",
        doc="HOST:PORT that clients are told to connect to. Empty: the address at which they arrived.",
    )
    peer: str = setting(
        "",
        "zurau.peer.listener",
        doc="HOST:PORT to listen on for other brokers of the cluster; clients do not use it. Empty: with --join, the "
        "host of --kafka and port 9192; without, nobody is let in.",
    )
    advertise_peer: str = setting(
        "",
        "zurau.advertised.peer.listener",
        doc="HOST:PORT at which other brokers find this one. Empty: as the list of --join names it, or as they see it.",
    )
    join: tuple[str, ...] = setting(
        (),
        "zurau.join",
        doc="HOST or HOST:PORT of the peer listeners of the cluster's brokers, this one's too, the same list "
        "everywhere. An empty directory joins the cluster that any of them is in; when all answer and none is in one, "
        "the first forms it. A broker that is not in the list joins. Empty: a cluster of one.",
    )
    node_id: int = setting(
        -1,
        "node.id",
        at_least=-1,
        at_most=INT32_MAX,
        doc="This broker's number in the cluster, at its first start. -1: 1 alone, or what the cluster gives it.",
    )
    ready_fd: int = setting(
        -1, "zurau.ready.fd", at_least=-1, doc="File descriptor that gets the ready line, for programs. -1: none."
    )
    lifeline_fd: int = setting(
        -1,
        "zurau.lifeline.fd",
        at_least=-1,
        doc="File descriptor of a pipe whose other end the program holds that started this broker: when that program "
        "ends, in whatever way, the broker stops. -1: none.",
    )
    log_level: str = setting(
        "info", "zurau.log.level", choices=("debug", "info", "warning", "error"), doc="How much to tell on stderr."
    )


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """One door of this broker: all that is to be known of it in one place."""

    #: What clients that came in here are told by: brokers name each other's addresses by listener.
    name: str
    #: Where it listens; port 0 takes a free one.
    address: Address
    #: What is told to clients instead, if anything.
    advertise: Address | None
    #: What to name when something is wrong with it.
    flag: str


def listeners_of(settings: NodeSettings) -> tuple[ListenerSettings, ...]:
    """Kafka's is the first."""
    advertise = parse_address(settings.advertise, "--advertise") if settings.advertise else None
    kafka = ListenerSettings(PLAINTEXT, parse_address(settings.kafka, "--kafka"), advertise, "--kafka")
    if not settings.http:
        return (kafka,)
    return (kafka, ListenerSettings(HTTP, parse_address(settings.http, "--http"), None, "--http"))


def parse_address(text: str, flag: str) -> Address:
    """HOST:PORT, with IPv6 hosts in brackets, or the same as Kafka writes it: PLAINTEXT://HOST:PORT."""
    if "," in text:
        raise SettingsError(f"{flag} {text!r} names several addresses; a broker has one, for example 127.0.0.1:9092")
    protocol, has_protocol, address = text.rpartition("://")
    if has_protocol and protocol.upper() != PLAINTEXT:
        raise SettingsError(f"{flag} {text!r} asks for {protocol}, which is not served yet; use PLAINTEXT://{address}")
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{flag} {text!r} is not HOST:PORT; for example 127.0.0.1:9092")
    return Address(host or "0.0.0.0", int(port))  # noqa: S104 - ":9092" means every address, as everywhere


def parse_join(parts: Sequence[str]) -> tuple[Address, ...]:
    """Where other brokers listen for brokers; the port may be left out."""
    found = tuple(parse_address(part if _has_port(part) else f"{part}:{PEER_PORT}", "--join") for part in parts)
    twice = [str(address) for address in found if found.count(address) > 1]
    if twice:
        raise SettingsError(f"--join names {twice[0]} twice; every broker has an address of its own")
    return found


def _has_port(part: str) -> bool:
    return ":" in part.rpartition("]")[2]


def peer_address_of(settings: NodeSettings) -> Address | None:
    """Where to listen for other brokers; None: nowhere."""
    if settings.peer:
        return parse_address(settings.peer, "--peer")
    return Address(parse_address(settings.kafka, "--kafka").host, PEER_PORT) if settings.join else None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a broker process can be told."""

    node: NodeSettings = field(default_factory=NodeSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    log: LogSettings = field(default_factory=LogSettings)
    groups: GroupSettings = field(default_factory=GroupSettings)


def all_settings() -> Iterator[tuple[str, Setting]]:
    """Every setting, with the part of `Settings` it belongs to."""
    for part in dataclasses.fields(Settings):
        for declared in settings_of(type(getattr(Settings(), part.name))).values():
            yield part.name, declared


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Settings from all sources. Values may be text or, from flags and TOML, already typed."""
    given: dict[str, _Given] = {}
    if file is not None:
        given |= _from_file(file)
    given |= _from_environment(environment or {})
    given |= _from_flags(flags or {})
    return _apply(given)


class _Given(NamedTuple):
    """A value, and where somebody wrote it."""

    value: Any
    source: str


def _from_flags(flags: Mapping[str, Any]) -> dict[str, _Given]:
    return {name: _Given(value, f"--{name.replace('_', '-')}") for name, value in flags.items() if value is not None}


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    """Variables of ours that name a setting. Others are not all mistakes (`ZURAU_BOOTSTRAP` is the clients')."""
    known = {declared.name for _, declared in all_settings()}
    given = {}
    for variable, text in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if name in known:
            given[name] = _Given(text, f"the environment variable {variable}")
        elif hint := did_you_mean(name, known):
            raise SettingsError(f"there is no setting for the environment variable {variable}{hint}")
    return given


def _from_file(file: Path) -> dict[str, _Given]:
    import tomllib  # not at the top: most brokers start without a file, and sooner without this

    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}; check the path given by --config") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    names: dict[str, str] = {}
    for _, declared in all_settings():
        names |= dict.fromkeys((declared.kafka_name, declared.broker_name, declared.name), declared.name)
    given = {}
    for name, value in content.items():
        if name not in names:
            raise SettingsError(f"{file}: there is no setting {name!r}{did_you_mean(name, names)}")
        given[names[name]] = _Given(value, str(file))
    return given


def _apply(given: Mapping[str, _Given]) -> Settings:
    changes: dict[str, dict[str, Any]] = {}
    names = {}
    for part, declared in all_settings():
        names[declared.name] = declared
        if declared.name in given:
            changes.setdefault(part, {})[declared.name] = _parse(declared, given[declared.name])
    for name in given:
        if name not in names:
            raise SettingsError(f"there is no setting {name!r}{did_you_mean(name, names)}")
    base = Settings()
    return dataclasses.replace(
        base, **{part: dataclasses.replace(getattr(base, part), **values) for part, values in changes.items()}
    )


def _parse(declared: Setting, given: _Given) -> Any:
    try:
        return declared.parse(declared.text(given.value))
    except SettingsError as error:
        raise SettingsError(f"{error} (it comes from {given.source})") from error
