"""Producers: idempotent ones that repeat until they are acknowledged, and plain ones that send once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from zurau.ids import BrokerId, TopicPartition
from zurau.pending import Pending
from zurau.simulation.brokers.clients.client import Client
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.history import brief
from zurau.simulation.brokers.invariants import broken, require
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

IN_FLIGHT_MAX = 5
ACKS_ALL = -1
VERSION = 9


def produce_request(name: TopicPartition, batch: bytes, acks: int, timeout_ms: int) -> ProduceRequest:
    data = TopicProduceData(name=name.topic, partition_data=[PartitionProduceData(index=name.partition, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def produced(response: Any) -> Any:
    """What is said of the only partition."""
    return response.responses[0].partition_responses[0]


class _Unacknowledged(NamedTuple):
    #: Which batch it is, of all.
    number: int
    values: list[bytes]
    batch: bytes


class IdempotentProducer(Client):
    """Has several batches on the way, in order, and repeats all that are not acknowledged, from the oldest on. That one
    is never more than five batches back, acknowledged or not: a broker would not know it any more.

    While the broker may know nothing of it, it has one batch on the way: of several, a later one might be taken for
    the first.
    """

    def __init__(self, cluster: SimulatedCluster, number: int, name: TopicPartition) -> None:
        super().__init__(cluster, f"once-{number}")
        self._first_name = self.name
        self._partition = name
        self._waiting: deque[_Unacknowledged] = deque()
        self._sent = self._made = 0
        self._is_known = False
        self._in_flight_max = self.chance.randint(1, IN_FLIGHT_MAX)

    async def run(self) -> None:
        lives = 0
        producer_id = await self._new_id()
        while self.goes_on or self._waiting:
            if not self._waiting and self.chance.random() < 0.05:  # it ends, and another begins
                lives += 1
                self.name, self._sent, self._is_known = f"{self._first_name}.{lives}", 0, False
                producer_id = await self._new_id()
            while self.goes_on and self._behind < self.chance.randint(1, self._in_flight_max):
                self._make(producer_id)
            if self._waiting:
                await self._send_all()
            await self.think()

    @property
    def _behind(self) -> int:
        """Batches from the oldest on that is not acknowledged."""
        return self._made - self._waiting[0].number if self._waiting else 0

    async def _new_id(self) -> int:
        while True:
            try:
                answer = await self.ask(self.any_broker(), InitProducerIdRequest(transaction_timeout_ms=0), 1)
            except Unreachable:
                await self.rest()
                continue
            if answer.error_code == ErrorCode.NONE:
                producer_id = int(answer.producer_id)
                known = self.cluster.producer_ids
                require(producer_id not in known, "NoneTwice", f"producer id {producer_id} is given twice")
                known.add(producer_id)
                return producer_id
            self.require_retriable(answer.error_code, "a producer id")
            await self.rest()

    def _make(self, producer_id: int) -> None:
        values = self.values(self._sent, self.chance.randint(1, 4))
        batch = self.batch(list(values), producer_id=producer_id, producer_epoch=0, base_sequence=self._sent)
        self._waiting.append(_Unacknowledged(self._made, values, batch))
        self._sent += len(values)
        self._made += 1

    async def _send_all(self) -> None:
        leader = await self.leader_of(self._partition)
        sent = list(self._waiting)[: self._in_flight_max if self._is_known else 1]
        timeout_ms = self.chance.choice([50, 1000])
        asked = [
            self.ask_later(leader, produce_request(self._partition, each.batch, ACKS_ALL, timeout_ms), VERSION)
            for each in sent
        ]
        for each, response in zip(sent, asked, strict=True):
            try:
                result = produced(await self.awaited(response, leader))
            except Unreachable:
                await self.rest()
                return
            self._answered(each, result)
        if self._waiting:
            await self.rest()

    def _answered(self, each: _Unacknowledged, result: Any) -> None:
        if result.error_code == ErrorCode.NONE:
            self._is_known = True
            self.history.acknowledged(self._partition, result.base_offset, each.values)
            self._waiting.remove(each)
            return
        self.forget_leader(self._partition)
        if result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if each is self._waiting[0]:
                broken("RetriesAreTaken", f"{self._partition}: {brief(each.values[0])} is refused as out of order")
            return  # one before it was refused
        self.require_retriable(result.error_code, f"{brief(each.values[0])} in {self._partition}")


class PlainProducer(Client):
    """Sends each record once, with acks 0, 1 or all, and never learns what became of some."""

    def __init__(self, cluster: SimulatedCluster, number: int, names: list[TopicPartition]) -> None:
        super().__init__(cluster, f"plain-{number}")
        self._names = names
        self._sent = 0

    async def run(self) -> None:
        while self.goes_on:
            name = self.chance.choice(self._names)
            values = self.values(self._sent, self.chance.randint(1, 3))
            self._sent += len(values)
            acks = self.chance.choice([0, 1, ACKS_ALL, ACKS_ALL])
            leader = await self.leader_of(name)
            request = produce_request(name, self.batch(list(values)), acks, 1000)
            response = self.ask_later(leader, request, VERSION, has_answer=acks != 0)
            if acks == 0:
                await self.think()
                continue
            await self._answer(response, leader, name, values, acks)
            await self.think()

    async def _answer(
        self, response: Pending[Any], leader: BrokerId, name: TopicPartition, values: list[bytes], acks: int
    ) -> None:
        try:
            result = produced(await self.awaited(response, leader))
        except Unreachable:
            await self.rest()
            return
        if result.error_code != ErrorCode.NONE:
            self.forget_leader(name)
            self.require_retriable(result.error_code, f"{brief(values[0])} in {name}")
        elif acks == ACKS_ALL:
            self.history.acknowledged(name, result.base_offset, values)
