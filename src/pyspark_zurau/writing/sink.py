"""Writing: a task packs its rows into batches, sends them to the leaders, and is done when all are acknowledged.

At least once: Spark runs a failed task again, and what it had written by then is written again. A row goes to the
partition in its `partition` column; else the hash of its key decides, as in Java's default partitioner; rows without a
key stay together, one Arrow batch at a time, and move on to the next partition.

Spark's own sink does not look at a `timestamp` column, so neither does this one, unless it is asked to keep it: then a
copy of a topic is a copy in that too.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_zurau.arrow.columns import HEADER_TYPE
from pyspark_zurau.arrow.encode import by_topic, pack
from pyspark_zurau.options.kafka_settings import Peer, parse_peer, parse_producer_settings
from pyspark_zurau.options.values import Values
from pyspark_zurau.worker.collector import freeze_imports
from pyspark_zurau.worker.plain_errors import told_plainly
from pyspark_zurau.worker.pool import Pool, reach
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer, ProducerSettings
from zurau.errors import SettingsError
from zurau.ids import TopicPartition

TEXT_OR_BYTES = ("string", "binary")
TYPES: dict[str, tuple[str, ...]] = {
    "key": TEXT_OR_BYTES,
    "value": TEXT_OR_BYTES,
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADER_TYPE.simpleString(),),
}
KEEP_TIMESTAMPS = "includeTimestamp"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    peer: Peer
    producer: ProducerSettings
    #: For all rows, whatever their topic column says.
    topic: str | None
    #: Records are as old as their timestamp column says, and not of the moment in which they are written.
    keeps_timestamps: bool = False


def parse_write_options(values: Values, schema: StructType, *, overwrite: bool) -> WriteOptions:
    if overwrite:
        raise SettingsError('a topic cannot be overwritten, only added to; use .mode("append")')
    _check_schema(schema)
    topic = (values.text("topic") or "").strip() or None
    if topic is None and "topic" not in schema.names:
        raise SettingsError("which topic to write to is not said; set the option topic, or add a column topic")
    return WriteOptions(
        peer=parse_peer(values, client_id="spark-zurau-sink"),
        producer=parse_producer_settings(values),
        topic=topic,
        keeps_timestamps=_keeps_timestamps(values, schema),
    )


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Nothing to do: every task has waited for its acknowledgements."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing can be taken back from a log."""


@dataclass
class WriteSession:
    """A cluster and a producer on it, kept between tasks."""

    cluster: Cluster
    producer: Producer

    def close(self) -> None:
        # Only closed after a failure, when waiting for acknowledgements makes no sense any more.
        self.producer.abandon()
        self.cluster.close()


_sessions: Pool[WriteSession] = Pool()


@told_plainly
def write_rows(options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    def make() -> WriteSession:
        cluster = reach(options.peer)
        return WriteSession(cluster, Producer(cluster, options.producer))

    freeze_imports()
    with _sessions.borrow((options.peer, options.producer), make) as outlet:
        producer = outlet.producer
        counts: dict[str, int] = {}
        # Tasks begin anywhere, so that they do not all fill the first partition.
        turns = itertools.count(random.SystemRandom().randrange(1 << 16))
        for rows in batches:
            for topic, its_rows in by_topic(rows, options.topic):
                count = counts.get(topic)
                if count is None:
                    count = counts[topic] = producer.partition_count(topic)
                for partition, record_count, payload, timestamps_ms in pack(
                    topic,
                    its_rows,
                    partition_count=count,
                    fallback=next(turns) % count,
                    limit_bytes=options.producer.batch_bytes,
                    now_ms=int(time.time() * 1000),
                    keeps_timestamps=options.keeps_timestamps,
                ):
                    producer.send_packed(TopicPartition(topic, partition), payload, record_count, timestamps_ms)
        producer.flush()
    return WriterCommitMessage()


def _keeps_timestamps(values: Values, schema: StructType) -> bool:
    wanted = values.truth(KEEP_TIMESTAMPS, default=False)
    if wanted and ("timestamp" not in schema.names or schema["timestamp"].dataType.simpleString() != "timestamp"):
        raise SettingsError(f"{KEEP_TIMESTAMPS} needs a column timestamp of the type timestamp")
    return wanted


def _check_schema(schema: StructType) -> None:
    if "value" not in schema.names:
        raise SettingsError(
            f"there is no column value to write (only {', '.join(schema.names)}); make one, for example with"
            " to_json(struct('*')) AS value"
        )
    for field in schema.fields:
        kinds = TYPES.get(field.name)
        if kinds is not None and field.dataType.simpleString() not in kinds:
            raise SettingsError(
                f"the column {field.name} is {field.dataType.simpleString()}; it must be {' or '.join(kinds)}"
            )
