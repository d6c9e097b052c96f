"""A broker that loses power again and again, from a seed.

Idempotent producers write with acks=all and repeat what was not acknowledged; consumers read; offsets are committed.
After each power failure the disk keeps what was flushed and an arbitrary beginning of the rest.

    ZURAU_SEED=17 pytest tests/simulation/test_broker_simulation.py    replays one seed
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import pytest

from zurau.log.settings import LogSettings
from zurau.pending import Pending
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import iter_records
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SEEDS = [int(os.environ["ZURAU_SEED"])] if "ZURAU_SEED" in os.environ else range(60)
TOPIC = "numbers"
PARTITIONS = 2
STEPS = 120


@dataclass
class SimulatedProducer:
    """Sends batches of unique numbers to one partition and repeats them until they are acknowledged."""

    producer_id: int
    partition: int
    next_sequence: int = 0
    #: Sent, not acknowledged, oldest first: (sequence, values).
    waiting: list[tuple[int, list[bytes]]] = field(default_factory=list)


class Story:
    """One seed: a broker, its clients, and what they hold it to."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        small_segments = LogSettings(segment_bytes=self.chance.choice([300, 2000, 1 << 20]), index_interval_bytes=100)
        self.broker = SimulatedBroker(seed, small_segments)
        created = self.broker.tell(
            CreateTopicsRequest(
                topics=[CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)], timeout_ms=1000
            ),
            5,
        )
        assert created.topics[0].error_code == ErrorCode.NONE
        self.producers = [SimulatedProducer(self.new_producer_id(), n % PARTITIONS) for n in range(3)]
        self.count = 0
        self.acknowledged: dict[int, dict[int, bytes]] = {n: {} for n in range(PARTITIONS)}
        self.seen: dict[int, dict[int, bytes]] = {n: {} for n in range(PARTITIONS)}
        self.committed = -1

    def new_producer_id(self) -> int:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        return self.broker.tell(request, 1).producer_id

    def run(self) -> None:
        steps = [self.send, self.send, self.send, self.resend, self.let_time_pass, self.read, self.commit]
        for _ in range(STEPS):
            if self.chance.random() < 0.04:
                self.restart()
            else:
                self.chance.choice(steps)()
        self.restart()
        for producer in self.producers:
            self.repeat(producer)
        self.broker.clock.advance(1000)
        self.check()

    def send(self) -> None:
        producer = self.chance.choice(self.producers)
        if len(producer.waiting) >= 4:
            return
        values = [b"%d" % (self.count + n) for n in range(self.chance.randint(1, 5))]
        self.count += len(values)
        producer.waiting.append((producer.next_sequence, values))
        producer.next_sequence += len(values)
        self.transmit(producer, *producer.waiting[-1])

    def resend(self) -> None:
        """An impatient client repeats what it has in flight, though the first copy may still arrive."""
        self.repeat(self.chance.choice(self.producers))

    def repeat(self, producer: SimulatedProducer) -> None:
        for sequence, values in list(producer.waiting):
            self.transmit(producer, sequence, values)

    def transmit(self, producer: SimulatedProducer, sequence: int, values: list[bytes]) -> None:
        now_ms = self.broker.clock.now_ms()
        batch = build_batch(
            [NewRecord(key=None, value=value, timestamp=now_ms) for value in values],
            producer_id=producer.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=producer.partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        self.broker.ask(request, 9).then(lambda answer: self.produced(answer, producer, sequence, values))

    def produced(self, answer: Pending, producer: SimulatedProducer, sequence: int, values: list[bytes]) -> None:
        result = answer.result().responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return  # the broker is stopping: to be repeated
        assert result.error_code == ErrorCode.NONE, result
        for number, value in enumerate(values):
            known = self.acknowledged[producer.partition].setdefault(result.base_offset + number, value)
            assert known == value, "an acknowledged offset was given to another record"
        producer.waiting = [(s, v) for s, v in producer.waiting if s != sequence]

    def let_time_pass(self) -> None:
        self.broker.clock.advance(self.chance.choice([0.5, 1, 5, 1000]))

    def read(self) -> None:
        partition = self.chance.randrange(PARTITIONS)
        start = self.chance.randint(0, max([0, *self.seen[partition]]))
        self.remember(partition, self.fetch(partition, start))

    def fetch(self, partition: int, offset: int) -> bytes:
        limit = self.chance.choice([1, 200, 1 << 20])
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limit)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])])
        data = self.broker.tell(request, 11).responses[0].partitions[0]
        assert data.error_code == ErrorCode.NONE, data
        return bytes(data.records or b"")

    def remember(self, partition: int, batches: bytes) -> None:
        """What a consumer saw once it must see for ever."""
        for _, batch in iter_batches(batches):
            for record in iter_records(batch):
                known = self.seen[partition].setdefault(record.offset, record.value)
                assert known == record.value, f"offset {record.offset} changed from {known} to {record.value}"

    def commit(self) -> None:
        offset = self.committed + 1
        item = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="note")
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[item])],
        )
        assert self.broker.tell(request, 7).topics[0].partitions[0].error_code == ErrorCode.NONE
        self.committed = offset

    def restart(self) -> None:
        if self.chance.random() < 0.7:
            self.broker.lose_power()
        else:
            self.broker.stop()
        self.broker.start()
        self.check()
        for producer in self.producers:
            self.repeat(producer)

    def check(self) -> None:
        for partition in range(PARTITIONS):
            stored = self.read_everything(partition)
            for offset, value in self.acknowledged[partition].items():
                assert stored.get(offset) == value, f"{value} was acknowledged at {offset}, found {stored.get(offset)}"
            for offset, value in self.seen[partition].items():
                assert stored.get(offset) == value, f"{value} was read at {offset}, found {stored.get(offset)}"
            assert sorted(stored) == list(range(len(stored))), "offsets have a gap"
            assert len(set(stored.values())) == len(stored), "a record was stored twice"
        request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])])
        committed = self.broker.tell(request, 5).topics[0].partitions[0]
        assert committed.committed_offset == self.committed
        assert committed.metadata == ("note" if self.committed >= 0 else "")

    def read_everything(self, partition: int) -> dict[int, bytes]:
        stored: dict[int, bytes] = {}
        next_offset = 0
        while True:
            batches = self.fetch(partition, next_offset)
            if not batches:
                return stored
            for header, batch in iter_batches(batches):
                stored |= {record.offset: record.value or b"" for record in iter_records(batch)}
                next_offset = header.next_offset


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_or_read_is_lost_when_power_fails(seed: int):
    try:
        Story(seed).run()
    except Exception as error:
        replay = f"ZURAU_SEED={seed} pytest {os.path.relpath(__file__)}"
        raise AssertionError(f"{error}\nreplay with: {replay}") from error
