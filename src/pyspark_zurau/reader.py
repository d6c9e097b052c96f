"""Reading: what a task does with its range, and a batch query around it.

Everything a task needs is in its input partition, because it runs in another process, perhaps on another machine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_zurau.ahead import work_ahead
from pyspark_zurau.decode import ArrowAssembler, check
from pyspark_zurau.errors import DataLost
from pyspark_zurau.kafka_settings import Peer
from pyspark_zurau.options import ReadOptions
from pyspark_zurau.pool import Pool, reach
from pyspark_zurau.ranges import Range, divide
from pyspark_zurau.survey import Survey
from zurau.client.cluster import Cluster
from zurau.client.consumer import AbortedProducers
from zurau.client.errors import BrokerRefused, TimedOut, UnknownTopic
from zurau.client.fetcher import Fetched, Fetcher, FetchSettings
from zurau.client.offsets import start_offsets
from zurau.ids import Offset
from zurau.memory import keep_freed_memory
from zurau.wire.kafka.error_codes import ErrorCode

logger = logging.getLogger(__name__)

#: How long one wait lasts when a broker has nothing to say.
ROUND_S = 1.0
PAUSE_S = 0.01


@dataclass(frozen=True)
class Task(InputPartition):
    """A range and the way to it."""

    peer: Peer
    fetch: FetchSettings
    range: Range
    fail_on_data_loss: bool
    poll_timeout_s: float


def plan(options: ReadOptions, ranges: list[Range]) -> list[Task]:
    divided = divide(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
    return [
        Task(options.peer, options.fetch, part, options.fail_on_data_loss, options.poll_timeout_s) for part in divided
    ]


class BatchReader(DataSourceReader):
    """Offsets are looked up when the query is planned; what is written later is not read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        survey = Survey(self._options)
        try:
            found = survey.all_partitions()
            start = survey.resolve(self._options.starting, found, "startingOffsets")
            end = survey.resolve(self._options.ending, found, "endingOffsets")
        finally:
            survey.close()
        tasks = plan(self._options, [Range(partition, start[partition], end[partition]) for partition in sorted(found)])
        # Spark gives an empty list one partition of None; that is read as nothing.
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._schema)


@dataclass
class Way:
    """A cluster and a fetcher on it, kept between tasks."""

    cluster: Cluster
    fetcher: Fetcher

    def close(self) -> None:
        self.fetcher.close()
        self.cluster.close()


_ways: Pool[Way] = Pool()


def read_task(task: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    if not isinstance(task, Task):
        return
    keep_freed_memory()
    yield from work_ahead(_read_task(task, schema))


def _read_task(task: Task, schema: StructType) -> Iterator[pa.RecordBatch]:
    def make() -> Way:
        cluster = reach(task.peer)
        return Way(cluster, Fetcher(cluster, task.fetch))

    with _ways.borrow((task.peer, task.fetch), make) as way:
        yield from _read_range(task, way, to_arrow_schema(schema, timezone="UTC"))


def _read_range(task: Task, way: Way, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    partition, start, end = task.range
    assembler = ArrowAssembler(schema, partition, start, end)
    expected = start
    for fetched in _fetch(task, way):
        if fetched.offset != expected:  # what lies between is lost
            yield from assembler.skip_to(fetched.offset)
        expected = max(fetched.offset, fetched.batches[-1][0].next_offset)
        aborted = AbortedProducers(fetched.aborted)
        for header, batch in fetched.batches:
            if header.base_offset >= end:
                break
            check(partition, header, batch)
            if not aborted.has(header, batch) and not header.is_control:
                yield from assembler.add(header, batch)
    yield from assembler.finish()


def _fetch(task: Task, way: Way) -> Iterator[Fetched]:
    """What the leader has of the range, piece by piece. The next piece is on its way while the caller uses one."""
    partition, start, end = task.range
    fetcher = way.fetcher
    fetcher.assign({partition: start}, until={partition: end})
    heard_s = time.monotonic()
    while fetcher.positions[partition] < end:
        try:
            pieces = fetcher.poll(ROUND_S)
        except BrokerRefused as error:
            position = fetcher.positions[partition]
            fetcher.assign({partition: _after_loss(task, way.cluster, position, error)}, until={partition: end})
            continue
        pieces = [piece for piece in pieces if piece.batches]
        if pieces:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > task.poll_timeout_s:
            raise TimedOut(
                f"{partition}: no record at or after offset {fetcher.positions[partition]} came within"
                f" {task.poll_timeout_s:g} s; is its leader well? kafkaConsumer.pollTimeoutMs gives more time"
            )
        else:
            time.sleep(PAUSE_S)
        yield from pieces


def _after_loss(task: Task, cluster: Cluster, position: Offset, error: BrokerRefused) -> Offset:
    """Where to go on when the leader does not have what was planned; the end of the range when nothing is left."""
    partition, _, end = task.range
    if error.code not in {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        raise error
    if task.fail_on_data_loss:
        raise DataLost(f"{partition}, offsets {position} to {end - 1}: {error}") from error
    if isinstance(error, UnknownTopic):
        resumed = end
    else:
        first = start_offsets(cluster, [partition])[partition]
        resumed = min(first, end) if first > position else end
    logger.warning("%s: offsets %d to %d are gone and are left out: %s", partition, position, resumed - 1, error)
    return resumed
