"""Questions that no ordinary client asks, each with a name that says what is odd about it.

They are asked of brokers that hold: `ten` (ten records a second apart), `empty`, and `two` (two partitions). What a
question changes is in a topic or group that no other question uses.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from zurau.wire.kafka.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from zurau.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from zurau.wire.kafka.messages.delete_groups import DeleteGroupsRequest
from zurau.wire.kafka.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.describe_groups import DescribeGroupsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from zurau.wire.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest
from zurau.wire.kafka.schema import Message

FIRST_MS = int(time.time() * 1000) - 60_000
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)


@dataclass(frozen=True)
class Question:
    request: Message | bytes
    version: int = 0


Questions = dict[str, Question]


def all_questions() -> Questions:
    table: Questions = {}
    for add in (
        _list_offsets, _leader_epochs, _fetch, _create_topics, _topics, _delete_records, _metadata, _commits, _joins,
        _members, _producers, _coordinators, _configs, _frames,
    ):  # fmt: skip
        add(table)
    return table


def _list_offsets(table: Questions) -> None:
    def ask(
        name: str, timestamp: int = -1, *, topic: str = "ten", index: int = 0, epoch: int = -1, **rest: int
    ) -> None:
        wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])], **rest)  # type: ignore[arg-type]
        table[f"ListOffsets: {name}"] = Question(request, 8)

    for topic in ("ten", "empty"):
        for special in (*range(-8, 1), INT64_MIN, INT64_MAX):
            ask(f"{topic}, timestamp {special}", special, topic=topic)
    for name, timestamp in {
        "the first": FIRST_MS, "before the first": FIRST_MS - 1, "within": FIRST_MS + 4500, "the last": FIRST_MS + 9000,
        "behind the last": FIRST_MS + 9001,
    }.items():  # fmt: skip
        ask(f"timestamp of {name}", timestamp)
    for index in (-1, 1, INT32_MAX, INT32_MIN):
        ask(f"partition {index}", index=index)
    for epoch in (0, 1, INT32_MAX, -2):
        ask(f"epoch {epoch}", epoch=epoch)
    for level in (1, 2, -1, 127):
        ask(f"isolation level {level}", isolation_level=level)
    for replica in (-2, 0, 5, -3):
        ask(f"replica {replica}", replica_id=replica)
    for topic in ("unknown", "", "not a name"):
        ask(f"topic {topic!r}", topic=topic)
    table["ListOffsets: nothing"] = Question(ListOffsetsRequest(topics=[]), 8)
    twice = [ListOffsetsPartition(partition_index=0, timestamp=stamp) for stamp in (-1, -2)]
    table["ListOffsets: a partition twice"] = Question(ListOffsetsRequest(topics=[ListOffsetsTopic("ten", twice)]), 8)


def _leader_epochs(table: Questions) -> None:
    def ask(name: str, epoch: int, *, topic: str = "ten", index: int = 0, current: int = -1) -> None:
        wanted = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [wanted])])
        table[f"OffsetForLeaderEpoch: {name}"] = Question(request, 4)

    for topic in ("ten", "empty"):
        for epoch in (-1, -2, 0, 1, 100, INT32_MAX, INT32_MIN):
            ask(f"{topic}, epoch {epoch}", epoch, topic=topic)
    for current in (0, 1, -2, INT32_MAX):
        ask(f"current epoch {current}", 0, current=current)
    for index in (-1, 7):
        ask(f"partition {index}", 0, index=index)
    ask("an unknown topic", 0, topic="unknown")


def _fetch(table: Questions) -> None:
    def ask(
        name: str,
        offset: int = 0,
        *,
        topic: str = "ten",
        index: int = 0,
        epoch: int = -1,
        size: int = 1 << 20,
        **rest: int,
    ) -> None:
        wanted = FetchPartition(
            partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=size
        )
        facts = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20} | rest
        request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])], **facts)  # type: ignore[arg-type]
        table[f"Fetch: {name}"] = Question(request, 12)

    for offset in (0, 3, 9, 10, 11, -1, -2, INT64_MAX, INT64_MIN):
        ask(f"offset {offset}", offset)
    for size in (0, 1, 100, -1, INT32_MAX, INT32_MIN):
        ask(f"partition_max_bytes {size}", size=size)
        ask(f"max_bytes {size}", max_bytes=size)
        ask(f"min_bytes {size}", min_bytes=size, max_wait_ms=50)
    for wait in (-1, 1, INT32_MIN):
        ask(f"max_wait_ms {wait}", 10, max_wait_ms=wait, min_bytes=1)
    for epoch in (0, 5, -2, INT32_MAX):
        ask(f"epoch {epoch}", epoch=epoch)
    for level in (1, 2, -1):
        ask(f"isolation level {level}", isolation_level=level)
    for index in (-1, 1, INT32_MAX):
        ask(f"partition {index}", index=index)
    for topic in ("unknown", ""):
        ask(f"topic {topic!r}", topic=topic)
    ask("a session that is none", session_id=77, session_epoch=3)
    table["Fetch: nothing"] = Question(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 12)


def _create_topics(table: Questions) -> None:
    def ask(name: str, *topics: CreatableTopic) -> None:
        request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=True)
        table[f"CreateTopics: {name}"] = Question(request, 6)

    for name in ("", ".", "..", "a" * 249, "a" * 250, "a b", "ü", "a/b", "ten", "__consumer_offsets", "fine.name_1-x"):
        ask(f"the name {name[:20]!r}{len(name)}", CreatableTopic(name, 1, 1))
    for count in (0, -1, -2, INT32_MIN, 10_001, INT32_MAX):
        ask(f"{count} partitions", CreatableTopic("new", count, 1))
    for factor in (0, -1, -2, 2, 32767):
        ask(f"replication factor {factor}", CreatableTopic("new", 1, factor))
    ask("twice the same", CreatableTopic("new", 1, 1), CreatableTopic("new", 1, 1))
    ask("one good and one bad", CreatableTopic("new", 1, 1), CreatableTopic("a b", 1, 1))
    ask("none")
    for key, value in {
        "cleanup.policy": "nonsense", "retention.ms": "abc", "segment.bytes": "0", "max.message.bytes": "-1",
        "no.such.setting": "1", "compression.type": "brotli", "min.insync.replicas": "0", "": "1",
        "message.timestamp.type": "Never", "flush.messages": "0", "retention.bytes": "-2", "segment.ms": "0",
        "segment.jitter.ms": "-1", "segment.index.bytes": "3",
    }.items():  # fmt: skip
        ask(f"{key!r} = {value}", CreatableTopic("new", 1, 1, [], [CreatableTopicConfig(key, value)]))
    for size in (14, 1_048_575, 1_048_576):
        ask(f"segments of {size}", CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("segment.bytes", str(size))]))
    ask("a null value", CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("retention.ms", None)]))
    for name, assignments in {
        "one broker": [(0, [1])], "an unknown broker": [(0, [9])], "no brokers": [(0, [])],
        "a broker twice": [(0, [1, 1])],
        "a gap": [(0, [1]), (2, [1])], "a partition twice": [(0, [1]), (0, [1])], "not from 0": [(1, [1])],
        "a negative partition": [(-1, [1])],
    }.items():  # fmt: skip
        chosen = [CreatableReplicaAssignment(index, brokers) for index, brokers in assignments]
        ask(f"assigned to {name}", CreatableTopic("new", -1, -1, chosen))
    both = CreatableTopic("new", 1, 1, [CreatableReplicaAssignment(0, [1])])
    ask("a count and an assignment", both)


def _topics(table: Questions) -> None:
    def grow(name: str, topic: str, count: int, assignments: list[list[int]] | None = None) -> None:
        chosen = None if assignments is None else [CreatePartitionsAssignment(each) for each in assignments]
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, chosen)], 10_000, True)
        table[f"CreatePartitions: {name}"] = Question(request, 3)

    for count in (0, -1, 1, 2, 3, INT32_MIN):
        grow(f"two to {count}", "two", count)
    grow("an unknown topic", "unknown", 5)
    grow("the name ''", "", 5)
    grow("assigned", "two", 3, [[1]])
    grow("assigned too many", "two", 3, [[1], [1]])
    grow("assigned to an unknown broker", "two", 3, [[9]])
    grow("assigned to nobody", "two", 3, [[]])
    for names in (["unknown"], [""], ["unknown", "unknown"], ["not a name"], []):
        table[f"DeleteTopics: {names}"] = Question(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), 5)
    for time_ms in (0, -1, INT32_MIN):
        table[f"CreateTopics: {time_ms} ms"] = Question(CreateTopicsRequest([CreatableTopic("new", 1, 1)], time_ms), 6)
        enlarged = CreatePartitionsTopic("two", 3, None)
        table[f"CreatePartitions: {time_ms} ms"] = Question(CreatePartitionsRequest([enlarged], time_ms), 3)
        deleted = DeleteTopicsRequest(topic_names=["two"], timeout_ms=time_ms)
        table[f"DeleteTopics: {time_ms} ms"] = Question(deleted, 5)


def _delete_records(table: Questions) -> None:
    def ask(name: str, topic: str, offset: int, index: int = 0) -> None:
        request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])], 10_000)
        table[f"DeleteRecords: {name}"] = Question(request, 2)

    for offset in (0, -1, -2, 1, INT64_MAX, INT64_MIN):
        ask(f"empty, offset {offset}", "empty", offset)
    for offset in (0, 11, -2):
        ask(f"ten, offset {offset}", "ten", offset)
    for index in (-1, 5):
        ask(f"partition {index}", "empty", 0, index)
    ask("an unknown topic", "unknown", 0)


def _metadata(table: Questions) -> None:
    for names in (["unknown"], [""], ["a b"], ["ten"], ["unknown", "unknown"], ["a" * 250], []):
        wanted = [MetadataRequestTopic(name=name) for name in names]
        label = [name[:10] for name in names]
        table[f"Metadata: {label}"] = Question(MetadataRequest(wanted, allow_auto_topic_creation=False), 9)
    by_id = [MetadataRequestTopic(topic_id=bytes(range(16)), name=None)]  # type: ignore[arg-type]
    table["Metadata: an unknown id"] = Question(MetadataRequest(by_id, allow_auto_topic_creation=False), 12)


def _commits(table: Questions) -> None:
    def ask(
        name: str,
        offset: int = 5,
        *,
        group: str | None = None,
        topic: str = "ten",
        index: int = 0,
        epoch: int = -1,
        metadata: str | None = "",
        **rest: object,
    ) -> None:
        partition = OffsetCommitRequestPartition(index, offset, epoch, metadata)
        group = f"commits-{len(table)}" if group is None else group
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])], **rest
        )  # type: ignore[arg-type]
        table[f"OffsetCommit: {name}"] = Question(request, 8)
        back = OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[index])]
        )
        table[f"OffsetFetch: after {name}"] = Question(back, 7)

    for offset in (5, 0, -1, -2, 1000, INT64_MAX, INT64_MIN):
        ask(f"offset {offset}", offset)
    for index in (-1, 1, INT32_MAX):
        ask(f"partition {index}", index=index)
    for epoch in (0, 7, -2):
        ask(f"epoch {epoch}", epoch=epoch)
    ask("an unknown topic", topic="unknown")
    ask("the topic ''", topic="")
    ask("the group ''", group="")
    ask("no metadata", metadata=None)
    ask("4096 bytes of metadata", metadata="m" * 4096)
    ask("4097 bytes of metadata", metadata="m" * 4097)
    ask("a generation without a member", generation_id_or_member_epoch=5)
    ask("a member without a generation", member_id="somebody")
    ask("a member and a generation", member_id="somebody", generation_id_or_member_epoch=1)
    ask("an unknown instance", group_instance_id="nobody")
    everything = OffsetFetchRequest(group_id="nobody", topics=None)
    table["OffsetFetch: everything of an unknown group"] = Question(everything, 7)


def _joins(table: Questions) -> None:
    def ask(name: str, **odd: object) -> None:
        facts: dict[str, object] = {
            "group_id": f"joins-{len(table)}", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer", "protocols": [JoinGroupRequestProtocol("range", b"")],
        }  # fmt: skip
        table[f"JoinGroup: {name}"] = Question(JoinGroupRequest(**(facts | odd)), 7)  # type: ignore[arg-type]

    ask("without an id")
    for timeout in (0, -1, 1, 5999, 6000, 1_800_000, 1_800_001, INT32_MAX, INT32_MIN):
        ask(f"session timeout {timeout}", session_timeout_ms=timeout)
    for timeout in (0, -1, INT32_MIN):
        ask(f"rebalance timeout {timeout}", rebalance_timeout_ms=timeout)
    ask("no protocols", protocols=[])
    ask("no protocol type", protocol_type="")
    ask("the group ''", group_id="")
    ask("an unknown member", member_id="nobody")
    ask("an unknown member with an instance", member_id="nobody", group_instance_id="instance")


def _members(table: Questions) -> None:
    for group in ("nobody", ""):
        table[f"Heartbeat: the group {group!r}"] = Question(HeartbeatRequest(group, 1, "m"), 4)
        table[f"SyncGroup: the group {group!r}"] = Question(SyncGroupRequest(group, 1, "m"), 3)
        leave = LeaveGroupRequest(group, members=[MemberIdentity("m")])
        table[f"LeaveGroup: the group {group!r}"] = Question(leave, 4)
        table[f"DescribeGroups: the group {group!r}"] = Question(DescribeGroupsRequest([group]), 5)
        table[f"DeleteGroups: the group {group!r}"] = Question(DeleteGroupsRequest([group]), 2)
    table["Heartbeat: without a member"] = Question(HeartbeatRequest("nobody", -1, ""), 4)
    table["LeaveGroup: nobody"] = Question(LeaveGroupRequest("nobody", members=[]), 4)
    table["DescribeGroups: none"] = Question(DescribeGroupsRequest([]), 5)


def _producers(table: Questions) -> None:
    for name, facts in {
        "a timeout of 0": {"transaction_timeout_ms": 0}, "a timeout of -1": {"transaction_timeout_ms": -1},
        "an id and no epoch": {"transaction_timeout_ms": 1, "producer_id": 5},
        "an epoch and no id": {"transaction_timeout_ms": 1, "producer_epoch": 5},
        "an id and an epoch": {"transaction_timeout_ms": 1, "producer_id": 5, "producer_epoch": 5},
        "the transactional id ''": {"transaction_timeout_ms": 1000, "transactional_id": ""},
    }.items():  # fmt: skip
        table[f"InitProducerId: {name}"] = Question(InitProducerIdRequest(**facts), 4)  # type: ignore[arg-type]


def _coordinators(table: Questions) -> None:
    for kind in (0, 2, 3, -1, 127):
        table[f"FindCoordinator: kind {kind}"] = Question(FindCoordinatorRequest(key="g", key_type=kind), 3)
    table["FindCoordinator: the key ''"] = Question(FindCoordinatorRequest(key=""), 3)
    table["FindCoordinator: no keys"] = Question(FindCoordinatorRequest(coordinator_keys=[]), 4)
    table["FindCoordinator: a key twice"] = Question(FindCoordinatorRequest(coordinator_keys=["g", "g"]), 4)


def _configs(table: Questions) -> None:
    for kind, name in (
        (0, ""),
        (2, "unknown"),
        (2, ""),
        (2, "not a name"),
        (4, "99"),
        (4, "x"),
        (99, "ten"),
        (-1, "ten"),
    ):
        wanted = DescribeConfigsResource(kind, name, ["retention.ms", "no.such.setting"])
        table[f"DescribeConfigs: kind {kind}, {name!r}"] = Question(DescribeConfigsRequest([wanted]), 4)
    known = DescribeConfigsResource(2, "ten", ["no.such.setting"])
    table["DescribeConfigs: an unknown setting"] = Question(DescribeConfigsRequest([known]), 4)


def _frames(table: Questions) -> None:
    def header(key: int, version: int, client: bytes = b"\xff\xff") -> bytes:
        return struct.pack(">hhi", key, version, 7) + client

    frames = {
        "an unknown API": header(9999, 0), "a negative API": header(-1, 0), "Metadata 127": header(3, 127),
        "Metadata -1": header(3, -1), "nothing": b"", "one byte": b"\0", "half a header": b"\0\x03\0\x09\0\0",
        "a client id that is too long": header(3, 1, b"\x00\x64ab"),
        "a client id of length -2": header(3, 1, b"\xff\xfe"),
        "Metadata without a body": header(3, 1),
        "Metadata with a huge count": header(3, 1) + struct.pack(">i", INT32_MAX),
        "Metadata with a count of -2": header(3, 1) + struct.pack(">i", -2),
        "Metadata with bytes behind it": header(3, 1) + struct.pack(">i", 0) + b"abc",
        "Metadata with half a name": header(3, 1) + struct.pack(">ih", 1, 100) + b"abc",
        "Heartbeat with a null group": header(12, 1) + struct.pack(">h", -1) + bytes(20),
        "ApiVersions 99": header(18, 99) + b"\0",
    }  # fmt: skip
    for name, frame in frames.items():
        table[f"Frame: {name}"] = Question(struct.pack(">i", len(frame)) + frame)
    for size in (-1, INT32_MIN, INT32_MAX, 104_857_601):
        table[f"Frame: a size of {size}"] = Question(struct.pack(">i", size) + bytes(100))
