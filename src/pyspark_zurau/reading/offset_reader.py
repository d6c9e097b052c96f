"""What the driver asks of the brokers: which partitions there are, and where they begin and end.

Spark ends a query when its driver fails, so what may pass is waited for: `Cluster` puts up with brokers that restart
and leaders that move, and each question is asked again as often as `fetchOffset.numRetries` says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pyspark_zurau.history import open_history
from pyspark_zurau.options.limits import EARLIEST, LATEST, AtEnd, AtOffsets, AtTime, AtTimes, Limit
from pyspark_zurau.options.offsets import Offsets, in_words
from pyspark_zurau.options.read_options import ReadOptions
from pyspark_zurau.options.selection import find_partitions, missing_from
from zurau.client.cluster import Cluster
from zurau.client.errors import ClientError
from zurau.client.groups.offsets import commit_offsets
from zurau.client.offsets import end_offsets, list_offsets, start_offsets
from zurau.errors import SettingsError
from zurau.ids import Offset, TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")


class OffsetReader:
    """Opens no connection before the first question, so it can be made where it is only going to be sent elsewhere."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._partitions: set[TopicPartition] = set()
        self._partitions_until_s = 0.0
        self._mirrored: Offsets = {}

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def all_partitions(self) -> set[TopicPartition]:
        """The partitions that a new query reads. Raises when something that was named is not there."""
        found = self._patiently(self._find_partitions)
        missing = missing_from(self._options.selection, found)
        if missing:
            raise SettingsError(f"there is no {' and no '.join(missing)}; see `zurau topic list`, or create it first")
        return found

    def latest(self, known: Offsets) -> dict[TopicPartition, Offset]:
        """The end of each partition that exists now; a query that was there before may find fewer, or more."""
        found: dict[TopicPartition, Offset] = {}
        for attempt in range(self._options.attempts):
            found = self._patiently(lambda: self._latest(self._find_partitions()))
            backwards = {partition for partition, end in found.items() if end < known.get(partition, 0)}
            if not backwards:
                break
            # A broker that has just become the leader may not know of the newest records for a moment.
            logger.warning("%s ended earlier than before (attempt %d)", in_words(backwards), attempt + 1)
            time.sleep(self._options.attempt_interval_s)
        return found

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """The beginning of each partition; those that are gone by now are left out."""
        wanted = set(partitions)
        if not wanted:
            return {}
        return self._patiently(lambda: self._earliest(wanted & self._find_partitions()))

    def mirror(self, group: str, offsets: Offsets) -> None:
        """Let a consumer group be where the query is, for whoever watches groups. The query does not depend on it."""
        if offsets == self._mirrored:
            return
        try:
            commit_offsets(self._open(), group, offsets)
        except ClientError as error:
            logger.warning("the group %s was not told how far the query is: %s", group, error)
        self._mirrored = offsets

    def resolve(self, limit: Limit, partitions: set[TopicPartition], option: str) -> dict[TopicPartition, Offset]:
        """The offset of a limit in each partition."""
        match limit:
            case AtEnd(which):
                ask = self._earliest if which == EARLIEST else self._latest
                return self._patiently(lambda: ask(partitions))
            case AtOffsets(offsets):
                _check_all_named(option, set(offsets), partitions)
                return self._patiently(lambda: self._fill_in_ends(offsets))
            case AtTime(timestamp_ms):
                return self._at_times(dict.fromkeys(partitions, timestamp_ms), option)
            case AtTimes(timestamps_ms):
                _check_all_named(option, set(timestamps_ms), partitions)
                return self._at_times(timestamps_ms, option)

    def _at_times(self, timestamps_ms: Mapping[TopicPartition, int], option: str) -> dict[TopicPartition, Offset]:
        answers = self._patiently(lambda: list_offsets(self._open(), timestamps_ms))
        found = {partition: answer.offset for partition, answer in answers.items()}
        # After the topic: what retention takes from it meanwhile is in the lake by then.
        for partition, offset in self._in_history(timestamps_ms).items():
            found[partition] = min(offset, found[partition]) if found[partition] >= 0 else offset
        too_young = {partition for partition, offset in found.items() if offset < 0}
        if too_young and option.startswith("starting") and not self._options.latest_when_too_young:
            raise SettingsError(
                f"{in_words(too_young)} has no record at or after the time to start from; use an earlier one, or set"
                " startingOffsetsByTimestampStrategy to latest"
            )
        ends = self._patiently(lambda: self._latest(too_young))
        return found | ends

    def _in_history(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        return open_history(self._options.history).at_times(timestamps_ms) if self._options.history else {}

    def _fill_in_ends(self, offsets: Offsets) -> dict[TopicPartition, Offset]:
        first = self._earliest({partition for partition, offset in offsets.items() if offset == EARLIEST})
        last = self._latest({partition for partition, offset in offsets.items() if offset == LATEST})
        return {**offsets, **first, **last}

    def _earliest(self, partitions: set[TopicPartition]) -> dict[TopicPartition, Offset]:
        """With a history that is where the lake begins, if that is earlier."""
        if not partitions:
            return {}
        first = start_offsets(self._open(), sorted(partitions))
        if self._options.history is None:
            return first
        past = open_history(self._options.history).extents({partition.topic for partition in partitions})
        return {one: min(offset, past.get(one, (offset, offset))[0]) for one, offset in first.items()}

    def _latest(self, partitions: set[TopicPartition]) -> dict[TopicPartition, Offset]:
        isolation = self._options.fetch.isolation
        return end_offsets(self._open(), sorted(partitions), isolation=isolation) if partitions else {}

    def _find_partitions(self) -> set[TopicPartition]:
        if time.monotonic() >= self._partitions_until_s:
            self._partitions = find_partitions(self._open(), self._options.selection)
            self._partitions_until_s = time.monotonic() + self._options.metadata_ttl_ms / 1000
        return self._partitions

    def _patiently(self, ask: Callable[[], T]) -> T:
        for attempt in range(1, self._options.attempts):
            try:
                return ask()
            except ClientError as error:
                logger.warning("asking for offsets failed (attempt %d): %s", attempt, error)
                time.sleep(self._options.attempt_interval_s)
                self._partitions_until_s = 0.0
        return ask()

    def _open(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._options.peer.open()
        return self._cluster


def _check_all_named(option: str, named: set[TopicPartition], partitions: set[TopicPartition]) -> None:
    if named != partitions:
        wrong = [f"missing: {in_words(partitions - named)}"] if partitions - named else []
        wrong += [f"not read by this query: {in_words(named - partitions)}"] if named - partitions else []
        raise SettingsError(
            f"{option} must name every partition that is read, and no other ({'; '.join(wrong)}); in offsets -2 stands"
            " for the earliest and -1 for the latest"
        )
