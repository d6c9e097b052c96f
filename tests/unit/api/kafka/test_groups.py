"""The APIs of consumer groups, asked in real frames in every version that is served."""

from __future__ import annotations

import pytest

from zurau.api.kafka import describe_groups
from zurau.api.kafka.join_group import NAME_CHARACTERS_MAX
from zurau.api.response_memory import ResponseMemory, ResponseShare
from zurau.counters import Counters
from zurau.errors import ProtocolViolation
from zurau.log.settings import LogSettings
from zurau.settings import MIB
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_groups import DeleteGroupsRequest
from zurau.wire.kafka.messages.describe_groups import DescribeGroupsRequest
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from zurau.wire.kafka.messages.list_groups import ListGroupsRequest
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "readers"
EMPTY_SUBSCRIPTION = bytes(10)
UNKNOWN_ID = b"nobody has this!"


def versions(api_key):
    return range(APIS[api_key].first, APIS[api_key].last + 1)


@pytest.fixture
def broker():
    broker = SimulatedBroker(1, LogSettings())
    topic = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    return broker


def join(broker, version=9, **changes):
    """The answer to a join; new clients are given an id first."""
    fields = {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=EMPTY_SUBSCRIPTION)],
        **changes,
    }
    response = broker.tell(JoinGroupRequest(**fields), version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        response = broker.tell(JoinGroupRequest(**fields | {"member_id": response.member_id}), version)
    return response


def sync(broker, joined, version=5, **changes):
    shares = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")]
    fields = {"group_id": GROUP, "generation_id": joined.generation_id, "member_id": joined.member_id, **changes}
    return broker.tell(SyncGroupRequest(assignments=shares, **fields), version)


@pytest.fixture
def member(broker):
    """The only member of a stable group."""
    joined = join(broker)
    sync(broker, joined)
    return joined


def topic_id(broker, name):
    topic = broker.broker.image.topics.get(name)
    return UNKNOWN_ID if topic is None else topic.topic_id


def commit(broker, topic, offset, version=9, **changes):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="so far")
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id(broker, topic), partitions=[partition])]
    response = broker.tell(OffsetCommitRequest(group_id=GROUP, topics=topics, **changes), version)
    return response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", versions(10))
def test_the_broker_that_was_dialled_looks_after_a_group_in_every_version(broker, version):
    response = broker.tell(FindCoordinatorRequest(key=GROUP, coordinator_keys=[GROUP]), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "127.0.0.1", 9092)


@pytest.mark.parametrize(("key_type", "version"), [(1, 1), (1, 4), (2, 6)])
def test_other_coordinators_are_not_found_and_it_is_said_why(broker, key_type, version):
    request = FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"])
    response = broker.tell(request, version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code != 0, found.node_id) == (True, -1)
    assert "not served" in found.error_message


@pytest.mark.parametrize("version", versions(11))
def test_a_member_joins_in_every_version(broker, version):
    joined = join(broker, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [member.metadata for member in joined.members] == [EMPTY_SUBSCRIPTION]


def test_a_member_id_begins_with_who_it_is(broker):
    assert join(broker).member_id.startswith("simulated-")
    assert join(broker, group_id="other", group_instance_id="desk").member_id.startswith("desk-")


@pytest.mark.parametrize("version", versions(11))
def test_a_refused_join_is_answered_in_every_version(broker, version):
    refused = join(broker, version, session_timeout_ms=1)
    assert (refused.error_code, refused.generation_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, -1)
    assert refused.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(14))
def test_a_share_is_fetched_in_every_version(broker, version):
    synced = sync(broker, join(broker), version)
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    assert synced.protocol_name == ("range" if version >= 5 else None)


def test_a_refused_sync_is_answered_with_its_code(broker, member):
    assert sync(broker, member, generation_id=9).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", versions(12))
def test_a_heartbeat_is_answered_in_every_version(broker, member, version):
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member.member_id)
    assert broker.tell(beat, version).error_code == 0
    stale = HeartbeatRequest(group_id=GROUP, generation_id=9, member_id=member.member_id)
    assert broker.tell(stale, version).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", versions(13))
def test_a_member_leaves_in_every_version(broker, member, version):
    leavers = [MemberIdentity(member_id=member.member_id)]
    request = LeaveGroupRequest(group_id=GROUP, member_id=member.member_id, members=leavers)
    first, again = broker.tell(request, version), broker.tell(request, version)
    codes = [response.members[0].error_code if version >= 3 else response.error_code for response in (first, again)]
    assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID]


def test_leaving_without_a_group_name_is_refused(broker):
    assert broker.tell(LeaveGroupRequest(group_id=""), 5).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", versions(8))
def test_an_offset_is_committed_in_every_version(broker, version):
    assert commit(broker, "orders", 5, version) == 0


def test_an_offset_of_an_unknown_topic_is_refused_for_that_topic(broker):
    assert commit(broker, "nothing", 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_offset_of_an_unknown_topic_id_is_refused_for_that_topic(broker):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topics = [
        OffsetCommitRequestTopic(topic_id=given, partitions=[partition])
        for given in (UNKNOWN_ID, topic_id(broker, "orders"))
    ]
    response = broker.tell(OffsetCommitRequest(group_id=GROUP, topics=topics), 10)
    codes = [(topic.topic_id, topic.partitions[0].error_code) for topic in response.topics]
    assert codes == [(UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID), (topic_id(broker, "orders"), 0)]


def test_offsets_are_fetched_by_the_ids_of_their_topics(broker):
    commit(broker, "orders", 5)
    wanted = [
        OffsetFetchRequestTopics(topic_id=given, partition_indexes=[0])
        for given in (topic_id(broker, "orders"), UNKNOWN_ID)
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=wanted)])
    found = {
        topic.topic_id: (topic.partitions[0].committed_offset, topic.partitions[0].error_code)
        for topic in broker.tell(request, 10).groups[0].topics
    }
    assert found == {topic_id(broker, "orders"): (5, 0), UNKNOWN_ID: (-1, ErrorCode.UNKNOWN_TOPIC_ID)}


def test_a_refused_commit_is_refused_for_every_partition(broker, member):
    code = commit(broker, "orders", 5, generation_id_or_member_epoch=9, member_id=member.member_id)
    assert code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", [version for version in versions(9) if version < 8])
def test_offsets_of_one_group_are_fetched_in_every_version(broker, version):
    commit(broker, "orders", 5)
    wanted = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
    response = broker.tell(OffsetFetchRequest(group_id=GROUP, topics=wanted), version)
    found = [(part.committed_offset, part.metadata, part.error_code) for part in response.topics[0].partitions]
    assert (found, response.error_code) == ([(5, "so far", 0), (-1, "", 0)], 0)


@pytest.mark.parametrize("version", [version for version in versions(9) if version >= 8])
def test_offsets_of_many_groups_are_fetched_in_every_version(broker, version):
    commit(broker, "orders", 5)
    wanted = [OffsetFetchRequestTopics(name="orders", topic_id=topic_id(broker, "orders"), partition_indexes=[1])]
    groups = [OffsetFetchRequestGroup(group_id=GROUP), OffsetFetchRequestGroup(group_id="none", topics=wanted)]
    response = broker.tell(OffsetFetchRequest(groups=groups), version)
    found = [(group.group_id, group.topics[0].partitions[0].committed_offset) for group in response.groups]
    assert found == [(GROUP, 5), ("none", -1)]


def test_all_offsets_of_a_group_are_fetched_without_naming_them(broker):
    commit(broker, "orders", 5)
    response = broker.tell(OffsetFetchRequest(group_id=GROUP, topics=None), 7)
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("orders", 1)]


@pytest.mark.parametrize("version", versions(15))
def test_a_group_is_described_in_every_version(broker, member, version):
    request = DescribeGroupsRequest(groups=[GROUP, "none"], include_authorized_operations=version >= 3)
    here, none = broker.tell(request, version).groups
    assert (here.group_state, here.protocol_type, here.protocol_data) == ("Stable", "consumer", "range")
    assert [(each.member_assignment, each.client_host) for each in here.members] == [(b"mine", "/127.0.0.1")]
    assert none.group_state == "Dead"
    assert none.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@pytest.mark.parametrize("version", versions(16))
def test_groups_are_listed_in_every_version(broker, member, version):
    commit(broker, "orders", 5, member_id=member.member_id, generation_id_or_member_epoch=1)
    (listed,) = broker.tell(ListGroupsRequest(), version).groups
    assert (listed.group_id, listed.protocol_type) == (GROUP, "consumer")
    assert listed.group_state == ("Stable" if version >= 4 else "")
    assert listed.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize(
    ("filters", "count"),
    [({"states_filter": ["stable"]}, 1), ({"states_filter": ["Empty"]}, 0), ({"types_filter": ["Consumer"]}, 0)],
)
def test_listed_groups_are_filtered_by_state_and_type(broker, member, filters, count):
    assert len(broker.tell(ListGroupsRequest(**filters), 5).groups) == count


@pytest.mark.parametrize("version", versions(42))
def test_groups_are_deleted_in_every_version(broker, version):
    commit(broker, "orders", 5)
    response = broker.tell(DeleteGroupsRequest(groups_names=[GROUP, "none"]), version)
    assert [result.error_code for result in response.results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]


def delete_offsets(broker, topic):
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    return broker.tell(OffsetDeleteRequest(group_id=GROUP, topics=topics), 0)


def test_offsets_are_deleted_partition_by_partition(broker):
    commit(broker, "orders", 5)
    assert delete_offsets(broker, "orders").topics[0].partitions[0].error_code == 0
    unknown = delete_offsets(broker, "nothing").topics[0].partitions[0]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_an_unknown_group_are_not_deleted(broker):
    assert delete_offsets(broker, "orders").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_and_its_offsets_survive_a_restart(broker, member):
    commit(broker, "orders", 5, member_id=member.member_id, generation_id_or_member_epoch=1)
    broker.stop()
    broker.start()
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member.member_id)
    assert broker.tell(beat, 4).error_code == 0
    response = broker.tell(OffsetFetchRequest(group_id=GROUP, topics=None), 7)
    assert response.topics[0].partitions[0].committed_offset == 5


def test_offsets_of_partitions_that_do_not_exist_are_refused(broker):
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in (1, 2, -1)]
    topics = [OffsetCommitRequestTopic(name="orders", partitions=partitions)]
    request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    codes = [partition.error_code for partition in broker.tell(request, 9).topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_more_offsets_than_one_command_takes_are_committed_fetched_and_deleted_with_their_group(broker):
    wide = CreatableTopic(name="wide", num_partitions=350, replication_factor=1)
    broker.tell(CreateTopicsRequest(topics=[wide], timeout_ms=1000), 7)
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in range(350)]
    topics = [OffsetCommitRequestTopic(name="wide", partitions=partitions)]
    broker.tell(OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=topics), 9)
    listed = OffsetFetchRequestTopics(name="wide", partition_indexes=list(range(350)))
    for wanted in ([listed], None):
        asked = OffsetFetchRequestGroup(group_id=GROUP, topics=wanted)
        (group,) = broker.tell(OffsetFetchRequest(groups=[asked]), 9).groups
        assert [each.committed_offset for each in group.topics[0].partitions] == list(range(350))
    assert broker.tell(DeleteGroupsRequest(groups_names=[GROUP]), 2).results[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", versions(11)[5:])
def test_a_member_with_the_longest_of_names_is_given_an_id_that_can_be_said(broker, version):
    joined = join(broker, version, group_instance_id="n" * 32_767)
    assert joined.error_code == ErrorCode.NONE
    assert joined.member_id.startswith("n" * NAME_CHARACTERS_MAX + "-")
    assert sync(broker, joined, group_instance_id="n" * 32_767).error_code == ErrorCode.NONE


def test_a_group_is_described_as_often_as_it_is_named(broker, member):
    described = broker.tell(DescribeGroupsRequest(groups=[GROUP, "nobody", GROUP]), 5)
    assert [group.group_state for group in described.groups] == ["Stable", "Dead", "Stable"]


def test_groups_whose_members_say_more_than_an_answer_holds_are_described_in_several(broker, monkeypatch):
    sync(broker, join(broker, protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(70_000))]))
    assert len(broker.tell(DescribeGroupsRequest(groups=[GROUP] * 2), 5).groups) == 2
    monkeypatch.setattr(describe_groups, "RESPONSE_BYTES_MAX", 150_000)
    with pytest.raises(ProtocolViolation, match="describe fewer groups at a time"):
        broker.tell(DescribeGroupsRequest(groups=[GROUP] * 3), 5)


def test_the_memory_of_a_long_answer_is_counted_and_a_large_one_waits_for_room(broker):
    protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(70_000))]
    sync(broker, join(broker, session_timeout_ms=600_000, protocols=protocols))
    memory = ResponseMemory(8 * MIB, Counters())
    client = CLIENT._replace(responses=ResponseShare(memory))
    memory.changed(8 * MIB)
    small = broker.tell(DescribeGroupsRequest(groups=[GROUP]), 5, client)
    assert len(small.groups[0].members) == 1
    large = DescribeGroupsRequest(groups=[GROUP] * 20)
    with pytest.raises(ProtocolViolation, match="no memory for its answer"):
        broker.tell(large, 5, client)
    memory.changed(-memory.held_bytes)
    assert len(broker.tell(large, 5, client).groups) == 20
    assert memory.held_bytes >= 70_000 * 20
