"""A disk without room: what cannot be written is refused and told, and goes on by itself when there is room."""

from __future__ import annotations

import pytest

from zurau.broker.health import Kind
from zurau.broker.settings import BrokerSettings
from zurau.errors import DiskFault
from zurau.log.settings import LogSettings
from zurau.pending import start
from zurau.settings import MINUTE_MS
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode

SETTINGS = BrokerSettings(offsets_topic_num_partitions=1, disk_low_bytes=0)
#: Enough for a record or two, and for no file of epochs or snapshot beside it.
LITTLE = 75


@pytest.fixture
def epochs_in_their_file(monkeypatch):
    """As after many starts: the journal keeps no more marks of epochs, so a first flush needs room for their file."""
    monkeypatch.setattr("zurau.log.flushing.NOTED_MARKS_MAX", 0)


@pytest.fixture
def client() -> SimulatedClient:
    client = SimulatedClient(SimulatedBroker(1, LogSettings(), SETTINGS))
    client.create_topic("t")
    client.broker.clock.advance(1000)
    return client


@pytest.fixture
def broker(client):
    return client.broker


@pytest.fixture
def disk(broker):
    return broker.disk


def leave(disk, room: int) -> None:
    disk.capacity_bytes = disk.used_bytes + room


def make_room(broker) -> None:
    broker.disk.capacity_bytes = 1 << 40
    broker.clock.advance(3000)


def kinds(broker) -> list[str]:
    return [problem.kind for problem in broker.broker.health.problems()]


@pytest.mark.usefixtures("epochs_in_their_file")
def test_a_full_disk_at_the_file_of_epochs_stops_a_partition_only_until_there_is_room(broker, caplog, client, disk):
    leave(disk, LITTLE)
    assert client.produce("t", client.batch(b"a")).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert client.produce("t", client.batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert Kind.TAKES_NO_WRITES in kinds(broker)
    broker.clock.advance(MINUTE_MS)
    assert caplog.text.count("t-0 takes no writes until this works") == 1, "said once, though tried often"
    make_room(broker)
    assert client.produce("t", client.batch(b"c")).error_code == ErrorCode.NONE
    assert client.read("t") == [b"a", b"c"]
    assert kinds(broker) == []


def test_what_was_written_while_there_was_no_room_survives_a_power_failure(broker, client, disk):
    leave(disk, LITTLE)
    client.produce("t", client.batch(b"a"))
    make_room(broker)
    assert client.produce("t", client.batch(b"b")).error_code == ErrorCode.NONE
    broker.lose_power()
    broker.start()
    assert client.read("t") == [b"a", b"b"]


@pytest.mark.usefixtures("epochs_in_their_file")
def test_a_reader_waits_at_the_end_of_a_partition_that_takes_nothing(broker, client, disk):
    leave(disk, LITTLE)
    client.produce("t", client.batch(b"a"))
    waiting = client.fetch_later("t", 0, max_wait_ms=500, min_bytes=1)
    broker.clock.advance(400)
    assert not waiting.is_done
    broker.clock.advance(200)
    assert waiting.result().responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_topic_whose_partitions_had_no_room_is_open_as_soon_as_there_is(broker, client, disk):
    leave(disk, 120)
    assert client.create_topic("new") == ErrorCode.NONE
    assert client.produce("new", client.batch(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert Kind.CLOSED in kinds(broker)
    make_room(broker)
    assert client.produce("new", client.batch(b"a")).error_code == ErrorCode.NONE
    assert kinds(broker) == []


def test_a_closed_partition_that_somebody_asks_for_is_tried_before_its_time(broker, client, disk):
    leave(disk, 120)
    client.create_topic("new")
    broker.clock.advance(20 * MINUTE_MS)  # by now it is tried once a minute
    disk.capacity_bytes = 1 << 40
    client.produce("new", client.batch(b"a"))
    broker.clock.advance(1000)
    client.produce("new", client.batch(b"a"))
    broker.clock.advance(10)
    assert client.produce("new", client.batch(b"a")).error_code == ErrorCode.NONE


def test_a_closed_topic_can_be_deleted_and_created_anew(broker, client, disk):
    leave(disk, 120)
    client.create_topic("new")
    disk.capacity_bytes = 1 << 40
    assert client.delete_topic("new") == ErrorCode.NONE
    assert client.create_topic("new") == ErrorCode.NONE
    assert client.produce("new", client.batch(b"a")).error_code == ErrorCode.NONE
    broker.clock.advance(MINUTE_MS)
    assert client.read("new") == [b"a"]
    assert kinds(broker) == []


def test_groups_are_served_once_their_partition_could_be_opened(broker, client, disk):
    client.commit("t", 0)
    broker.stop()
    really_open = disk.open

    def refuse(path: str, *, create: bool = True):
        if path.startswith("__consumer_offsets-0/"):
            raise DiskFault(f"cannot open {path}: too many open files")
        return really_open(path, create=create)

    disk.open = refuse
    broker.start()
    assert client.commit("t", 0) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.open = really_open
    broker.clock.advance(3000)
    assert client.committed("t") == 0


@pytest.mark.usefixtures("epochs_in_their_file")
@pytest.mark.parametrize("retention", [{"retention.bytes": "2000"}, {"retention.ms": "1000"}])
def test_retention_makes_room_on_a_disk_that_has_none(broker, client, disk, retention):
    """Also while the partition itself cannot store the epoch of this start, which its first write needs."""
    client.create_topic("old", {"segment.ms": "1", **retention})
    for _ in range(20):
        client.produce("old", client.batch(b"x" * 300))
    broker.stop()
    broker.start()
    leave(disk, 370)  # for the next batch
    assert client.produce("old", client.batch(b"x" * 300)).error_code == ErrorCode.REQUEST_TIMED_OUT
    leave(disk, 0)
    broker.clock.advance(20 * MINUTE_MS)
    assert broker.broker.partition("old", 0).log.start_offset > 10
    assert client.produce("old", client.batch(b"y")).error_code == ErrorCode.NONE
    assert client.produce("t", client.batch(b"y")).error_code == ErrorCode.NONE


def test_deleting_records_without_room_changes_nothing(broker, client, disk):
    for value in (b"a", b"b"):
        client.produce("t", client.batch(value))
    partition = broker.broker.partition("t", 0)
    leave(disk, 0)
    with pytest.raises(Exception, match="full"):
        broker.wait(start(partition.delete_records_before(1)))
    assert partition.log.start_offset == 0
    make_room(broker)
    assert broker.wait(start(partition.delete_records_before(1))) == 1


def test_a_start_without_room_says_so_and_works_later(broker, client, disk):
    client.produce("t", client.batch(b"a"))
    broker.stop()
    leave(disk, 0)
    with pytest.raises(DiskFault, match="full"):
        broker.start()
    disk.capacity_bytes = 1 << 40
    broker.start()
    assert client.read("t") == [b"a"]
