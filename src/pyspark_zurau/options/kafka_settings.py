"""The options that begin with `kafka.`: settings of Kafka's own clients, by their names.

Those that mean something here are obeyed; security among them, as in `zurau.client.security`. Those that would break
what Spark promises are refused. The rest tune Kafka's Java client and have no counterpart here: each is named once, in
a warning, and does nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark_zurau.options.values import Values
from zurau.client.cluster import Cluster, parse_addresses
from zurau.client.consumer import FetchSettings
from zurau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from zurau.client.producer import ACKS_ALL, ProducerSettings
from zurau.client.security import PLAIN_TEXT, Security, is_about_security, parse_security
from zurau.errors import SettingsError
from zurau.records.compression import Compression
from zurau.settings import KIB, MIB

logger = logging.getLogger(__name__)

BOOTSTRAP = "kafka.bootstrap.servers"
NOT_FOR_SOURCES = {
    "kafka.auto.offset.reset": "say where to begin with startingOffsets",
    "kafka.key.deserializer": "keys arrive as bytes; use a cast or a function of Spark on the column",
    "kafka.value.deserializer": "values arrive as bytes; use a cast or a function of Spark on the column",
    "kafka.enable.auto.commit": "Spark keeps the offsets, in the checkpoint",
    "kafka.interceptor.classes": "Java classes cannot be run here",
}
NOT_FOR_SINKS = {
    "kafka.key.serializer": "keys are written as they are; cast the column to string or binary",
    "kafka.value.serializer": "values are written as they are; cast the column to string or binary",
    "kafka.interceptor.classes": "Java classes cannot be run here",
    "kafka.partitioner.class": "a partition column says where a row goes",
    "kafka.transactional.id": "writing in transactions is not there yet; rows are written at least once",
}
_OBEYED = frozenset({"bootstrap.servers", "client.id", "request.timeout.ms"})
OBEYED_BY_SOURCES = _OBEYED | {
    "client.rack",
    "group.id",
    "isolation.level",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
}
OBEYED_BY_SINKS = _OBEYED | {
    "acks",
    "allow.auto.create.topics",
    "batch.size",
    "buffer.memory",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
}
_PREFIX = "kafka."
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Peer:
    """How to reach a cluster. Travels to the tasks, and tells which of them can share a connection."""

    bootstrap: str
    client_id: str
    timeout_s: float
    security: Security = PLAIN_TEXT

    def open(self) -> Cluster:
        """A way to the cluster; nothing is dialled yet."""
        return Cluster(self.bootstrap, client_id=self.client_id, timeout_s=self.timeout_s, security=self.security)


def parse_peer(values: Values, *, client_id: str) -> Peer:
    bootstrap = values.required(BOOTSTRAP, "127.0.0.1:9092")
    try:
        parse_addresses(bootstrap)
    except SettingsError:
        raise SettingsError(f"{BOOTSTRAP}: {bootstrap!r} is not host:port,host:port") from None
    timeout_ms = values.whole_or("kafka.request.timeout.ms", 30_000, at_least=1)
    security = parse_security({name: values.text(_PREFIX + name) or "" for name in _kafka_names(values)})
    return Peer(bootstrap, values.text("kafka.client.id") or client_id, timeout_ms / 1000, security)


def parse_fetch_settings(values: Values) -> FetchSettings:
    refuse(values, NOT_FOR_SOURCES)
    warn_of_ignored(values, OBEYED_BY_SOURCES)
    isolation = values.one_of(
        "kafka.isolation.level", ("read_uncommitted", "read_committed"), default="read_uncommitted"
    )
    return FetchSettings(
        # Tasks ask only for what exists, so there is nothing to wait for.
        max_wait_ms=0,
        max_bytes=values.whole_or("kafka.fetch.max.bytes", 32 * MIB, at_least=1),
        # As Kafka's consumers do. Four times that costs a fifth more CPU: bytes that broker and task have just
        # touched leave the cache before they are touched again.
        partition_max_bytes=values.whole_or("kafka.max.partition.fetch.bytes", 1 * MIB, at_least=1),
        isolation=READ_COMMITTED if isolation == "read_committed" else READ_UNCOMMITTED,
        # Tasks read what was there a moment ago: a topic that no broker knows now was deleted.
        unknown_topic_patience_s=1.0,
        rack=values.text("kafka.client.rack") or "",
    )


def parse_producer_settings(values: Values) -> ProducerSettings:
    refuse(values, NOT_FOR_SINKS)
    warn_of_ignored(values, OBEYED_BY_SINKS)
    acks = values.one_of("kafka.acks", ("all", "-1", "1", "0"), default="all")
    compression = values.one_of(
        "kafka.compression.type", tuple(codec.name.lower() for codec in Compression), default="none"
    )
    return ProducerSettings(
        acks=ACKS_ALL if acks == "all" else int(acks),
        compression=Compression[compression.upper()],
        batch_bytes=values.whole_or("kafka.batch.size", 256 * KIB, at_least=1),
        linger_s=0.0,
        idempotent=values.truth("kafka.enable.idempotence", default=True),
        delivery_timeout_s=values.whole_or("kafka.delivery.timeout.ms", 120_000, at_least=1) / 1000,
        buffer_bytes=values.whole_or("kafka.buffer.memory", 32 * MIB, at_least=1),
        may_create_topics=values.truth("kafka.allow.auto.create.topics", default=True),
    )


def refuse(values: Values, refused: dict[str, str]) -> None:
    for name, advice in refused.items():
        if name in values:
            raise SettingsError(f"the option {name} is not supported: {advice}")


def warn_of_ignored(values: Values, obeyed: frozenset[str]) -> None:
    for name in _kafka_names(values):
        if name not in obeyed and not is_about_security(name) and name not in _warned:
            _warned.add(name)
            logger.warning("the option kafka.%s has no counterpart in this source and does nothing", name)


def _kafka_names(values: Values) -> list[str]:
    return [name.removeprefix(_PREFIX) for name in values.names() if name.startswith(_PREFIX)]
