"""Whatever is asked of a controller, its log alone gives back its state, and it only ever answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    RegisterBroker,
    ReplaceConfigs,
)
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import encode_record
from zurau.machines.controller.snapshot import freeze
from zurau.machines.machine import Ticket

NAMES = st.sampled_from(["a.b", "a_b", "orders", "__consumer_offsets", "", "no such name!"])
TOPIC_IDS = st.integers(0, 5).map(lambda n: TopicId(bytes(15) + bytes([n])))
BROKER_IDS = st.integers(1, 4)
COUNTS = st.integers(-2, 6)
CONFIG_NAMES = st.sampled_from(["retention.ms", "cleanup.policy", "log.retention.ms", "log.cleanup.policy", "unknown"])
CONFIG_VALUES = st.sampled_from(["5", "-7", "compact", "delete,compact", "", "nan", None]) | st.text(max_size=5)
RESOURCES = st.tuples(st.sampled_from([2, 2, 4, 8, 0]), NAMES | BROKER_IDS.map(str))
REPLICAS = st.lists(BROKER_IDS, max_size=3)

COMMANDS = st.one_of(
    st.builds(RegisterBroker, BROKER_IDS.map(BrokerId), st.just(bytes(16)), st.binary(min_size=16, max_size=16)),
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


def new_controller() -> Controller:
    return Controller(BrokerSettings(), LogSettings())


def check_invariants(image: ClusterImage) -> None:
    assert {topic.name: topic for topic in image.topics_by_id.values()} == image.topics
    assert sorted(image.names_by_collision_key.values()) == sorted(image.topics)
    for topic in image.topics.values():
        assert [partition.index for partition in topic.partitions] == list(range(len(topic.partitions)))
        for partition in topic.partitions:
            assert len(set(partition.replicas)) == len(partition.replicas) == topic.replication_factor > 0
            assert set(partition.replicas) <= set(image.brokers)


@given(st.lists(COMMANDS, max_size=30))
def test_replaying_the_log_gives_the_same_image_whatever_was_asked(commands):
    controller, log = new_controller(), []
    for number, command in enumerate(commands):
        epoch = controller.image.epoch
        decision = controller.decide(Ticket(number), command, now_ms=0)
        ((ticket, reply),) = decision.replies
        assert ticket == number
        assert controller.image.epoch == epoch, "deciding alone changes nothing"
        assert not (isinstance(reply, Refused) and decision.records), "a refused command leaves no record"
        for record in decision.records:
            controller.apply(record)
        log.extend(decision.records)
        check_invariants(controller.image)

    replayed = new_controller()
    for record in log:
        replayed.apply(record)
    assert replayed.image == controller.image


@given(st.lists(COMMANDS, max_size=30))
def test_a_snapshot_gives_the_same_image_as_the_whole_log(commands):
    controller, restored = new_controller(), new_controller()
    for command in commands:
        for record in controller.decide(Ticket(0), command, now_ms=0).records:
            controller.apply(record)
    for record in freeze(controller.image)():
        restored.apply(encode_record(record))
    restored.image.epoch = controller.image.epoch  # it counts records, and a snapshot has fewer
    assert restored.image == controller.image
