"""How a fetch gathers what it answers with: each partition once, nothing held while it waits, nothing left behind."""

from __future__ import annotations

import pytest

from zurau.api.client import ConnectionState
from zurau.api.kafka import fetch
from zurau.api.kafka.call import Call
from zurau.api.kafka.reading import READING_BYTES
from zurau.api.response_memory import ResponseMemory, ResponseShare
from zurau.broker.settings import BrokerSettings
from zurau.counters import Counters
from zurau.ids import TopicPartition
from zurau.log.settings import LogSettings
from zurau.partition.partition import Partition
from zurau.pending import Running, start
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

SLOW_MS = 100
LONG_MS = 10_000


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t")
    return client


@pytest.fixture
def reads(monkeypatch) -> list[TopicPartition]:
    """Which partitions were read, as often as they were."""
    names, read = [], Partition.read

    def counted(partition, *where, **how):
        names.append(partition.name)
        return read(partition, *where, **how)

    monkeypatch.setattr(Partition, "read", counted)
    return names


def values(response, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in records_in(response.responses[0].partitions[partition].records)]


def fetch_of(topic: str, partitions: int = 1, **circumstances) -> FetchRequest:
    wanted = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 20) for n in range(partitions)]
    defaults = {"max_wait_ms": 0, "min_bytes": 1}
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=wanted)], **(defaults | circumstances))


def ask_with(broker, share: ResponseShare | None, request: FetchRequest) -> Running:
    """The handler itself, as a connection would run it."""
    call = Call(broker.broker, 12, "a client", CLIENT._replace(responses=share))
    running = start(fetch.handle(request, call))
    broker.clock.advance(0)  # it takes its turns
    return running


def test_a_partition_that_is_named_often_is_waited_for_once(client, broker):
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)] * 1000
    broker.ask(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=[FetchTopic(topic="t", partitions=wanted)]), 12)
    broker.clock.advance(0)
    assert len(broker.broker.partition("t", 0)._readers) == 1


def test_only_the_partition_that_has_more_is_looked_at_again(client, broker, reads):
    client.create_topic("two", partitions=2)
    poll = broker.ask(fetch_of("two", 2, min_bytes=2000, max_wait_ms=LONG_MS), 12)
    broker.clock.advance(1)
    client.produce("two", client.batch(b"x" * 1000), index=1)
    reads.clear()
    client.produce("two", client.batch(b"y" * 1000), index=1)
    broker.clock.advance(LONG_MS)
    assert values(poll.result(), partition=1) == [b"x" * 1000, b"y" * 1000]
    assert set(reads) == {TopicPartition("two", 1)}


def test_a_poll_that_has_too_little_holds_nothing_while_it_waits(client, broker):
    counters = Counters()
    share = ResponseShare(ResponseMemory(10**6, counters))
    client.produce("t", client.batch(b"x" * 10_000))
    poll = ask_with(broker, share, fetch_of("t", min_bytes=50_000, max_wait_ms=LONG_MS))
    assert (poll.is_done, counters.response_bytes) == (False, 0)
    broker.clock.advance(LONG_MS)
    assert len(poll.result().responses[0].partitions[0].records) == counters.response_bytes > 10_000


def test_a_poll_that_is_ended_leaves_no_wait_and_no_timer_behind(client, broker):
    poll = ask_with(broker, None, fetch_of("t", min_bytes=1, max_wait_ms=2**31 - 1))
    assert len(broker.broker.partition("t", 0)._readers) == 1
    poll.end()
    assert len(broker.broker.partition("t", 0)._readers) == 0
    assert not any(timer.callback for at_ms, _, timer in broker.clock._timers if at_ms > 2**30)


def test_a_poll_that_is_ended_wants_nothing_more_of_a_worker(client, broker):
    client.produce("t", client.batch(b"a"))
    broker.broker.world.workers.delay_ms = SLOW_MS
    broker.disk.forget_cached()
    counters = Counters()
    share = ResponseShare(ResponseMemory(10**6, counters))
    poll = ask_with(broker, share, fetch_of("t"))
    assert counters.response_bytes > 0
    poll.end()
    assert counters.response_bytes == 0


def test_a_fetch_that_waits_for_enough_looks_seldom(client, broker, reads):
    poll = client.fetch_later("t", max_wait_ms=1000, min_bytes=10**6, partition_max_bytes=10**6)
    for _ in range(500):
        client.produce_later("t", client.batch(b"a"), acks=1)
        broker.clock.advance(2)
    broker.clock.advance(1000)
    assert len(records_in(poll.result().responses[0].partitions[0].records)) > 50
    assert len(reads) < 60


def test_when_memory_for_answers_is_short_they_are_smaller(client, broker):
    memory = ResponseMemory(400_000, Counters())
    for _ in range(4):
        client.produce("t", client.batch(b"x" * 900))
    memory.changed(350_000)
    small = ask_with(broker, ResponseShare(memory), fetch_of("t")).result()
    assert len(values(small)) == 4  # 64 KiB are always granted while there is any room
    memory.changed(100_000)
    waiting = ask_with(broker, ResponseShare(memory), fetch_of("t"))
    assert not waiting.is_done
    memory.changed(-200_000)
    broker.clock.advance(0)
    assert len(values(waiting.result())) == 4


def test_a_fetch_that_finds_no_room_is_answered_with_nothing_in_the_end(client, broker):
    memory = ResponseMemory(10**6, Counters())
    memory.changed(10**6)
    client.produce("t", client.batch(b"a"))
    poll = ask_with(broker, ResponseShare(memory), fetch_of("t"))
    broker.clock.advance(999)
    assert not poll.is_done
    broker.clock.advance(1)
    data = poll.result().responses[0].partitions[0]
    assert (data.error_code, data.high_watermark, len(data.records)) == (ErrorCode.NONE, 1, 0)


def test_what_a_fetch_holds_while_it_waits_is_counted_by_its_partitions_and_given_back(client, broker):
    client.create_topic("wide", partitions=5)
    call = Call(broker.broker, 12, "a client", CLIENT._replace(connection=ConnectionState()))
    running = start(fetch.handle(fetch_of("wide", partitions=5, max_wait_ms=LONG_MS), call))
    broker.clock.advance(0)
    assert call.connection.waiting_bytes == 5 * READING_BYTES
    running.end()
    assert call.connection.waiting_bytes == 0
