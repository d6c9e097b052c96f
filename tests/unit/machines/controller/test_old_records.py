"""A metadata log that was written before brokers had epochs and replicas had names, byte for byte."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.ids import BrokerId, ReplicaId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import MAY_BE_IGNORED, decode_record, encode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.controller.snapshot import freeze
from zurau.machines.machine import StateRecord

#: Broker 1; the topic "orders" with two partitions, then three, whose settings are changed; a block of producer ids;
#: a topic that is deleted again.
WRITTEN = [
    "0001000000000001000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00",
    (
        "00020000202122232425262728292a2b2c2d2e2f076f72646572730300000000020000000100000000010200000001"
        "00020d726574656e74696f6e2e6d7302350000"
    ),
    "00030000202122232425262728292a2b2c2d2e2f020000000202000000010000",
    "0005000002076f7264657273030d726574656e74696f6e2e6d7300000f636c65616e75702e706f6c69637908636f6d706163740000",
    "0006000000000000000003e800",
    "00020000404142434445464748494a4b4c4d4e4f05676f6e6502000000000200000001000100",
    "00040000404142434445464748494a4b4c4d4e4f00",
]


@pytest.fixture
def image():
    image = ClusterImage()
    for offset, written in enumerate(WRITTEN, 40):
        apply_record(image, decode_record(StateRecord(None, bytes.fromhex(written))), offset)
    return image


def test_a_registration_without_an_epoch_has_the_offset_at_which_it_was_written(image):
    broker = image.brokers[BrokerId(1)]
    assert (broker.broker_epoch, broker.listeners, broker.rack) == (40, (), None)
    assert broker.is_active


def test_replicas_without_names_are_called_by_their_brokers_directory(image):
    topic = image.topics["orders"]
    name = image.brokers[BrokerId(1)].directory_name
    assert [partition.replica_ids for partition in topic.partitions] == [(ReplicaId(BrokerId(1), name),)] * 3


def test_topics_from_before_there_were_modes_elect_their_leaders(image):
    topic = image.topics["orders"]
    assert not topic.is_in_sync_mode
    assert [(partition.leader, partition.in_sync) for partition in topic.partitions] == [(None, ())] * 3


def test_the_rest_is_as_it_was(image):
    assert image.topics["orders"].configs == {"cleanup.policy": "compact"}
    assert image.next_producer_id == 1000
    assert list(image.topics) == ["orders"]


def test_a_snapshot_holds_what_was_made_of_it(image):
    restored = ClusterImage()
    for record in freeze(image)():
        apply_record(restored, decode_record(encode_record(record)), 99)
    assert restored.brokers == image.brokers
    assert restored.topics == image.topics


def test_an_unknown_record_that_may_be_ignored_is_passed_over(cluster):
    unknown = StateRecord(None, (MAY_BE_IGNORED | 77).to_bytes(2) + b"whatever a later release writes")
    before = cluster.image.epoch
    cluster.controller.apply(unknown, len(cluster.records))
    assert cluster.image.epoch == before


def test_an_unknown_record_that_has_to_be_obeyed_stops_the_replay(cluster):
    with pytest.raises(CorruptData, match="at least as new"):
        cluster.controller.apply(StateRecord(None, b"\0\x4d\0\0"), len(cluster.records))


def test_a_snapshot_holds_leaders_and_in_sync_sets(cluster_of):
    cluster = cluster_of(3)
    cluster.create_orders(1, 2, 3)
    cluster.ask(CreateTopic("votes", bytes(16), 2, 3))
    cluster.lose_sight_of(1)
    restored = ClusterImage()
    for record in freeze(cluster.image)():
        apply_record(restored, decode_record(encode_record(record)), 99)
    restored.epoch = cluster.image.epoch
    assert restored == cluster.image
