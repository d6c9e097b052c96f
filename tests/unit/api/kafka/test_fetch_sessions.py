"""Fetch sessions (KIP-227), asked in real frames of a whole broker on an invented disk."""

from __future__ import annotations

import pytest

from zurau.api.client import ConnectionState
from zurau.api.kafka.reading import READING_BYTES
from zurau.broker.fetch_sessions import EVICTABLE_AFTER_MS
from zurau.broker.settings import BrokerSettings
from zurau.ids import NO_TOPIC_ID, TopicPartition
from zurau.log.settings import LogSettings
from zurau.partition.partition import Partition
from zurau.settings import INT32_MAX, MIB
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

LONG_MS = 10_000
#: Longer than it takes to ask some questions.
MOMENT_MS = 20
NAMES, IDS = 12, 17


class Consumer:
    """A client with a connection of its own, which reads topic `t`."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.state = ConnectionState()
        self.client = CLIENT._replace(connection=self.state)
        self.session = self.epoch = 0

    def ask(self, offsets=None, *, forgets=(), version=NAMES, max_wait_ms=0, min_bytes=1, topic="t", **rest):
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MIB)
            for index, offset in (offsets or {}).items()
        ]
        image = self.broker.broker.image.topics.get(topic)
        topic_id = NO_TOPIC_ID if image is None else image.topic_id
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forgets))],
            **rest,
        )
        self.epoch += 1
        return self.broker.ask(request, version, self.client)

    def fetch(self, offsets=None, **circumstances):
        response = self.broker.wait(self.ask(offsets, **circumstances))
        if response.session_id:
            self.session = response.session_id
        return response


def told(response) -> dict[int, list[bytes | None]]:
    """The values of each partition that is named."""
    return {
        data.partition_index: [record.value for record in records_in(data.records)]
        for topic in response.responses
        for data in topic.partitions
    }


def errors(response) -> dict[int, int]:
    return {data.partition_index: data.error_code for topic in response.responses for data in topic.partitions}


@pytest.fixture
def broker() -> SimulatedBroker:
    settings = BrokerSettings(offsets_topic_num_partitions=1, max_incremental_fetch_session_cache_slots=2)
    return SimulatedBroker(1, LogSettings(), settings)


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t", partitions=3)
    return client


@pytest.fixture
def consumer(broker, client) -> Consumer:
    return Consumer(broker)


@pytest.fixture
def reads(monkeypatch) -> list[TopicPartition]:
    """Which partitions were looked at, as often as they were."""
    names, look = [], Partition.readable_upto

    def counted(partition, **how):
        names.append(partition.name.partition)
        return look(partition, **how)

    monkeypatch.setattr(Partition, "readable_upto", counted)
    return names


@pytest.mark.parametrize("version", [7, NAMES, 13, IDS])
def test_the_first_fetch_tells_of_all_and_gives_a_session(client, consumer, version):
    response = consumer.fetch({0: 0, 1: 0, 2: 0}, version=version)
    assert (response.error_code, set(told(response))) == (ErrorCode.NONE, {0, 1, 2})
    assert response.session_id > 0
    assert consumer.fetch(version=version).error_code == ErrorCode.NONE


def test_a_fetch_that_names_nothing_is_told_of_what_has_more_and_of_nothing_else(client, consumer, reads):
    consumer.fetch({0: 0, 1: 0, 2: 0})
    client.produce("t", client.batch(b"a"), index=1)
    reads.clear()
    assert told(consumer.fetch()) == {1: [b"a"]}
    assert reads == [1]


def test_what_is_not_named_anew_is_read_from_the_same_offset_again(client, consumer):
    consumer.fetch({0: 0, 1: 0})
    client.produce("t", client.batch(b"a"), index=1)
    consumer.fetch()
    assert told(consumer.fetch()) == {1: [b"a"]}
    assert told(consumer.fetch({1: 1})) == {}


def test_nobody_is_looked_at_in_a_session_in_which_nothing_happens(consumer, reads):
    consumer.fetch({0: 0, 1: 0, 2: 0})
    reads.clear()
    assert told(consumer.fetch()) == {}
    assert reads == []


def test_a_long_poll_of_a_session_wakes_for_any_of_its_partitions(client, consumer, broker):
    consumer.fetch({0: 0, 1: 0, 2: 0})
    for index in (2, 0):
        poll = consumer.ask(max_wait_ms=LONG_MS)
        assert not poll.is_done
        client.produce("t", client.batch(b"a"), index=index)
        assert told(broker.wait(poll)) == {index: [b"a"]}
        consumer.fetch({index: 1})


def test_a_poll_of_a_session_gathers_until_it_has_enough_and_tells_all_of_it(client, consumer, broker):
    consumer.fetch({0: 0, 1: 0})
    size = len(client.batch(b"a"))
    poll = consumer.ask(max_wait_ms=LONG_MS, min_bytes=3 * size)
    for index, value in ((0, b"a"), (1, b"b")):
        client.produce("t", client.batch(value), index=index)
    assert not poll.is_done
    client.produce("t", client.batch(b"c"), index=0)
    assert told(broker.wait(poll)) == {0: [b"a", b"c"], 1: [b"b"]}


def test_what_had_no_room_comes_before_what_had_some(client, consumer):
    for index in (0, 1, 2):
        client.produce("t", client.batch(b"x" * 1000), index=index)
    consumer.fetch({0: 0, 1: 0, 2: 0}, max_bytes=1)
    given = [next(index for index, values in told(consumer.fetch(max_bytes=1)).items() if values) for _ in range(4)]
    assert given == [1, 2, 0, 1]


def test_a_higher_high_watermark_is_told_although_there_is_no_room_for_records(client, consumer):
    for index in (0, 1):
        client.produce("t", client.batch(b"a"), index=index)
    consumer.fetch({0: 0, 1: 0}, max_bytes=1)
    client.produce("t", client.batch(b"b"), index=0)
    response = consumer.fetch(max_bytes=1)
    assert told(response) == {0: [], 1: [b"a"]}
    assert [data.high_watermark for data in response.responses[0].partitions] == [1, 2]


def test_a_log_that_begins_later_is_told(client, consumer, broker):
    client.produce("t", client.batch(b"a", b"b"))
    consumer.fetch({0: 0})
    start = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    broker.tell(DeleteRecordsRequest(topics=[start], timeout_ms=100), 2)
    data = consumer.fetch({0: 2}).responses[0].partitions[0]
    assert (data.log_start_offset, data.error_code) == (2, ErrorCode.NONE)
    assert told(consumer.fetch()) == {}


def test_an_error_is_told_until_it_is_none_any_more(client, consumer):
    consumer.fetch({0: 5, 1: 0})
    for _ in range(2):
        assert errors(consumer.fetch(max_wait_ms=LONG_MS)) == {0: ErrorCode.OFFSET_OUT_OF_RANGE}
    assert errors(consumer.fetch({0: 0})) == {0: ErrorCode.NONE}
    assert errors(consumer.fetch()) == {}


def test_what_is_forgotten_is_not_told_any_more(client, consumer, broker):
    consumer.fetch({0: 0, 1: 0})
    consumer.fetch(forgets=[1, 2])
    client.produce("t", client.batch(b"a"), index=1)
    assert told(consumer.fetch()) == {}
    assert len(broker.broker.partition("t", 1)._readers) == 0


def test_a_session_of_which_all_is_forgotten_ends(consumer, broker):
    consumer.fetch({0: 0})
    assert consumer.fetch(forgets=[0], max_wait_ms=LONG_MS).session_id == 0
    assert len(broker.broker.fetch_sessions) == 0


def test_partitions_join_a_session_later(client, consumer):
    consumer.fetch({0: 0})
    assert set(told(consumer.fetch({1: 0}))) == {1}
    client.produce("t", client.batch(b"a"), index=1)
    assert told(consumer.fetch()) == {1: [b"a"]}


@pytest.mark.parametrize(("version", "code"), [
    (NAMES, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (IDS, ErrorCode.UNKNOWN_TOPIC_ID),
])  # fmt: skip
def test_a_deleted_topic_is_an_error_at_once_also_when_there_is_another_of_its_name(
    client, consumer, broker, version, code
):
    consumer.fetch({0: 0}, version=version)
    poll = consumer.ask(version=version, max_wait_ms=LONG_MS)
    client.delete_topic("t")
    assert errors(broker.wait(poll)) == {0: code}
    client.create_topic("t")
    assert errors(consumer.fetch(version=version)) == {0: ErrorCode.NONE if version == NAMES else code}


def test_a_session_that_nobody_gave_is_unknown(consumer):
    consumer.session, consumer.epoch = 99, 1
    response = consumer.fetch()
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


@pytest.mark.parametrize("epoch", [2, INT32_MAX])
def test_a_fetch_out_of_order_is_refused_and_changes_nothing(client, consumer, epoch):
    consumer.fetch({0: 0})
    consumer.epoch = epoch
    assert consumer.fetch({1: 0}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    consumer.epoch = 1
    assert consumer.fetch().error_code == ErrorCode.NONE
    assert consumer.state.waiting_bytes == READING_BYTES


def test_after_the_greatest_epoch_comes_one(consumer, broker):
    consumer.fetch({0: 0})
    broker.broker.fetch_sessions.find(consumer.session).epoch = consumer.epoch = INT32_MAX
    consumer.fetch()
    consumer.epoch = 1
    assert consumer.fetch().error_code == ErrorCode.NONE


@pytest.mark.parametrize(("first", "then"), [(NAMES, 13), (13, NAMES)])
def test_a_session_with_names_has_no_ids_and_the_other_way_round(consumer, first, then):
    consumer.fetch({0: 0}, version=first)
    assert consumer.fetch(version=then).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_fetch_that_names_everything_ends_the_session_before_it(consumer, broker, epoch):
    old = consumer.fetch({0: 0}).session_id
    consumer.epoch = epoch
    assert (consumer.fetch({1: 0}).session_id > 0) == (epoch == 0)
    assert broker.broker.fetch_sessions.find(old) is None
    assert len(broker.broker.partition("t", 0)._readers) == 0


def test_a_session_ends_with_its_connection_and_gives_back_what_it_held(consumer, broker):
    consumer.fetch({0: 0, 1: 0})
    assert consumer.state.waiting_bytes == 2 * READING_BYTES
    consumer.state.end()
    assert (len(broker.broker.fetch_sessions), consumer.state.waiting_bytes) == (0, 0)
    assert len(broker.broker.partition("t", 0)._readers) == 0


def test_nobody_reads_on_in_the_session_of_another_connection(consumer, broker):
    consumer.fetch({0: 0})
    stranger = Consumer(broker)
    stranger.session, stranger.epoch = consumer.session, 1
    assert stranger.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    stranger.epoch = -1
    stranger.fetch()
    assert consumer.fetch().error_code == ErrorCode.NONE


# Slots


def test_who_finds_no_slot_is_served_without_a_session(broker, consumer):
    consumer.fetch({0: 0})
    Consumer(broker).fetch({0: 0})
    response = Consumer(broker).fetch({0: 0, 1: 0, 2: 0})
    assert (response.session_id, set(told(response))) == (0, {0, 1, 2})
    assert len(broker.broker.partition("t", 2)._readers) == 0


def test_a_session_that_was_not_used_for_long_gives_way(broker, consumer):
    other = Consumer(broker)
    other.fetch({0: 0})
    consumer.fetch({0: 0, 1: 0})
    broker.clock.advance(EVICTABLE_AFTER_MS - MOMENT_MS)
    other.fetch()
    assert Consumer(broker).fetch({0: 0}).session_id == 0
    broker.clock.advance(MOMENT_MS)
    other.fetch()
    assert Consumer(broker).fetch({0: 0}).session_id > 0
    assert consumer.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert other.fetch().error_code == ErrorCode.NONE


def test_a_smaller_session_gives_way_to_a_larger_one_when_it_is_old_enough(broker, consumer):
    large = Consumer(broker)
    consumer.fetch({0: 0})
    large.fetch({0: 0, 1: 0})
    for _ in range(2):
        broker.clock.advance(EVICTABLE_AFTER_MS // 2 - MOMENT_MS)
        consumer.fetch()
        large.fetch()
    assert Consumer(broker).fetch({0: 0, 1: 0}).session_id == 0
    broker.clock.advance(2 * MOMENT_MS)
    assert Consumer(broker).fetch({0: 0}).session_id == 0
    assert Consumer(broker).fetch({0: 0, 1: 0}).session_id > 0
    assert large.fetch().error_code == ErrorCode.NONE
    assert consumer.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_poll_in_a_session_that_has_to_go_is_answered(broker, consumer):
    other = Consumer(broker)
    consumer.fetch({0: 0})
    other.fetch({0: 0, 1: 0})
    poll = consumer.ask(max_wait_ms=2 * EVICTABLE_AFTER_MS)
    broker.clock.advance(EVICTABLE_AFTER_MS + MOMENT_MS)
    other.fetch()
    assert Consumer(broker).fetch({0: 0}).session_id > 0
    assert (poll.is_done, consumer.state.waiting_bytes) == (True, 0)


def test_there_are_as_many_sessions_as_memory_is_set_aside_for():
    settings = BrokerSettings(offsets_topic_num_partitions=1, queued_max_request_bytes=MIB)
    broker = SimulatedBroker(1, LogSettings(), settings)
    SimulatedClient(broker).create_topic("t", partitions=500)
    fitting = MIB // 4 // READING_BYTES
    assert Consumer(broker).fetch(dict.fromkeys(range(fitting + 1), 0)).session_id == 0
    assert Consumer(broker).fetch(dict.fromkeys(range(fitting), 0)).session_id > 0
