"""What one fetch reads, from its first look to its answer.

Every partition is named once, however often the client named it. After a look at those that are due the fetch waits
for each; only those that have more are looked at again. No bytes are held meanwhile: a fetch that has found too little
remembers how much it was and reads it anew for the answer. And the longer it has waited the longer it lets records
gather before it looks again (an eighth of the time so far), so that one which can never be satisfied costs next to
nothing. Its look at many partitions is cut into turns.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.epochs import check_leader_epoch, find_divergence
from zurau.api.kafka.follower_reads import NO_REPLICA, find_preferred_replica
from zurau.api.kafka.reading import Reading, Readings
from zurau.api.turns import InTurns
from zurau.broker.waiting import with_timeout
from zurau.epochs import NO_EPOCH
from zurau.errors import OffsetOutOfRange, Refused
from zurau.ids import NO_TOPIC_ID, Offset
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.ports import WouldBlock
from zurau.records.batch import parse_header, walked_end
from zurau.records.compression import Compression
from zurau.settings import KIB, MIB
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchRequest

READ_COMMITTED = 1
ZSTD_SINCE = 10
#: The most that is read on the loop; a worker reads more than that.
LOOP_READ_BYTES = 1 * MIB
#: What is less is not counted as memory of answers until it turns out that the client does not take it.
COUNTED_BYTES = 4 * KIB
#: A fetch lets records gather for this part of the time that it has waited.
GATHERING_PART = 8


class Gathering:
    """Reads until there is enough, or the time is over."""

    __slots__ = (
        "_call", "_clock", "_committed_only", "_found", "_has_dropped", "_has_news", "_has_room", "_limit",
        "_max_bytes", "_rack_id", "_readings", "_responses", "_size", "_turns", "looked_at",
    )  # fmt: skip

    def __init__(self, readings: Readings, request: FetchRequest, call: Call) -> None:
        self._readings = readings
        self._max_bytes = min(request.max_bytes, call.broker.settings.fetch_max_bytes)
        self._committed_only = request.isolation_level == READ_COMMITTED
        #: Given by consumers that would rather read from a follower near them (KIP-392).
        self._rack_id = request.rack_id
        self._call = call
        self._responses = call.responses
        self._turns = call.broker.world.turns
        self._clock = call.broker.clock
        self._size = 0
        #: What the answer may take: what the client wants, or less while memory for answers is short.
        self._limit = self._max_bytes
        self._has_room = True
        #: Something must be told at once: an error, a divergence.
        self._has_news = False
        #: Something was found and dropped again before waiting.
        self._has_dropped = False
        self._found: list[Reading] = []
        #: Each once, in the order of the first look.
        self.looked_at: dict[Reading, None] = {}

    async def run(self, min_bytes: int, max_wait_ms: int) -> None:
        began_ms = self._clock.monotonic_ms()
        deadline_ms = began_ms + max_wait_ms
        readings = self._readings
        readings.look_at_followers(began_ms)
        due = readings.take_due()
        await self._look(due, deadline_ms)
        while self._size < min(min_bytes, self._limit) and not self._has_news and len(readings):
            await self._drop()
            await self._watch(due)
            wake_up, due = readings.wait_for_due(), []
            if not await with_timeout(deadline_ms - self._clock.monotonic_ms(), wake_up, self._clock):
                break
            if self._size:
                await self._let_gather(began_ms, deadline_ms)
            if readings.is_closed:
                break
            due = readings.take_due()
            await self._look(due, deadline_ms)
        if self._has_dropped:
            await self._read_again(deadline_ms)

    async def settle(self) -> None:
        """Before the client is told, if it has a session: those that have nothing more are waited for, and the others
        are due the next time; last those that were given something now."""
        due = self._readings.due
        given = []
        async for reading in InTurns(list(self.looked_at), self._turns):
            if reading.size:
                given.append(reading)
            elif reading.wait is None and reading not in due:
                if self._may_wait(reading):
                    reading.watch()
                else:
                    due[reading] = None
        for reading in given:
            reading.stop_watching()
            due.pop(reading, None)
            due[reading] = None

    # Looking

    async def _look(self, readings: list[Reading], deadline_ms: float) -> None:
        """Read on in some partitions, up to the limits."""
        if self._responses is not None:
            room = self._responses.memory.room() or await self._wait_for_room(deadline_ms)
            self._has_room = room > 0
            self._limit = min(self._max_bytes, room)
        for number, reading in enumerate(readings):
            if number and self._turns.is_over():
                await self._turns.next()
            self.looked_at[reading] = None
            before = reading.size
            try:
                try:
                    self._read_on(reading)
                except WouldBlock:
                    await self._read_on_in_worker(reading)
            except Refused as refused:
                self._refuse(reading, ErrorCode(refused.code))
            except OffsetOutOfRange:
                self._refuse(reading, _code_of_missing(reading))
            self._size += reading.size - before

    async def _wait_for_room(self, deadline_ms: float) -> int:
        assert self._responses is not None
        wait_ms = deadline_ms - self._clock.monotonic_ms()
        return await self._responses.memory.wait_for_room(wait_ms, self._clock)

    def _refuse(self, reading: Reading, code: ErrorCode) -> None:
        reading.error = code
        reading.forget()
        self._has_news = True

    def _read_on(self, reading: Reading) -> None:
        """Read one partition on; raises `WouldBlock` when that is not done in a moment."""
        partition = self._open(reading)
        reading.seen_upto = partition.readable_upto(committed_only=self._committed_only)
        limit = self._limit_of(reading)
        is_sent_away = reading.divergence is not None or reading.preferred != NO_REPLICA
        if is_sent_away or (limit <= 0 and self._must_fit):
            reading.is_full = True
            return
        data = partition.read(reading.next_offset, min(limit, LOOP_READ_BYTES), reading.seen_upto)
        if limit > LOOP_READ_BYTES and len(data) > LOOP_READ_BYTES // 2:
            raise WouldBlock  # there is much more
        if data:
            self._take(reading, data, limit, None)

    async def _read_on_in_worker(self, reading: Reading) -> None:
        partition, offset, upto, limit = (
            reading.partition,
            reading.next_offset,
            reading.seen_upto,
            self._limit_of(reading),
        )
        assert partition is not None

        def work() -> tuple[bytes, Offset]:
            data = partition.read(offset, limit, upto, may_block=True)
            return data, walked_end(data) if data else offset

        # A first batch may be as large as the topic allows.
        reserved = 0 if self._responses is None else max(limit, partition.log.settings.max_message_bytes)
        outcome = self._call.broker.workers.run(work)
        if self._responses is not None:
            self._responses.take(reserved)
        try:
            data, next_offset = await outcome
        finally:
            if self._responses is not None:
                self._responses.take(-reserved)
            outcome.fail(Ended())  # if it is not there yet: nobody wants it any more
        if data:
            self._take(reading, data, limit, next_offset)

    def _limit_of(self, reading: Reading) -> int:
        """What may be read of a partition besides what was found in it."""
        return min(reading.wanted.partition_max_bytes - reading.size, self._limit - self._size)

    @property
    def _must_fit(self) -> bool:
        """Only the first batch of a whole response may be larger than asked for (KIP-74)."""
        return self._size > 0 or not self._has_room

    def _open(self, reading: Reading) -> Partition:
        """The partition, if it is what the client believes it to be."""
        wanted = reading.wanted
        if reading.topic_id != NO_TOPIC_ID:
            topic = self._call.broker.image.topics_by_id.get(reading.topic_id)
            reading.topic = "" if topic is None else topic.name
        if not reading.topic:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = reading.partition = self._call.broker.partition(reading.topic, wanted.partition)
        if partition.leads:
            if self._rack_id:
                reading.preferred = find_preferred_replica(partition, self._rack_id, wanted.fetch_offset, self._call)
                self._has_news = self._has_news or reading.preferred != NO_REPLICA
        elif self._rack_id:
            partition.require_leader_heard()
            self._readings.at_followers[reading] = None
        else:
            partition.require_leadership()
        if reading.topic_id not in (NO_TOPIC_ID, partition.topic_id):
            raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID)
        if wanted.current_leader_epoch != NO_EPOCH:
            check_leader_epoch(wanted.current_leader_epoch, partition)
        if wanted.last_fetched_epoch != NO_EPOCH:
            reading.divergence = find_divergence(wanted.last_fetched_epoch, wanted.fetch_offset, partition)
            self._has_news = self._has_news or reading.divergence is not None
        return partition

    def _take(self, reading: Reading, data: bytes, limit: int, next_offset: Offset | None) -> None:
        if len(data) > limit and self._must_fit:
            reading.is_full = True
            return
        if self._call.version < ZSTD_SINCE and parse_header(data).compression == Compression.ZSTD:
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if reading.size:
            # It waited with some before: all of it is read again for the answer.
            reading.next_offset = walked_end(data) if next_offset is None else next_offset
        else:
            reading.data = data
            reading.next_offset = -1 if next_offset is None else next_offset  # it takes a walk over the batches
            self._found.append(reading)
            self._count(len(data))
        reading.size += len(data)

    def _count(self, data_bytes: int) -> None:
        """Bytes that were read, or (negative) dropped. A few are less than what the request itself takes."""
        if abs(data_bytes) >= COUNTED_BYTES and self._responses is not None:
            self._responses.take(data_bytes)

    # Waiting

    async def _drop(self) -> None:
        """Hold no bytes while waiting."""
        self._has_dropped = self._has_dropped or bool(self._found)
        async for reading in InTurns(self._found, self._turns):
            if reading.next_offset < 0:
                reading.next_offset = walked_end(reading.data)
            self._count(-len(reading.data))
            reading.data = b""
        self._found.clear()

    async def _watch(self, readings: list[Reading]) -> None:
        async for reading in InTurns(readings, self._turns):
            if self._may_wait(reading):
                reading.watch()

    @staticmethod
    def _may_wait(reading: Reading) -> bool:
        """Or else nothing more will come, at least for a while."""
        partition = reading.partition
        is_plain = not (reading.is_full or reading.error)
        return is_plain and partition is not None and partition.fault is None

    async def _let_gather(self, began_ms: float, deadline_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        pause_ms = min((now_ms - began_ms) / GATHERING_PART, deadline_ms - now_ms)
        if pause_ms >= 1:
            await with_timeout(pause_ms, Pending(), self._clock)

    # Answering

    async def _read_again(self, deadline_ms: float) -> None:
        """Read what was found before the fetch waited, as much as there is room for now."""
        again = [reading for reading in self.looked_at if reading.size and not reading.data]
        if not again:
            return
        for reading in again:
            self._size -= reading.size
            reading.forget()
            reading.is_full = False
        await self._look(again, deadline_ms)


def _code_of_missing(reading: Reading) -> ErrorCode:
    """A follower that lacks an offset does not call it out of range: a consumer would begin anew."""
    lacks = reading.partition is not None and reading.partition.lacks(reading.next_offset)
    return ErrorCode.OFFSET_NOT_AVAILABLE if lacks else ErrorCode.OFFSET_OUT_OF_RANGE


class Ended(Exception):
    """Whoever wanted the outcome has gone."""
