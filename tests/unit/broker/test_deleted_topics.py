"""A topic that is deleted and made again begins anew, whatever came in between."""

from __future__ import annotations

from zurau.ids import TopicId, TopicPartition
from zurau.log.settings import LogSettings
from zurau.machines.groups.commands import CommitOffsets, NewOffset
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])],
    timeout_ms=60_000,
)


def commit(broker: SimulatedBroker, offset: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    answer = broker.tell(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


def committed(broker: SimulatedBroker) -> int:
    asked = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    (group,) = broker.tell(OffsetFetchRequest(groups=[asked]), 8).groups
    return group.topics[0].partitions[0].committed_offset


def test_a_new_topic_does_not_inherit_offsets_when_power_failed_during_the_deletion():
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.tell(CREATE, 5)
    commit(broker, 5)
    broker.broker.world.flusher.delay_ms = 500
    broker.tell(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
    broker.lose_power()
    broker.start()
    broker.tell(CREATE, 5)
    assert committed(broker) == -1


def test_whoever_made_a_topic_is_answered_though_it_is_deleted_before_its_first_vote_is_safe():
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.broker.world.flusher.delay_ms = 500
    made = broker.ask(CREATE, 5)
    while "t" not in broker.broker.image.topics:
        broker.clock.advance(1)
    assert not made.is_done
    broker.tell(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
    assert broker.wait(made).topics[0].name == "t"


def plant_offset_of_an_earlier_topic(broker: SimulatedBroker) -> None:
    """As it is when another broker had the group while the topic was deleted and made again, and was stopped then."""
    offsets = {TopicPartition("t", 0): NewOffset(5, topic_id=TopicId(bytes(range(16))))}
    broker.wait(broker.broker.groups_of("g").submit(CommitOffsets("g", -1, "", None, offsets)))


def test_an_offset_of_an_earlier_topic_of_the_same_name_is_not_shown():
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.tell(CREATE, 5)
    plant_offset_of_an_earlier_topic(broker)
    assert committed(broker) == -1
    commit(broker, 7)
    assert committed(broker) == 7


def test_offsets_of_an_earlier_topic_of_the_same_name_are_removed_when_groups_are_loaded():
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.tell(CREATE, 5)
    plant_offset_of_an_earlier_topic(broker)
    broker.stop()
    broker.start()
    broker.tell(CREATE, 5)  # which exists already: something to wait for
    assert not broker.broker.groups_of("g").machine.groups["g"].offsets
