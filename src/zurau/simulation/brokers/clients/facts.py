"""A topic that is compacted: somebody says things of a few keys, and the last that was said of each must stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zurau.ids import Offset, TopicPartition
from zurau.simulation.brokers.clients.consumers import Reader
from zurau.simulation.brokers.clients.producers import ACKS_ALL, VERSION, produce_request, produced
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.history import brief
from zurau.simulation.brokers.invariants import broken
from zurau.wire.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

KEYS = (b"a", b"b", b"c", b"a key that is longer than its digest")


class Fact:
    """What is known of a key."""

    def __init__(self) -> None:
        #: The last that was acknowledged.
        self.offset: Offset = -1
        self.value: bytes | None = None
        #: Said, with an outcome that was never told.
        self.perhaps: set[bytes | None] = set()


class FactTeller(Reader):
    """The only one who writes there, one record at a time."""

    def __init__(self, cluster: SimulatedCluster, name: TopicPartition) -> None:
        super().__init__(cluster, "facts")
        self._name = name
        self._facts = {key: Fact() for key in KEYS}
        self._count = 0

    async def run(self) -> None:
        while self.goes_on:
            if self.chance.random() < 0.9:
                await self._say()
            else:
                await self.check()
            await self.think()
        while not await self.check():
            await self.rest()

    async def _say(self) -> None:
        key = self.chance.choice(KEYS)
        fact = self._facts[key]
        self._count += 1
        value = None if self.chance.random() < 0.3 else self.values(self._count, 1)[0]
        leader = await self.leader_of(self._name)
        request = produce_request(self._name, self.batch([value], key), ACKS_ALL, 1000)
        try:
            result = produced(await self.ask(leader, request, VERSION))
        except Unreachable:
            fact.perhaps.add(value)
            await self.rest()
            return
        if result.error_code == ErrorCode.NONE:
            fact.offset, fact.value = result.base_offset, value
            self.history.counts["acknowledged"] += 1
        else:
            fact.perhaps.add(value)
            self.forget_leader(self._name)
            self.require_retriable(result.error_code, f"{brief(value)} in {self._name}")

    async def check(self) -> bool:
        """Read all there is. Whether it could be read."""
        last: dict[bytes | None, tuple[Offset, bytes | None]] = {}
        offset: Offset = 0
        before = {key: (fact.offset, fact.value) for key, fact in self._facts.items()}
        while True:
            data = await self.fetch(self._name, offset, patiently=True)
            if data is None:
                return False
            if data.error_code != ErrorCode.NONE:
                broken("LastOfEachKeyStays", f"{self._name} has no offset {offset}")
            records, following = self.records_of(data, self._name, offset, is_dense=False)
            last |= {key: (at, value) for at, key, value in records}
            if following == offset:
                break
            offset = following
        if offset <= max(at for at, _ in before.values()) and not self.cluster.is_lone:
            return False  # who leads does not know yet how far its predecessor came
        for key, (at, value) in before.items():
            self._check_key(key, at, value, last.get(key))
        return True

    def _check_key(
        self, key: bytes, offset: Offset, value: bytes | None, found: tuple[Offset, bytes | None] | None
    ) -> None:
        perhaps = self._facts[key].perhaps
        if found is None:
            if value is not None and None not in perhaps:
                broken("LastOfEachKeyStays", f"of {key!r} nothing is left, and {brief(value)} was said at {offset}")
        elif found[0] < offset and value is None and (found[1] is None or not self.cluster.is_lone):
            # A tombstone that was said last may be gone. What was before it has to be gone with it, but for an older
            # tombstone, which says the same; and on a replica that was away for longer than tombstones stay, as in
            # Kafka: the leader that it fetched from had nothing left to tell.
            return
        elif found[0] < offset or (found[0] == offset and found[1] != value):
            seen = f"{key!r} is {brief(found[1])} of {found[0]}, and {brief(value)} was said at {offset}"
            broken("LastOfEachKeyStays", seen)
        elif found[0] > offset and found[1] not in perhaps:
            broken("LastOfEachKeyStays", f"{key!r} is {brief(found[1])} of {found[0]}, which nobody said")
