"""ListOffsets, asked in real frames of a whole broker on an invented disk."""

from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.records.batch import HEADER_BYTES, seal
from zurau.records.builder import NewRecord, build_batch
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t")
    return client


@pytest.fixture
def ask(broker):
    def ask(timestamp: int, *, topic: str = "t", index: int = 0, epoch: int = -1, version: int = 10, **rest):
        wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])], **rest)
        return broker.tell(request, version).topics[0].partitions[0]

    return ask


@pytest.fixture
def now_ms(broker, client) -> int:
    """When the records of three batches are: now, a second later and half a second later."""
    now_ms = broker.clock.now_ms()
    for later_ms in (0, 1000, 500):
        batch = build_batch([NewRecord(None, b"v", timestamp=now_ms + later_ms + n) for n in (0, 1)])
        client.produce("t", bytes(batch))
    return now_ms


@pytest.mark.parametrize("version", APIS[2].versions)
def test_every_version_tells_both_ends(ask, now_ms, version):
    assert now_ms
    assert (ask(EARLIEST, version=version).offset, ask(LATEST, version=version).offset) == (0, 6)


def test_the_ends_of_an_empty_partition_are_the_same(ask, client):
    assert client
    assert (ask(EARLIEST).offset, ask(LATEST).offset, ask(LATEST).timestamp) == (0, 0, -1)


@pytest.mark.parametrize(
    ("later_ms", "offset", "found_ms"), [(-5, 0, 0), (0, 0, 0), (1, 1, 1), (2, 2, 1000), (1001, 3, 1001)]
)
def test_the_first_record_as_late_as_a_time_is_found(ask, now_ms, later_ms, offset, found_ms):
    found = ask(now_ms + later_ms)
    assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, offset, now_ms + found_ms)
    assert found.leader_epoch == 0


def test_a_time_after_all_records_finds_none(ask, now_ms):
    found = ask(now_ms + 5000)
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (ErrorCode.NONE, -1, -1, -1)


def test_the_record_with_the_largest_timestamp_is_found(ask, now_ms):
    found = ask(MAX_TIMESTAMP)
    assert (found.offset, found.timestamp) == (3, now_ms + 1001)


def test_an_empty_partition_has_no_largest_timestamp(ask, client):
    assert client
    assert (ask(MAX_TIMESTAMP).offset, ask(MAX_TIMESTAMP).timestamp) == (-1, -1)


def test_without_remote_storage_the_local_start_is_the_start_and_nothing_is_tiered(ask, now_ms):
    assert now_ms
    assert ask(EARLIEST_LOCAL).offset == 0
    assert ask(LATEST_TIERED).offset == -1


@pytest.mark.parametrize(("timestamp", "version"), [(-7, 10), (-(2**63), 10), (LATEST_TIERED, 8), (MAX_TIMESTAMP, 6)])
def test_a_negative_time_without_a_meaning_in_that_version_is_refused(ask, client, timestamp, version):
    assert client
    assert ask(timestamp, version=version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_partition_that_is_asked_for_twice_is_answered_once_with_an_error(broker, client):
    assert client
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (LATEST, EARLIEST)]
    answer = broker.tell(ListOffsetsRequest(topics=[ListOffsetsTopic("t", wanted)]), 10)
    assert [each.error_code for each in answer.topics[0].partitions] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_the_end_is_where_consumers_stop_and_not_where_the_log_does(ask, client, broker, isolation_level):
    broker.broker.world.flusher.delay_ms = 10_000
    client.produce_later("t", client.batch(b"a"), acks=1)
    assert ask(0, isolation_level=isolation_level).offset == -1
    began_ms = broker.clock.now_ms()
    assert ask(LATEST, isolation_level=isolation_level).offset == 1
    assert broker.clock.now_ms() - began_ms == 10_000, "counted before it was flushed"


def test_what_is_not_there_is_said_so(ask, client):
    assert client
    assert ask(LATEST, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(LATEST, index=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_another_leader_epoch_is_told(ask, client, broker):
    client.produce("t", client.batch(b"a"))
    broker.stop()
    broker.start()
    assert ask(LATEST, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(LATEST, epoch=9).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(LATEST, epoch=1).leader_epoch == 1


def store(broker, batch: bytearray) -> None:
    """Put what no producer may send any more, but once could, straight into the log."""
    seal(batch)
    broker.broker.partition("t", 0).append_own(batch)
    broker.clock.advance(1000)


def test_a_batch_whose_records_cannot_be_read_holds_no_answer(ask, client, broker):
    batch = bytearray(client.batch(b"garbage"))
    batch[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    store(broker, batch)
    assert ask(1).offset == -1
    client.produce("t", client.batch(b"sound"))
    assert ask(1).offset == 1
    assert ask(LATEST).offset == 2


def test_a_timestamp_that_no_answer_can_hold_is_no_answer(ask, client, broker):
    now_ms = broker.clock.now_ms()
    records = [NewRecord(None, b"", timestamp=now_ms), NewRecord(None, b"", timestamp=now_ms + 2**62)]
    batch = build_batch(records)
    batch[27:35] = (2**63 - 5).to_bytes(8, "big")  # the base timestamp
    batch[35:43] = now_ms.to_bytes(8, "big")  # the largest, so it says
    store(broker, batch)
    found = ask(MAX_TIMESTAMP)
    assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, 0, 2**63 - 5)
