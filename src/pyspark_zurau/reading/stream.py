"""A streaming query's source. It lives on the driver for as long as the query; tasks get only `read` and the schema.

Spark asks for the latest offset, writes it to the checkpoint, asks for the tasks between the last offset and this one,
and runs them. After a crash it asks for the same tasks again. How much a trigger takes is decided here, since Spark
knows no limit that has a least, a most and a delay at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_zurau.options.offsets import Offsets, from_json, in_words, to_json
from pyspark_zurau.options.read_options import ReadOptions
from pyspark_zurau.reading.batch import plan, read_task
from pyspark_zurau.reading.errors import DataLost, SourceChanged
from pyspark_zurau.reading.offset_reader import OffsetReader
from pyspark_zurau.reading.ranges import Range, backlog, take_share
from zurau.ids import Offset, TopicPartition

logger = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._offsets = OffsetReader(options)
        self._initial: dict[TopicPartition, Offset] | None = None
        self._latest: dict[TopicPartition, Offset] | None = None
        self._available_now = False
        #: What an AvailableNow run reads up to, from its first trigger on.
        self._target: dict[TopicPartition, Offset] | None = None
        self._last_trigger_s: float | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        # Spark asks twice; "latest" must not move in between.
        if self._initial is None:
            found = self._offsets.all_partitions()
            self._initial = self._offsets.resolve(self._options.starting, found, "startingOffsets")
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        known = from_json(start)
        if self._options.mirror_to_group is not None:
            # Spark asks for what comes after a batch once that batch is done; its `commit` comes a batch later still.
            self._offsets.mirror(self._options.mirror_to_group, known)
        latest = self._latest = self._find_latest(known)
        if isinstance(limit, ReadAllAvailable):
            return to_json(latest)
        begin = known | self._offsets.earliest(latest.keys() - known.keys())
        if self._is_too_early(begin, latest):
            return start
        most = self._options.max_offsets_per_trigger
        return to_json(latest if most is None else take_share(most, begin, latest))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else to_json(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, finish = from_json(start), from_json(end)
        if self._target is not None:
            self._check_unchanged(finish)
        begin |= self._begin_new(finish.keys() - begin.keys())
        gone = begin.keys() - finish.keys()
        if gone:
            self._report_loss(f"{in_words(gone)} is gone")
        backwards = {partition for partition, offset in finish.items() if offset < begin[partition]}
        for partition in sorted(backwards):
            self._report_loss(f"{partition} ended at {begin[partition]} before, and ends at {finish[partition]} now")
        return list(plan(self._options, [Range(one, begin[one], finish[one]) for one in sorted(finish)]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: the checkpoint has the offsets."""

    def stop(self) -> None:
        self._offsets.close()

    def _find_latest(self, known: Offsets) -> dict[TopicPartition, Offset]:
        if self._target is not None:
            return self._target
        latest = self._offsets.latest(known)
        if self._available_now:
            self._target = latest
        return latest

    def _is_too_early(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether to wait for more records. An AvailableNow run never waits: what it leaves, nobody reads."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._available_now:
            return False
        now_s = time.monotonic()
        delay_s = self._options.max_trigger_delay_ms / 1000
        may_wait = self._last_trigger_s is not None and now_s - self._last_trigger_s < delay_s
        if may_wait and sum(backlog(begin, latest).values()) < least:
            return True
        self._last_trigger_s = now_s
        return False

    def _begin_new(self, new: set[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Partitions that the query meets for the first time are read from their beginning."""
        first = self._offsets.earliest(new)
        for partition, offset in sorted(first.items()):
            if offset > 0:
                self._report_loss(f"the new partition {partition} begins at offset {offset} instead of 0")
        vanished = new - first.keys()
        if vanished:
            self._report_loss(f"{in_words(vanished)} was found and is gone again")
        return first | dict.fromkeys(vanished, 0)

    def _check_unchanged(self, finish: Offsets) -> None:
        latest = self._offsets.latest(finish)
        gone = finish.keys() - latest.keys()
        shrunk = {partition for partition in finish.keys() & latest.keys() if latest[partition] < finish[partition]}
        if gone or shrunk:
            raise SourceChanged(
                f"{in_words(gone | shrunk)} has fewer records than when this AvailableNow run began; start the query"
                " again when the topics are as they should be"
            )

    def _report_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(what)
        logger.warning("%s; the query goes on without it, as failOnDataLoss=false asks", what)
