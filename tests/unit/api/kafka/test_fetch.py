"""Fetch, asked in real frames of a whole broker on an invented disk."""

from __future__ import annotations

import gc

import pytest

from zurau.api.kafka.reading import Reading, Readings
from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.records.compression import Compression
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

SLOW_MS = 100
LONG_MS = 10_000


@pytest.fixture
def broker() -> SimulatedBroker:
    settings = BrokerSettings(offsets_topic_num_partitions=1, fetch_max_bytes=5000)
    return SimulatedBroker(1, LogSettings(), settings)


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t")
    return client


def values(response, topic: int = 0, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in records_in(response.responses[topic].partitions[partition].records)]


def two_partitions(topic: str = "two", **circumstances) -> FetchRequest:
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (0, 1)]
    defaults = {"max_wait_ms": 0, "min_bytes": 0}
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=wanted)], **(defaults | circumstances))


@pytest.mark.parametrize("version", APIS[1].versions)
def test_every_version_reads_what_was_written(client, broker, version):
    client.produce("t", client.batch(b"a", b"b"))
    topic_id = broker.broker.image.topics["t"].topic_id
    response = broker.wait(client.fetch_later("t", topic_id=topic_id, version=version))
    data = response.responses[0].partitions[0]
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (ErrorCode.NONE, 2, 2)
    assert values(response) == [b"a", b"b"]


def test_nothing_of_a_fetch_without_a_session_waits_for_the_garbage_collector(client, broker):
    client.produce("t", client.batch(b"a"))

    def count() -> int:
        return sum(isinstance(each, Reading | Readings) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = count()
        response = broker.wait(client.fetch_later("t"))
        assert (values(response), count()) == ([b"a"], before)
    finally:
        gc.enable()


def test_a_long_poll_wakes_when_records_are_committed_and_not_when_they_are_written(client, broker):
    broker.broker.world.flusher.delay_ms = SLOW_MS
    poll = client.fetch_later("t", max_wait_ms=LONG_MS, min_bytes=1)
    client.produce_later("t", client.batch(b"a"), acks=1)
    broker.clock.advance(SLOW_MS - 1)
    assert not poll.is_done
    broker.clock.advance(1)
    assert values(poll.result()) == [b"a"]


def test_a_long_poll_ends_with_nothing_when_its_time_is_over(client, broker):
    poll = client.fetch_later("t", max_wait_ms=500, min_bytes=1)
    broker.clock.advance(499)
    assert not poll.is_done
    broker.clock.advance(1)
    assert values(poll.result()) == []
    assert len(broker.broker.partition("t", 0)._readers) == 0


def test_a_poll_gathers_batches_until_it_has_enough(client, broker):
    size = len(client.batch(b"a"))
    poll = client.fetch_later("t", max_wait_ms=LONG_MS, min_bytes=2 * size + 1)
    for value in (b"a", b"b"):
        client.produce("t", client.batch(value))
        assert not poll.is_done
    client.produce("t", client.batch(b"c"))
    assert values(poll.result()) == [b"a", b"b", b"c"]


def test_a_partition_gives_whole_batches_up_to_its_limit(client):
    for value in (b"a", b"b", b"c"):
        client.produce("t", client.batch(value))
    size = len(client.batch(b"a"))
    assert [r.value for r in records_in(client.fetch("t", partition_max_bytes=2 * size + 5).records)] == [b"a", b"b"]


@pytest.mark.parametrize("limit", [0, 1, 61])
def test_the_first_batch_is_given_however_small_the_limits_are(client, limit):
    client.produce("t", client.batch(b"a"))
    client.produce("t", client.batch(b"b"))
    data = client.fetch("t", partition_max_bytes=limit, max_bytes=limit)
    assert [record.value for record in records_in(data.records)] == [b"a"]


def test_a_whole_response_keeps_to_its_limit_and_still_tells_of_every_partition(client, broker):
    client.create_topic("two", partitions=2)
    for index in (0, 1):
        client.produce("two", client.batch(b"x" * 1000), index=index)
    response = broker.tell(two_partitions(max_bytes=1500), 12)
    first, second = response.responses[0].partitions
    assert (len(records_in(first.records)), len(records_in(second.records))) == (1, 0)
    assert (second.error_code, second.high_watermark, second.log_start_offset) == (ErrorCode.NONE, 1, 0)


def test_the_broker_has_a_limit_of_its_own(client):
    for _ in range(10):
        client.produce("t", client.batch(b"x" * 1000))
    data = client.fetch("t", max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1)
    assert len(records_in(data.records)) == 4


def test_who_wants_more_than_it_has_room_for_gets_what_fits_when_its_time_is_over(client, broker):
    client.create_topic("two", partitions=2)
    poll = broker.ask(two_partitions(max_bytes=500, min_bytes=5000, max_wait_ms=1000), 12)
    for index in (0, 1, 0, 1):
        client.produce("two", client.batch(b"x" * 400), index=index)
    assert not poll.is_done
    broker.clock.advance(1000)
    assert values(poll.result()) == [b"x" * 400]


def test_a_batch_that_begins_before_the_offset_is_given_whole(client):
    client.produce("t", client.batch(b"a", b"b", b"c"))
    assert [record.offset for record in records_in(client.fetch("t", 2).records)] == [0, 1, 2]


@pytest.mark.parametrize("offset", [-1, 0, 4])
def test_an_offset_out_of_range_is_answered_with_the_range(client, broker, offset):
    client.produce("t", client.batch(b"a", b"b", b"c"))
    start = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    broker.tell(DeleteRecordsRequest(topics=[start], timeout_ms=100), 2)
    data = client.fetch("t", offset)
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (data.log_start_offset, data.high_watermark) == (1, 3)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_what_is_written_and_not_committed_is_not_given(client, broker, isolation_level):
    client.produce("t", client.batch(b"a"))
    broker.broker.world.flusher.delay_ms = SLOW_MS
    client.produce_later("t", client.batch(b"b", b"c"), acks=1)
    for offset in (1, 2, 3):
        data = client.fetch("t", offset, isolation_level=isolation_level)
        assert (data.error_code, bytes(data.records), data.high_watermark) == (ErrorCode.NONE, b"", 1)


def test_read_committed_gets_a_list_of_aborted_transactions(client):
    assert client.fetch("t", isolation_level=1).aborted_transactions == []
    assert client.fetch("t", isolation_level=0).aborted_transactions is None


def test_an_unknown_topic_id_is_said_so(client):
    assert client.fetch("", topic_id=b"x" * 16, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_id_of_a_topic_that_was_created_anew_is_unknown(client, broker):
    old_id = broker.broker.image.topics["t"].topic_id
    client.delete_topic("t")
    client.create_topic("t")
    assert client.fetch("", topic_id=old_id, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_reader_in_another_leader_epoch_is_told(client, broker):
    broker.stop()
    broker.start()
    client.produce("t", client.batch(b"a"))
    epoch = broker.broker.partition("t", 0).leader_epoch
    assert client.fetch("t", current_leader_epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert client.fetch("t", current_leader_epoch=epoch).error_code == ErrorCode.NONE


def test_a_reader_that_is_behind_a_new_leader_epoch_is_fenced(client, broker):
    client.produce("t", client.batch(b"a"))
    broker.stop()
    broker.start()
    assert client.fetch("t", current_leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_reader_whose_history_parts_from_ours_is_told_where(client):
    client.produce("t", client.batch(b"a"))
    data = client.fetch("t", 5, last_fetched_epoch=0)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
    assert bytes(data.records) == b""


def test_a_poll_of_a_topic_that_is_deleted_meanwhile_ends_at_once(client):
    poll = client.fetch_later("t", max_wait_ms=LONG_MS, min_bytes=1)
    client.delete_topic("t")
    assert poll.result().responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_bytes_that_are_not_in_memory_are_read_by_a_worker(client, broker):
    client.produce("t", client.batch(b"a"))
    broker.broker.world.workers.delay_ms = SLOW_MS
    broker.disk.forget_cached()
    poll = client.fetch_later("t")
    assert not poll.is_done
    broker.clock.advance(SLOW_MS)
    assert values(poll.result()) == [b"a"]


def test_old_clients_are_not_given_zstd(client):
    client.produce("t", client.batch(b"a" * 500, compression=Compression.ZSTD))
    assert client.fetch("t", version=9).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert len(records_in(client.fetch("t", version=10).records)) == 1


def test_a_request_for_nothing_is_answered_with_nothing_at_once(broker):
    poll = broker.ask(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=[]), 12)
    assert poll.result().responses == []


def test_a_partition_that_is_named_twice_is_answered_once_as_its_last_mention_wants(client, broker):
    client.produce("t", client.batch(b"a"))
    client.produce("t", client.batch(b"b"))
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000) for offset in (0, 1)]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=wanted)])
    response = broker.tell(request, 12)
    assert len(response.responses[0].partitions) == 1
    assert values(response) == [b"b"]
