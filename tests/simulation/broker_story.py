"""One seed of a broker that is stopped, killed and loses power again and again.

Idempotent producers write with acks=all and repeat what was not acknowledged; others write to a compacted topic;
consumers read with odd limits and look up offsets by time; offsets are committed, many at a time. After a power
failure the disk keeps what was flushed and an arbitrary beginning of the rest; after a kill it keeps what was written.

The seed also draws the broker's constants, the sizes of records and batches, segments and indexes, so that a batch is
often larger than any window that it has to be read through.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.pending import Pending
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.records.record import Record
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.simulation.constants import as_text, constants, draw, from_text, needed
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

NUMBERS, FACTS, WIDE = "numbers", "facts", "wide"
PARTITIONS = 2
WIDE_PARTITIONS = 24
STEPS = 160
KEYS = [b"a", b"b", b"c", b"a key that is longer than its digest"]
MAX_TIMESTAMP = -3
#: The node is another one here.
ROOMS = ("records", "wire", "log", "journal", "partition", "machines", "api", "broker")
LIMITS = [0, 1, 60, 61, 200, 5000, 1 << 20]


@dataclass
class SimulatedProducer:
    """Sends batches of unique numbers to one partition and repeats them until they are acknowledged."""

    producer_id: int
    partition: int
    next_sequence: int = 0
    #: Sent, not acknowledged, oldest first: (sequence, values).
    waiting: list[tuple[int, list[bytes]]] = field(default_factory=list)


class Story:
    """A broker, its clients, and what they hold it to."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.broker = SimulatedBroker(seed, self.log_settings(), self.broker_settings())
        self.client = SimulatedClient(self.broker)
        self.longest = self.chance.choice([0, 0, 100, 3000, 30_000])
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
        compacted["delete.retention.ms"] = self.chance.choice(["0", "50", "2000"])
        assert self.client.create_topic(NUMBERS, partitions=PARTITIONS) == ErrorCode.NONE
        assert self.client.create_topic(FACTS, compacted) == ErrorCode.NONE
        assert self.client.create_topic(WIDE, partitions=WIDE_PARTITIONS) == ErrorCode.NONE
        self.producer_ids: set[int] = set()
        self.producers = [SimulatedProducer(self.new_producer_id(), n % PARTITIONS) for n in range(3)]
        self.count = 0
        self.acknowledged: dict[int, dict[int, bytes]] = {n: {} for n in range(PARTITIONS)}
        self.seen: dict[int, dict[int, bytes]] = {n: {} for n in range(PARTITIONS)}
        #: Of each key the last record that was acknowledged: its offset and value.
        self.facts: dict[bytes, tuple[int, bytes | None]] = {}
        self.committed: dict[int, tuple[int, str]] = {}

    def log_settings(self) -> LogSettings:
        return LogSettings(
            segment_bytes=self.chance.choice([300, 2000, 40_000, 1 << 20]),
            segment_ms=self.chance.choice([500, 7 * 86_400_000]),
            segment_index_bytes=self.chance.choice([16, 10 << 20]),
            index_interval_bytes=self.chance.choice([0, 100, 4096]),
        )

    def broker_settings(self) -> BrokerSettings:
        return BrokerSettings(
            offsets_topic_num_partitions=2,
            internal_segment_bytes=self.chance.choice([0, 300, 5000]),
            log_cleaner_backoff_ms=self.chance.choice([25, 500]),
            log_retention_check_interval_ms=self.chance.choice([25, 500]),
        )

    def new_producer_id(self) -> int:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        producer_id = self.broker.tell(request, 1).producer_id
        assert producer_id not in self.producer_ids, f"producer id {producer_id} was given before"
        self.producer_ids.add(producer_id)
        return producer_id

    def run(self) -> None:
        steps = [self.send, self.send, self.send, self.resend, self.replace_producer]
        steps += [self.state, self.state, self.state, self.commit, self.read, self.let_time_pass, self.let_time_pass]
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

    # Writing

    def value(self) -> bytes:
        """No other is like it; some are long."""
        self.count += 1
        return b"%d " % self.count + self.chance.randbytes(
            self.chance.choice([0, self.chance.randint(0, self.longest)])
        )

    def batch(self, pairs: list[tuple[bytes | None, bytes | None]], **facts: int) -> bytes:
        now_ms = self.broker.clock.now_ms()
        records = [NewRecord(key, value, timestamp=now_ms - n % 3) for n, (key, value) in enumerate(pairs)]
        return bytes(build_batch(records, compression=self.chance.choice(list(Compression)), **facts))

    def send(self) -> None:
        producer = self.chance.choice(self.producers)
        if len(producer.waiting) >= 4:
            return
        values = [self.value() for _ in range(self.chance.randint(1, 5))]
        producer.waiting.append((producer.next_sequence, values))
        producer.next_sequence += len(values)
        self.transmit(producer, *producer.waiting[-1])

    def replace_producer(self) -> None:
        """One that has nothing in flight ends, and another begins."""
        producer = self.chance.choice(self.producers)
        if not producer.waiting:
            producer.producer_id, producer.next_sequence = self.new_producer_id(), 0

    def resend(self) -> None:
        """An impatient client repeats what it has in flight, though the first copy may still arrive."""
        self.repeat(self.chance.choice(self.producers))

    def repeat(self, producer: SimulatedProducer) -> None:
        for sequence, values in list(producer.waiting):
            self.transmit(producer, sequence, values)

    def transmit(self, producer: SimulatedProducer, sequence: int, values: list[bytes]) -> None:
        facts = {"producer_id": producer.producer_id, "producer_epoch": 0, "base_sequence": sequence}
        batch = self.batch([(None, value) for value in values], **facts)
        answer = self.client.produce_later(NUMBERS, batch, index=producer.partition, timeout_ms=10_000)
        answer.then(lambda answer: self.produced(answer, producer, sequence, values))

    def produced(self, answer: Pending, producer: SimulatedProducer, sequence: int, values: list[bytes]) -> None:
        result = answer.result().responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return  # the broker is stopping: to be repeated
        assert result.error_code == ErrorCode.NONE, result
        for number, value in enumerate(values):
            known = self.acknowledged[producer.partition].setdefault(result.base_offset + number, value)
            assert known == value, "an acknowledged offset was given to another record"
        producer.waiting = [(s, v) for s, v in producer.waiting if s != sequence]

    def state(self) -> None:
        """Say something of some keys, or that there is nothing to say any more."""
        pairs = [
            (self.chance.choice(KEYS), None if self.chance.random() < 0.3 else self.value())
            for _ in range(self.chance.randint(1, 6))
        ]
        result = self.client.produce(FACTS, self.batch(pairs))
        assert result.error_code == ErrorCode.NONE, result
        self.facts |= {key: (result.base_offset + number, value) for number, (key, value) in enumerate(pairs)}

    def commit(self) -> None:
        """A group commits for many partitions at once, each with something to remember."""
        chosen = self.chance.sample(range(WIDE_PARTITIONS), self.chance.choice([1, 3, WIDE_PARTITIONS]))
        note = "note" * self.chance.choice([0, 1, self.chance.randint(0, self.longest) // 40])
        offsets = {index: (self.committed.get(index, (-1, ""))[0] + 1, note) for index in chosen}
        items = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=note)
            for index, (offset, note) in offsets.items()
        ]
        topics = [OffsetCommitRequestTopic(name=WIDE, partitions=items)]
        request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
        answers = self.broker.tell(request, 7).topics[0].partitions
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * len(chosen)
        self.committed |= offsets

    # Reading

    def let_time_pass(self) -> None:
        self.broker.clock.advance(self.chance.choice([0.5, 1, 5, 1000]))

    def read(self) -> None:
        partition = self.chance.randrange(PARTITIONS)
        start = self.chance.randint(0, max([0, *self.seen[partition]]))
        batches = self.fetch(NUMBERS, start, partition, min_bytes=self.chance.choice([0, 1, 1 << 30]))
        self.remember(partition, records_in(batches))

    def fetch(self, topic: str, offset: int, partition: int = 0, *, min_bytes: int = 0) -> bytes:
        """Batches from the offset on, at least one if there is one, whatever the limits."""
        limits = {name: self.chance.choice(LIMITS) for name in ("partition_max_bytes", "max_bytes")}
        data = self.client.fetch(
            topic,
            offset,
            index=partition,
            **limits,
            min_bytes=min_bytes,
            max_wait_ms=self.chance.choice([0, 1, 20]),
        )
        assert data.error_code == ErrorCode.NONE, data
        batches = bytes(data.records or b"")
        is_within = len(batches) <= min(limits.values()) or sum(1 for _ in iter_batches(batches)) == 1
        assert is_within, f"{len(batches)} bytes in several batches, asked for {limits}"
        return batches

    def remember(self, partition: int, records: list[Record]) -> None:
        """What a consumer saw once it must see for ever."""
        for record in records:
            known = self.seen[partition].setdefault(record.offset, record.value)
            assert known == record.value, f"offset {record.offset} changed from {known!r} to {record.value!r}"

    def read_everything(self, topic: str, partition: int = 0) -> list[Record]:
        """As a consumer does: it goes on behind the last batch it got, which may be empty after compaction."""
        found: list[Record] = []
        next_offset = 0
        while batches := self.fetch(topic, next_offset, partition):
            *_, (last, _) = iter_batches(batches)
            found += [record for record in records_in(batches) if record.offset >= next_offset]
            next_offset = last.next_offset
        return found

    def look_up(self, topic: str, partition: int, timestamp: int) -> tuple[int, int]:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
        answer = self.broker.tell(request, 7).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE, answer
        return answer.offset, answer.timestamp

    # What goes wrong, and what must hold then

    def restart(self) -> None:
        self.chance.choice([self.broker.lose_power, self.broker.lose_power, self.broker.kill, self.broker.stop])()
        self.broker.start()
        self.check()
        for producer in self.producers:
            self.repeat(producer)

    def check(self) -> None:
        for partition in range(PARTITIONS):
            self.check_numbers(partition)
        self.check_facts()
        self.check_commits()

    def check_numbers(self, partition: int) -> None:
        records = self.read_everything(NUMBERS, partition)
        stored = {record.offset: record.value for record in records}
        for offset, value in (self.acknowledged[partition] | self.seen[partition]).items():
            assert stored.get(offset) == value, f"{_brief(value)} was at {offset}, found {_brief(stored.get(offset))}"
        assert sorted(stored) == list(range(len(stored))), "offsets have a gap"
        assert len(set(stored.values())) == len(stored), "a record was stored twice"
        self.check_times(NUMBERS, partition, records)

    def check_facts(self) -> None:
        records = self.read_everything(FACTS)
        last = {record.key: record for record in records}
        for key, (offset, value) in self.facts.items():
            found = last.get(key)
            if found is None:
                assert value is None, f"of {key!r} nothing is left, though it was set at {offset}"
            else:
                assert (found.offset, found.value) == (offset, value), f"{key!r} of {offset} is that of {found.offset}"
        self.check_times(FACTS, 0, records)

    def check_times(self, topic: str, partition: int, records: list[Record]) -> None:
        nothing = (-1, -1)
        by_time = [(record.timestamp, -record.offset) for record in records]
        latest = max(by_time, default=(-1, 1))
        assert self.look_up(topic, partition, MAX_TIMESTAMP) == (-latest[1], latest[0])
        for timestamp in {self.chance.choice(by_time)[0] + self.chance.choice([-1, 0, 1]) for _ in by_time[:2]}:
            first = next(((one.offset, one.timestamp) for one in records if one.timestamp >= timestamp), nothing)
            found = self.look_up(topic, partition, timestamp)
            if found != first:  # then a compaction came in between
                assert self.read_everything(topic, partition) != records, f"{topic}-{partition} at {timestamp}"

    def check_commits(self) -> None:
        everywhere = [OffsetFetchRequestTopic(name=WIDE, partition_indexes=list(range(WIDE_PARTITIONS)))]
        answer = self.broker.tell(OffsetFetchRequest(group_id="g", topics=everywhere), 5)
        found = {one.partition_index: (one.committed_offset, one.metadata) for one in answer.topics[0].partitions}
        assert {index: what for index, what in found.items() if what[0] >= 0} == self.committed


def _brief(value: bytes | None) -> str:
    return repr(value if value is None or len(value) < 40 else value[:20] + b"...")


def tell_story(seed: int, values: Mapping[str, int] | None = None) -> None:
    """Run one seed, with its constants or the given ones. A failure says how to see it again."""
    drawn = draw(seed, *ROOMS) if values is None else values
    try:
        run_with(seed, drawn)
    except Exception as error:
        matter = needed(drawn, lambda fewer: _fails(seed, fewer))
        file = os.path.relpath(__file__).replace("broker_story", "test_broker_simulation")
        replay = f"ZURAU_SEED={seed} ZURAU_CONSTANTS={as_text(matter)} pytest {file}"
        raise AssertionError(f"{type(error).__name__}: {error}\nreplay with: {replay}") from error


def constants_asked_for() -> dict[str, int] | None:
    """Those of the environment, or None for those of each seed."""
    text = os.environ.get("ZURAU_CONSTANTS")
    return None if text is None else from_text(text)


def run_with(seed: int, values: Mapping[str, int]) -> None:
    """One story with these constants."""
    with constants(values):
        Story(seed).run()


def _fails(seed: int, values: Mapping[str, int]) -> bool:
    try:
        run_with(seed, values)
    except Exception:
        return True
    return False
