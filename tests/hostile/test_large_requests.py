"""Requests that list more than anybody has: the broker's memory stays small, and nobody else waits for long."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path

import pytest
from attack import WAIT_ALLOWED_S

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.describe_groups import DescribeGroupsRequest
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

#: A broker takes about 40 MB when it is idle, a request of 100,000 things about 50 while it is answered.
MEMORY_MB_ALLOWED = 250
MANY = 99_000


def commit_request(topic: str, first: int, count: int, note: str = "") -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=note)
        for index in range(first, first + count)
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return OffsetCommitRequest(group_id="readers", generation_id_or_member_epoch=-1, member_id="", topics=topics)


def join_request(*protocols: JoinGroupRequestProtocol) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="joiners",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=list(protocols),
    )


def peak_mb(pid: int) -> float:
    """The most memory that a process has held."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1000


@pytest.fixture
def nobody_notices(broker, watch):
    """Whatever a test does: the bystander waits for nothing, and memory stays within bounds."""
    bystander = watch(broker)
    yield
    assert bystander.finish() < WAIT_ALLOWED_S
    assert peak_mb(broker.pid) < MEMORY_MB_ALLOWED


REQUESTS = {
    "names of topics": (MetadataRequest(topics=[MetadataRequestTopic(name=f"no/{i}") for i in range(MANY)]), 12),
    "coordinators": (FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{i}" for i in range(MANY)]), 6),
    "groups": (DescribeGroupsRequest(groups=[f"g{i}" for i in range(MANY)]), 5),
    "leavers": (LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=f"m{i}") for i in range(MANY)]), 5),
    "protocols": (join_request(*(JoinGroupRequestProtocol(name=f"p{i}", metadata=b"") for i in range(MANY))), 3),
}


@pytest.mark.usefixtures("nobody_notices")
@pytest.mark.parametrize("listed", REQUESTS)
def test_a_list_of_a_hundred_thousand_is_answered(broker, connect, listed):
    request, version = REQUESTS[listed]
    assert connect(broker).ask(request, version)


@pytest.mark.usefixtures("nobody_notices")
def test_topics_that_are_made_by_asking_for_them_are_made_some_at_a_time(broker, connect):
    attacker = connect(broker)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=f"auto-{i}") for i in range(10_000)])
    codes = [topic.error_code for topic in attacker.ask(request, 12).topics]
    assert codes == [ErrorCode.NONE] * 500 + [ErrorCode.LEADER_NOT_AVAILABLE] * 9_500


@pytest.mark.usefixtures("nobody_notices")
def test_a_million_partitions_are_not_even_thought_of(broker, connect):
    topics = [CreatableTopic(name=f"t{i}", num_partitions=10_000, replication_factor=1) for i in range(100)]
    answer = connect(broker).ask(CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=True), 5)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}


@pytest.mark.usefixtures("nobody_notices")
def test_a_topic_of_two_thousand_partitions_is_opened_while_others_are_served(broker, connect):
    attacker = connect(broker)
    attacker.create_topic("wide", partitions=2000)
    deadline = time.monotonic() + 60
    while (code := attacker.fetch("wide", 0, partition=1999).error_code) == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        assert time.monotonic() < deadline, "nobody leads a partition that was made a minute ago"
    assert code == ErrorCode.NONE


@pytest.mark.usefixtures("nobody_notices")
def test_offsets_of_partitions_that_do_not_exist_are_not_kept(broker, connect):
    attacker = connect(broker)
    attacker.create_topic("narrow")
    answer = attacker.ask(commit_request("narrow", 1, MANY), 8)
    assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.usefixtures("nobody_notices")
def test_all_offsets_of_a_group_asked_for_a_thousand_times_take_the_memory_of_one_answer(broker, connect):
    attacker = connect(broker)
    attacker.create_topic("wide", partitions=1000)
    attacker.ask(commit_request("wide", 0, 1000, note="n" * 1000), 8)
    everything = OffsetFetchRequestGroup(group_id="readers", topics=None)
    with pytest.raises(ConnectionError):  # a gigabyte: too much to answer
        attacker.ask(OffsetFetchRequest(groups=[everything] * 1000), 8)
    assert "ask for less" in broker.log.read_text()


@pytest.mark.usefixtures("nobody_notices")
def test_the_settings_of_a_broker_asked_for_fifty_thousand_times_are_too_much_to_answer(broker, connect):
    resources = [DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)] * 49_000
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    with pytest.raises(ConnectionError):
        connect(broker).ask(request, 4)


@pytest.mark.usefixtures("nobody_notices")
def test_subscriptions_of_fifty_megabytes_are_refused_before_they_have_arrived(broker, connect):
    for _ in range(8):
        attacker = connect(broker)
        attacker.socket.sendall(struct.pack(">ihhi", 50_000_000, JoinGroupRequest.api_key, 3, 1))
        attacker.socket.sendall(bytes(20_000))
        assert attacker.socket.recv(1) == b""
    assert "one without records" in broker.log.read_text()


@pytest.mark.usefixtures("nobody_notices")
def test_members_who_say_too_much_find_the_group_full(broker, connect):
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(3_000_000))
    attackers = [connect(broker) for _ in range(8)]
    asked = [attacker.send(join_request(protocol), 3) for attacker in attackers]
    codes = sorted(attacker.receive(header).error_code for attacker, header in zip(attackers, asked, strict=True))
    assert codes == [ErrorCode.NONE] + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 7
