"""Whatever is asked of a controller, its log alone gives back its state, and it only ever answers."""

from __future__ import annotations

from copy import deepcopy

from controller_play import Play, new_controller
from hypothesis import given
from hypothesis import strategies as st

from zurau.errors import Refused
from zurau.ids import BrokerId, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    BrokerHeartbeat,
    ConfigEdit,
    ControllerCommand,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectLeader,
    FinishReassignment,
    ReassignPartition,
    RegisterBroker,
    RenameReplica,
    ReplaceConfigs,
    UnregisterBroker,
)
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import encode_record
from zurau.machines.controller.snapshot import freeze
from zurau.machines.machine import Decision, RequestId, StateRecord

NAMES = st.sampled_from(["a.b", "a_b", "orders", "__consumer_offsets", "", "no such name!"])
TOPIC_IDS = st.integers(0, 5).map(lambda n: TopicId(bytes(15) + bytes([n])))
BROKER_IDS = st.integers(1, 4)
COUNTS = st.integers(-2, 6)
CONFIG_NAMES = st.sampled_from(["retention.ms", "cleanup.policy", "log.retention.ms", "log.cleanup.policy", "unknown"])
CONFIG_VALUES = st.sampled_from(["5", "-7", "compact", "delete,compact", "", "nan", None]) | st.text(max_size=5)
RESOURCES = st.tuples(st.sampled_from([2, 2, 4, 8, 0]), NAMES | BROKER_IDS.map(str))
REPLICAS = st.lists(BROKER_IDS, max_size=3)
PARTITIONS = st.builds(PartitionId, TOPIC_IDS, st.integers(-1, 3))
REPLICA_IDS = st.builds(ReplicaId, BROKER_IDS.map(BrokerId), st.sampled_from(["AAAAAAAA", "x"]))

COMMANDS = st.one_of(
    st.builds(RegisterBroker, BROKER_IDS.map(BrokerId), st.just(bytes(16)), st.binary(min_size=16, max_size=16)),
    st.builds(BrokerHeartbeat, BROKER_IDS.map(BrokerId), st.integers(0, 40), st.integers(0, 40)),
    st.builds(
        AlterPartition,
        PARTITIONS,
        REPLICA_IDS,
        st.integers(0, 2),
        st.integers(0, 2),
        st.lists(REPLICA_IDS, max_size=3).map(tuple),
        st.lists(st.integers(0, 40), max_size=3).map(tuple),
    ),
    st.builds(UnregisterBroker, BROKER_IDS.map(BrokerId)),
    st.builds(ElectLeader, PARTITIONS, st.booleans()),
    st.builds(ReassignPartition, PARTITIONS, st.none() | REPLICAS.map(tuple), st.text(max_size=3), st.booleans()),
    st.builds(FinishReassignment, PARTITIONS, st.integers(0, 2), st.lists(REPLICA_IDS, max_size=3).map(tuple)),
    st.builds(RenameReplica, BROKER_IDS.map(BrokerId), st.integers(0, 40), PARTITIONS, st.text(max_size=3)),
    st.builds(
        CreateTopic,
        NAMES,
        TOPIC_IDS,
        COUNTS,
        st.integers(-1, 3),
        assignments=st.just({}) | st.dictionaries(st.integers(0, 2), REPLICAS, max_size=3),
        configs=st.dictionaries(CONFIG_NAMES, CONFIG_VALUES, max_size=2),
        validate_only=st.booleans(),
        by_broker=st.booleans(),
    ),
    st.builds(DeleteTopic, TOPIC_IDS),
    st.builds(CreatePartitions, NAMES, COUNTS, st.none() | st.lists(REPLICAS, max_size=3), st.booleans()),
    st.builds(
        lambda resource, edits: AlterConfigs(*resource, edits),
        RESOURCES,
        st.lists(st.builds(ConfigEdit, CONFIG_NAMES, st.integers(0, 4), CONFIG_VALUES), max_size=3),
    ),
    st.builds(
        lambda resource, configs: ReplaceConfigs(*resource, configs),
        RESOURCES,
        st.dictionaries(CONFIG_NAMES, CONFIG_VALUES, max_size=2),
    ),
    st.builds(AllocateProducerIds, COUNTS),
)


def ask(controller: Controller, command: ControllerCommand, log: list[StateRecord]) -> tuple[Decision, object]:
    """A broker that registers is heard from at once, so that there is somebody to place replicas on."""
    decision = controller.decide(RequestId(len(log)), command, now_ms=0)
    ((_, reply),) = decision.replies
    for record in decision.records:
        controller.apply(record, len(log))
        log.append(record)
    if isinstance(command, RegisterBroker) and not isinstance(reply, Refused):
        epoch = controller.image.brokers[command.broker_id].broker_epoch
        ask(controller, BrokerHeartbeat(command.broker_id, epoch, metadata_offset=len(log)), log)
    return decision, reply


def check_topics(image: ClusterImage) -> None:
    assert {topic.name: topic for topic in image.topics_by_id.values()} == image.topics
    assert sorted(image.names_by_collision_key.values()) == sorted(image.topics)
    for topic in image.topics.values():
        assert [partition.index for partition in topic.partitions] == list(range(len(topic.partitions)))
        for partition in topic.partitions:
            assert len(set(partition.replicas)) == len(partition.replicas) > 0
            assert set(partition.replicas) <= set(image.brokers)


@given(st.lists(COMMANDS, max_size=30))
def test_replaying_the_log_gives_the_same_image_whatever_was_asked(commands):
    controller, log = new_controller(), []
    for command in commands:
        before = deepcopy(controller.image)
        decision, reply = ask(controller, command, log)
        is_proposal = isinstance(command, AlterPartition)  # which may be refused and count as a change
        assert not (isinstance(reply, Refused) and decision.records) or is_proposal, "a refusal leaves no record"
        assert decision.records or controller.image == before or isinstance(command, RegisterBroker)
        check_topics(controller.image)

    replayed = new_controller()
    for offset, record in enumerate(log):
        replayed.apply(record, offset)
    assert replayed.image == controller.image


@given(st.lists(COMMANDS, max_size=30))
def test_a_snapshot_gives_the_same_image_as_the_whole_log(commands):
    controller, restored, log = new_controller(), new_controller(), []
    for command in commands:
        ask(controller, command, log)
    for record in freeze(controller.image)():
        restored.apply(encode_record(record), len(log))
    restored.image.epoch = controller.image.epoch  # it counts records, and a snapshot has fewer
    assert restored.image == controller.image


@given(st.lists(st.tuples(st.integers(0, len(Play.KINDS) - 1), *[st.integers(0, 15)] * 3), max_size=60))
def test_leaders_and_in_sync_sets_hold_what_they_promise_whatever_happens(steps):
    Play().run(steps)
