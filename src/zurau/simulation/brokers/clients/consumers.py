"""Consumers: they read with odd limits from here and there, and hold what they read against what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zurau.ids import Offset, TopicPartition
from zurau.records.batch import check_crc, iter_batches
from zurau.records.record import iter_records
from zurau.simulation.brokers.clients.client import Client
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.invariants import broken, require
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

LIMITS = (0, 1, 61, 200, 5000, 1 << 20)
LATEST, EARLIEST = -1, -2
VERSION = 12


class Reader(Client):
    """Knows how to read; consumers and those who look at the end do it their way."""

    async def fetch(self, name: TopicPartition, offset: Offset, *, patiently: bool = False) -> Any:
        """What is said of the partition, or None if nobody says anything or it is tried again later."""
        leader = await self.leader_of(name)
        wanted = FetchPartition(
            partition=name.partition,
            fetch_offset=offset,
            partition_max_bytes=1 << 20 if patiently else self.chance.choice(LIMITS),
        )
        request = FetchRequest(
            max_wait_ms=0 if patiently else self.chance.choice([0, 5, 100]),
            min_bytes=self.chance.choice([0, 1, 1 << 20]),
            max_bytes=1 << 20 if patiently else self.chance.choice(LIMITS),
            topics=[FetchTopic(topic=name.topic, partitions=[wanted])],
        )
        try:
            data = (await self.ask(leader, request, VERSION)).responses[0].partitions[0]
        except Unreachable:
            return None
        if data.error_code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return data
        self.forget_leader(name)
        if data.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.require_retriable(data.error_code, f"offset {offset} of {name}", leader)
        return None

    async def offset_at(self, name: TopicPartition, timestamp: int) -> Offset | None:
        leader = await self.leader_of(name)
        wanted = ListOffsetsPartition(partition_index=name.partition, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name.topic, partitions=[wanted])])
        try:
            found = (await self.ask(leader, request, 7)).topics[0].partitions[0]
        except Unreachable:
            return None
        if found.error_code == ErrorCode.NONE:
            return int(found.offset)
        self.forget_leader(name)
        self.require_retriable(found.error_code, f"an offset of {name}", leader)
        return None

    def records_of(
        self, data: Any, name: TopicPartition, offset: Offset, *, is_dense: bool = True
    ) -> tuple[list[tuple[Offset, bytes | None, bytes | None]], Offset]:
        """Offset, key and value of each record from the asked-for offset on; and where to go on."""
        records = []
        expected = offset
        for header, batch in iter_batches(memoryview(data.records or b"")):
            require(check_crc(batch, header), "CommittedLogNeverChanges", f"{name}: the batch at {offset} is damaged")
            is_next = header.base_offset <= expected if expected == offset else header.base_offset == expected
            if is_dense and not is_next:
                broken("NoGaps", f"{name}: after {expected - 1} comes {header.base_offset}")
            expected = header.next_offset
            if not header.is_control:
                records += [(one.offset, one.key, one.value) for one in iter_records(batch) if one.offset >= offset]
        return records, expected


class Consumer(Reader):
    def __init__(self, cluster: SimulatedCluster, number: int, names: list[TopicPartition]) -> None:
        super().__init__(cluster, f"reader-{number}")
        self._names = names
        self._positions = dict.fromkeys(names, 0)

    async def run(self) -> None:
        while self.goes_on:
            name = self.chance.choice(self._names)
            if self.chance.random() < 0.1:
                await self._look_up(name)
            else:
                await self._read(name)
            await self.think()

    async def _read(self, name: TopicPartition) -> None:
        known = self.history.of(name)
        if self.chance.random() < 0.05:
            self._positions[name] = self.chance.randint(known.may_start_at, max(known.may_start_at, known.end))
        offset, before = self._positions[name], known.high_watermark
        data = await self.fetch(name, offset)
        if data is None:
            await self.rest()
            return
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(name, offset, data)
            return
        # Of several brokers one may lead that does not know yet how far its predecessor came.
        known.told_high_watermark(data.high_watermark, before if self.cluster.is_lone else 0)
        records, self._positions[name] = self.records_of(data, name, offset)
        self.history.read(name, [(at, value or b"") for at, _, value in records], data.high_watermark)

    def _out_of_range(self, name: TopicPartition, offset: Offset, data: Any) -> None:
        known = self.history.of(name)
        end = known.end if self.cluster.is_lone else min(known.end, data.high_watermark)
        if known.may_start_at <= offset <= end:
            seen = f"{name} has no offset {offset}, and {known.may_start_at} to {known.end} must be there"
            broken("AcknowledgedStays", seen)
        self._positions[name] = max(known.may_start_at, data.log_start_offset)

    async def _look_up(self, name: TopicPartition) -> None:
        known = self.history.of(name)
        end, start = known.end, known.starts_at
        latest = await self.offset_at(name, LATEST)
        if latest is not None and self.cluster.is_lone:
            seen = f"{name}: the latest offset is {latest}, and {end} was before"
            require(latest >= end, "AcknowledgedStays", seen)
        earliest = await self.offset_at(name, EARLIEST)
        if earliest is not None:
            seen = f"{name} starts at {earliest}, though it was told to start at {start}"
            require(earliest >= start, "DeletedStaysDeleted", seen)
            require(earliest <= known.may_start_at, "AcknowledgedStays", f"{name} starts at {earliest}")
