"""A topic that is deleted and made again begins anew, whatever came in between."""

from __future__ import annotations

from zurau.log.settings import LogSettings
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
