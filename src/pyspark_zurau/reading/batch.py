"""Reading: what a task does with its range, and a batch query around it.

Everything a task needs is in its input partition, because it runs in another process, perhaps on another machine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_zurau.arrow.decode import ArrowAssembler, check
from pyspark_zurau.history import open_history
from pyspark_zurau.options.kafka_settings import Peer
from pyspark_zurau.options.read_options import ReadOptions
from pyspark_zurau.reading.errors import DataLost
from pyspark_zurau.reading.offset_reader import OffsetReader
from pyspark_zurau.reading.prefetch import prefetch
from pyspark_zurau.reading.ranges import Range, divide
from pyspark_zurau.worker.collector import freeze_imports
from pyspark_zurau.worker.plain_errors import plainly, told_plainly
from pyspark_zurau.worker.pool import Pool, reach
from zurau.client.cluster import Cluster
from zurau.client.consumer import AbortedProducers, Fetched, Fetcher, FetchSettings
from zurau.client.errors import BrokerRefused, TimedOut, UnknownTopic
from zurau.client.offsets import start_offsets
from zurau.ids import Offset
from zurau.memory import keep_freed_memory
from zurau.wire.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from pyspark_zurau.history.history import History

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
    history: History | None = None


def plan(options: ReadOptions, ranges: list[Range]) -> list[Task]:
    divided = divide(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
    history = open_history(options.history) if options.history else None
    return [
        Task(options.peer, options.fetch, part, options.fail_on_data_loss, options.poll_timeout_s, history)
        for part in divided
    ]


class BatchReader(DataSourceReader):
    """Offsets are looked up when the query is planned; what is written later is not read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @told_plainly
    def partitions(self) -> Sequence[InputPartition]:
        offsets = OffsetReader(self._options)
        try:
            found = offsets.all_partitions()
            start = offsets.resolve(self._options.starting, found, "startingOffsets")
            end = offsets.resolve(self._options.ending, found, "endingOffsets")
        finally:
            offsets.close()
        tasks = plan(self._options, [Range(partition, start[partition], end[partition]) for partition in sorted(found)])
        # Spark gives an empty list one partition of None; that is read as nothing.
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._schema)


@dataclass
class ReadSession:
    """A cluster and a fetcher on it, kept between tasks."""

    cluster: Cluster
    fetcher: Fetcher

    def close(self) -> None:
        self.fetcher.close()
        self.cluster.close()


_sessions: Pool[ReadSession] = Pool()


def read_task(task: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    if not isinstance(task, Task):
        return
    keep_freed_memory()
    freeze_imports()
    with plainly():
        yield from prefetch(_read(task, to_arrow_schema(schema, timezone="UTC")))


def _read(task: Task, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of the range, as they come from the leader."""

    def make() -> ReadSession:
        cluster = reach(task.peer)
        return ReadSession(cluster, Fetcher(cluster, task.fetch))

    with _sessions.borrow((task.peer, task.fetch), make) as session:
        decoding = RangeDecoder(task.range, schema)
        waiting = RangeFetcher(task, session)
        while not waiting.is_over:
            for fetched in waiting.fetch():
                yield from decoding.take(fetched)
            if waiting.gone is not None and task.history is not None:
                yield from decoding.finish()
                yield from task.history.read(*waiting.gone, schema)
                waiting.gone = None
        yield from decoding.finish()


class RangeDecoder:
    """From what was fetched of a range to record batches of Arrow: checked, and without what was aborted."""

    def __init__(self, wanted: Range, schema: pa.Schema) -> None:
        self._range = wanted
        self._expected = wanted.start
        self._assembler = ArrowAssembler(schema, wanted.partition, wanted.start, wanted.end)

    def take(self, fetched: Fetched) -> list[pa.RecordBatch]:
        """What is complete by now."""
        complete: list[pa.RecordBatch] = []
        if fetched.offset != self._expected:  # what lies between is lost
            complete += self._assembler.skip_to(fetched.offset)
        self._expected = max(fetched.offset, fetched.batches[-1][0].next_offset)
        aborted = AbortedProducers(fetched.aborted)
        for header, batch in fetched.batches:
            if header.base_offset >= self._range.end:
                break
            check(self._range.partition, header, batch)
            if not aborted.has(header, batch) and not header.is_control:
                complete += self._assembler.add(header, batch)
        return complete

    def finish(self) -> list[pa.RecordBatch]:
        return self._assembler.finish()


class RangeFetcher:
    """What the leader has of a range, piece by piece. The next piece is on its way while the caller uses one."""

    def __init__(self, task: Task, session: ReadSession) -> None:
        self._task = task
        self._cluster, self._fetcher = session.cluster, session.fetcher
        self._heard_s = time.monotonic()
        #: What the topic no longer has and the history is to give.
        self.gone: Range | None = None
        self._assign(task.range.start)

    @property
    def is_over(self) -> bool:
        return self._position >= self._task.range.end

    def fetch(self) -> list[Fetched]:
        """What came in a while; nothing, perhaps. Raises when nothing has come for too long."""
        try:
            pieces = [piece for piece in self._fetcher.poll(ROUND_S) if piece.batches]
        except BrokerRefused as error:
            resumed = _after_loss(self._task, self._cluster, self._position, error)
            self.gone = Range(self._task.range.partition, self._position, resumed)
            self._assign(resumed)
            return []
        if pieces:
            self._heard_s = time.monotonic()
        elif time.monotonic() - self._heard_s > self._task.poll_timeout_s:
            raise TimedOut(
                f"{self._task.range.partition}: no record at or after offset {self._position} came within"
                f" {self._task.poll_timeout_s:g} s; is its leader well? kafkaConsumer.pollTimeoutMs gives more time"
            )
        else:
            time.sleep(PAUSE_S)
        return pieces

    @property
    def _position(self) -> Offset:
        return self._fetcher.positions[self._task.range.partition]

    def _assign(self, offset: Offset) -> None:
        partition, _, end = self._task.range
        self._fetcher.assign({partition: offset}, until={partition: end})


def _after_loss(task: Task, cluster: Cluster, position: Offset, error: BrokerRefused) -> Offset:
    """Where to go on when the leader does not have what was planned; the end of the range when nothing is left."""
    partition, _, end = task.range
    if error.code not in {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        raise error
    if isinstance(error, UnknownTopic):
        resumed = end
    else:
        first = start_offsets(cluster, [partition])[partition]
        resumed = min(first, end) if first > position else end
    lost_from, lost_to = position, resumed
    if task.history is not None:
        begun, kept = task.history.extents({partition.topic}).get(partition, (resumed, resumed))
        if begun <= position:
            lost_from = max(position, kept)
        else:
            lost_to = min(begun, resumed)
        if lost_from >= lost_to:
            return resumed
    if task.fail_on_data_loss:
        raise DataLost(f"{partition}, offsets {lost_from} to {lost_to - 1}: {error}") from error
    logger.warning("%s: offsets %d to %d are gone and are left out: %s", partition, lost_from, lost_to - 1, error)
    return resumed
