"""The metadata log stays short, and a start from a snapshot gives the same cluster."""

from __future__ import annotations

import pytest

from zurau.broker import metadata_snapshots
from zurau.broker.metadata_log import METADATA_PARTITION
from zurau.errors import CorruptData
from zurau.log.settings import LogSettings
from zurau.partition.snapshots import list_snapshots
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest

DIRECTORY = str(METADATA_PARTITION)


@pytest.fixture
def broker(monkeypatch) -> SimulatedBroker:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 5)
    return SimulatedBroker(seed=1, log_settings=LogSettings())


def create(broker: SimulatedBroker, *names: str) -> None:
    for name in names:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    broker.clock.advance(10)


def delete(broker: SimulatedBroker, *names: str) -> None:
    broker.tell(DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000), 5)
    broker.clock.advance(10)


def metadata_log(broker: SimulatedBroker):
    return broker.broker.partitions[METADATA_PARTITION].log


def test_the_log_before_the_older_of_two_snapshots_goes(broker):
    for round_number in range(6):
        create(broker, *(f"t{round_number}-{number}" for number in range(3)))
        delete(broker, *(f"t{round_number}-{number}" for number in range(3)))
    older, _ = list_snapshots(broker.disk, DIRECTORY)
    assert metadata_log(broker).start_offset == older.offset > 0


@pytest.mark.parametrize("end", ["stop", "lose_power"])
def test_a_start_from_a_snapshot_gives_the_same_cluster(broker, end):
    create(broker, *(f"t{number}" for number in range(20)))
    delete(broker, "t3", "t4")
    known = broker.broker.image.topics
    assert list_snapshots(broker.disk, DIRECTORY)
    getattr(broker, end)()
    broker.start()
    assert broker.broker.image.topics == known


def test_the_snapshot_before_a_damaged_one_gives_the_same_cluster(broker):
    create(broker, *(f"t{number}" for number in range(40)))
    known = broker.broker.image.topics
    *_, newest = list_snapshots(broker.disk, DIRECTORY)
    broker.stop()
    broker.disk.replace_file(f"{DIRECTORY}/{newest.file_name}", b"nonsense")
    broker.start()
    assert broker.broker.image.topics == known


def test_a_broker_whose_snapshots_are_all_damaged_does_not_start(broker):
    create(broker, *(f"t{number}" for number in range(40)))
    assert metadata_log(broker).start_offset > 0
    broker.stop()
    for snapshot in list_snapshots(broker.disk, DIRECTORY):
        broker.disk.replace_file(f"{DIRECTORY}/{snapshot.file_name}", b"nonsense")
    with pytest.raises(CorruptData, match="no whole snapshot"):
        broker.start()


def test_a_broker_whose_snapshots_are_gone_does_not_start_with_half_a_cluster(broker):
    create(broker, *(f"t{number}" for number in range(40)))
    broker.stop()
    for snapshot in list_snapshots(broker.disk, DIRECTORY):
        broker.disk.remove(f"{DIRECTORY}/{snapshot.file_name}")
    with pytest.raises(CorruptData, match="no whole snapshot"):
        broker.start()
