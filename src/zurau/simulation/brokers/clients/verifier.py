"""Whoever looks at the end: everything that is known is there, and everything can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zurau.ids import Offset, TopicPartition
from zurau.simulation.brokers.clients.consumers import EARLIEST, Reader
from zurau.simulation.brokers.clients.producers import ACKS_ALL, VERSION, produce_request, produced
from zurau.simulation.brokers.connection import Unreachable
from zurau.wire.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster


class Verifier(Reader):
    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster, "verifier")
        self._count = 0

    async def run(self) -> None:
        for name in list(self.history.partitions):
            while not await self._read_all(name):
                await self.rest()
            while not await self._write(name):
                await self.rest()
            while not await self._read_all(name):
                await self.rest()

    async def _read_all(self, name: TopicPartition) -> bool:
        known = self.history.of(name)
        start = await self.offset_at(name, EARLIEST)
        if start is None:
            return False
        found: dict[Offset, bytes] = {}
        offset = start
        while True:
            data = await self.fetch(name, offset, patiently=True)
            if data is None or data.error_code != ErrorCode.NONE:
                return False
            records, following = self.records_of(data, name, offset)
            found |= {at: value or b"" for at, _, value in records}
            self.history.read(name, [(at, value or b"") for at, _, value in records], data.high_watermark)
            if following == offset:
                break
            offset = following
        if offset < known.end and not self.cluster.is_lone:
            return False  # who leads does not know yet how far its predecessor came
        known.require_all(found, max(start, known.starts_at))
        return True

    async def _write(self, name: TopicPartition) -> bool:
        self._count += 1
        values = self.values(self._count, 1)
        leader = await self.leader_of(name)
        try:
            result = produced(
                await self.ask(leader, produce_request(name, self.batch(list(values)), ACKS_ALL, 1000), VERSION)
            )
        except Unreachable:
            return False
        if result.error_code != ErrorCode.NONE:
            self.forget_leader(name)
            self.require_retriable(result.error_code, f"a record in {name}")
            return False
        self.history.acknowledged(name, result.base_offset, values)
        return True
