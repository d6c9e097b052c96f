"""The options that begin with `kafka.`: settings of Kafka's own clients, by their names.

Those that mean something here are obeyed. Those that would break what Spark promises are refused, as are those that ask
for what is not there yet: a connection that should be encrypted is never made in the clear. The rest tune Kafka's Java
client, have no counterpart here, and are left alone, as Kafka itself does with settings it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_zurau.values import Values
from zurau.client.cluster import parse_addresses
from zurau.client.courier import ACKS_ALL, ProducerSettings
from zurau.client.fetcher import FetchSettings
from zurau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from zurau.errors import SettingsError
from zurau.records.compression import Compression
from zurau.settings import KIB, MIB

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
_SECURITY = ("kafka.ssl.", "kafka.sasl.")


@dataclass(frozen=True, slots=True)
class Peer:
    """How to reach a cluster. Travels to the tasks, and tells which of them can share a connection."""

    bootstrap: str
    client_id: str
    timeout_s: float


def parse_peer(values: Values, *, client_id: str) -> Peer:
    bootstrap = values.required(BOOTSTRAP, "127.0.0.1:9092")
    try:
        parse_addresses(bootstrap)
    except SettingsError:
        raise SettingsError(f"{BOOTSTRAP}: {bootstrap!r} is not host:port,host:port") from None
    _refuse_security(values)
    timeout_ms = values.whole_or("kafka.request.timeout.ms", 30_000, at_least=1)
    return Peer(bootstrap, values.text("kafka.client.id") or client_id, timeout_ms / 1000)


def parse_fetch_settings(values: Values) -> FetchSettings:
    refuse(values, NOT_FOR_SOURCES)
    isolation = values.one_of(
        "kafka.isolation.level", ("read_uncommitted", "read_committed"), default="read_uncommitted"
    )
    return FetchSettings(
        # Tasks ask only for what exists, so there is nothing to wait for.
        max_wait_ms=0,
        max_bytes=values.whole_or("kafka.fetch.max.bytes", 32 * MIB, at_least=1),
        partition_max_bytes=values.whole_or("kafka.max.partition.fetch.bytes", 4 * MIB, at_least=1),
        isolation=READ_COMMITTED if isolation == "read_committed" else READ_UNCOMMITTED,
        # Tasks read what was there a moment ago: a topic that no broker knows now was deleted.
        unknown_topic_patience_s=1.0,
    )


def parse_producer_settings(values: Values) -> ProducerSettings:
    refuse(values, NOT_FOR_SINKS)
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


def _refuse_security(values: Values) -> None:
    protocol = (values.text("kafka.security.protocol") or "PLAINTEXT").strip().upper()
    asked = [name for name in values.names() if name.startswith(_SECURITY)]
    if protocol != "PLAINTEXT":
        asked.insert(0, f"kafka.security.protocol={protocol}")
    if asked:
        raise SettingsError(
            f"{', '.join(asked)}: TLS and SASL are not there yet, and nothing is sent in the clear that should not be;"
            " use a PLAINTEXT listener of the cluster, and leave these options out"
        )
