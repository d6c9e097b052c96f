"""The partitions that a client reads: those of one fetch, or of a fetch session for as long as that lives.

Of each it is known that it has nothing more for the client, and then it is *waited* for; or it is *due*, and has to be
looked at. So a session costs nothing for those of its partitions in which nothing happens, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from zurau.api.kafka.follower_reads import NO_REPLICA
from zurau.ids import BrokerId, Offset, TopicId
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import EpochEndOffset, FetchPartition

#: By topic id from version 13 on, by name before.
Key = tuple[str, TopicId, int]

#: How often followers are looked at although nothing happens there.
FOLLOWERS_EVERY_MS = 1000
#: What a fetch holds for each of its partitions while it waits, besides the bytes of the request, and a session always.
READING_BYTES = 600


class Reading(msgspec.Struct, eq=False):
    """One partition's share of a response."""

    topic: str
    topic_id: TopicId
    wanted: FetchPartition
    next_offset: Offset
    #: Told when there is more.
    readings: Readings
    data: bytes = b""
    #: Bytes found so far; they are not in `data` when the fetch waited meanwhile.
    size: int = 0
    partition: Partition | None = None
    error: ErrorCode = ErrorCode.NONE
    divergence: EpochEndOffset | None = None
    #: The follower that the client should read from instead.
    preferred: BrokerId = NO_REPLICA
    #: Where the partition ended for this reader when it was last read.
    seen_upto: Offset = -1
    is_full: bool = False
    wait: Pending[None] | None = None
    #: What the client was told last, unless that was an error.
    told_high_watermark: Offset = -1
    told_log_start: Offset = -1

    def wake(self, _: Pending[None]) -> None:
        self.wait = None
        self.readings.woke(self)

    def watch(self) -> None:
        """Wait for more than was seen."""
        assert self.partition is not None, "it was looked at"
        self.wait = self.partition.wait_readable(self.seen_upto + 1)
        self.wait.then(self.wake)

    def stop_watching(self) -> None:
        wait, self.wait = self.wait, None
        if wait is not None and self.partition is not None:
            self.partition.stop_waiting(self.seen_upto + 1, wait)

    def forget(self) -> None:
        self.data = b""
        self.size = 0
        self.next_offset = self.wanted.fetch_offset

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell besides what was told before."""
        if self.data or self.error or self.divergence is not None or self.preferred != NO_REPLICA:
            return True
        partition = self.partition
        return partition is not None and (
            partition.high_watermark != self.told_high_watermark or partition.log.start_offset != self.told_log_start
        )

    def told(self) -> None:
        """The client has its answer; nothing of that is kept."""
        partition = self.partition
        is_plain = partition is not None and not self.error and self.divergence is None
        self.told_high_watermark = partition.high_watermark if partition and is_plain else -1
        self.told_log_start = partition.log.start_offset if partition and is_plain else -1
        self.error, self.divergence, self.preferred, self.is_full = ErrorCode.NONE, None, NO_REPLICA, False
        self.forget()


class Readings:
    """Invariant, between two fetches: a reading is waited for or due."""

    __slots__ = ("_by_key", "_followers_due_ms", "_wake_up", "at_followers", "due", "is_closed")

    def __init__(self) -> None:
        self._by_key: dict[Key, Reading] = {}
        #: In the order in which they are looked at.
        self.due: dict[Reading, None] = {}
        #: Those that are read from followers. No event tells that one does not hear its leader any more.
        self.at_followers: dict[Reading, None] = {}
        self._followers_due_ms = 0.0
        self.is_closed = False
        #: Whether somebody waits for one to be due.
        self._wake_up: Pending[None] | None = None

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._by_key.values())

    def name(self, topic: str, topic_id: TopicId, wanted: FetchPartition) -> None:
        """Read this from now on, or as this says. It keeps its place among the others."""
        key = (topic, topic_id, wanted.partition)
        reading = self._by_key.get(key)
        if reading is None:
            reading = self._by_key[key] = Reading(topic, topic_id, wanted, wanted.fetch_offset, self)
        else:
            reading.stop_watching()
            reading.wanted, reading.next_offset = wanted, wanted.fetch_offset
        self.due[reading] = None

    def remove(self, topic: str, topic_id: TopicId, index: int) -> None:
        reading = self._by_key.pop((topic, topic_id, index), None)
        if reading is not None:
            reading.stop_watching()
            self.due.pop(reading, None)
            self.at_followers.pop(reading, None)

    def look_at_followers(self, now_ms: float) -> None:
        """Have all of them looked at now and then."""
        if self.at_followers and now_ms >= self._followers_due_ms:
            self._followers_due_ms = now_ms + FOLLOWERS_EVERY_MS
            for reading in self.at_followers:
                reading.stop_watching()
                self.due[reading] = None
            self.at_followers.clear()

    def take_due(self) -> list[Reading]:
        """Those to be looked at. Whoever takes them has them waited for or puts them back."""
        due, self.due = self.due, {}
        return list(due)

    def woke(self, reading: Reading) -> None:
        self.due[reading] = None
        if self._wake_up is not None:
            self._wake_up.resolve(None)

    def wait_for_due(self) -> Pending[None]:
        """Done when there is something to look at, or nobody will be told any more."""
        wake_up: Pending[None] = Pending()
        self._wake_up = wake_up
        if self.due or self.is_closed:
            wake_up.resolve(None)
        return wake_up

    def disband(self) -> list[Reading]:
        """Close it, and return what is read nowhere else. They hold on to each other no more: what they have read goes
        when it is sent, and does not wait for the garbage collector."""
        self.close()
        by_key, self._by_key, self.due, self.at_followers = self._by_key, {}, {}, {}
        return list(by_key.values())

    def close(self) -> None:
        self.is_closed = True
        for reading in self._by_key.values():
            if reading.wait is not None:
                reading.stop_watching()
        if self._wake_up is not None:
            self._wake_up.resolve(None)
