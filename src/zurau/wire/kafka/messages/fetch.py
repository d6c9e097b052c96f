"""Fetch (key 1), versions 4 to 18: read batches from these offsets on, or wait until there are some.

Sessions (KIP-227) come with version 7, topics by id with version 13, and from version 16 on a broker that does not
lead a partition says who does (KIP-951). Followers fetch with the same request.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka import schema
from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, i64, since, string, tagged, until, uuid

#: From consumers, and from followers that do not say.
NO_DIRECTORY_ID = bytes(16)


class ReplicaState(Struct):
    replica_id: i32 = -1
    replica_epoch: i64 = -1


class FetchPartition(Struct, kw_only=True):
    partition: i32
    #: The epoch in which the client believes; -1: do not compare.
    current_leader_epoch: Annotated[i32, since(9)] = -1
    fetch_offset: i64
    #: The epoch of the last batch that the follower has.
    last_fetched_epoch: Annotated[i32, since(12)] = -1
    #: The follower's; -1 from consumers.
    log_start_offset: Annotated[i64, since(5)] = -1
    partition_max_bytes: i32
    #: The disk that the follower keeps the partition on.
    replica_directory_id: Annotated[uuid, tagged(0, since=17)] = NO_DIRECTORY_ID
    #: The high watermark that the follower knows; the greatest number: it does not say.
    high_watermark: Annotated[i64, tagged(1, since=18)] = 0x7FFFFFFFFFFFFFFF


class FetchTopic(Struct, kw_only=True):
    topic: Annotated[string, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = NO_TOPIC_ID
    partitions: list[FetchPartition]


class ForgottenTopic(Struct, kw_only=True):
    topic: Annotated[string, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = NO_TOPIC_ID
    partitions: list[i32]


class FetchRequest(Request["FetchResponse"], kw_only=True):
    api_key: ClassVar = 1
    flexible_since: ClassVar = 12

    cluster_id: Annotated[string | None, tagged(0, since=12)] = None
    #: The follower's broker id; -1 for a consumer. Later versions have it in `replica_state`.
    replica_id: Annotated[i32, until(14)] = -1
    replica_state: Annotated[ReplicaState, tagged(1, since=15)] = ReplicaState()
    #: Answer after this long even with less than `min_bytes`.
    max_wait_ms: i32
    min_bytes: i32
    max_bytes: i32 = 0x7FFFFFFF
    #: 0: up to the high watermark; 1: committed transactions only.
    isolation_level: i8 = 0
    session_id: Annotated[i32, since(7)] = 0
    #: -1: no session; 0: make one.
    session_epoch: Annotated[i32, since(7)] = -1
    topics: list[FetchTopic]
    #: Partitions to drop from the session.
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[string, since(11)] = ""


class EpochEndOffset(Struct):
    epoch: i32 = -1
    end_offset: i64 = -1


class LeaderIdAndEpoch(Struct):
    """Who leads instead; -1 when that is not known either."""

    leader_id: i32 = -1
    leader_epoch: i32 = -1


class SnapshotId(Struct):
    end_offset: i64 = -1
    epoch: i32 = -1


class AbortedTransaction(Struct):
    producer_id: i64
    first_offset: i64


class PartitionData(Struct, kw_only=True):
    partition_index: i32
    error_code: i16 = 0
    high_watermark: i64
    last_stable_offset: i64 = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    #: Set when the asker's log parted from ours: where its last common epoch ends here.
    diverging_epoch: Annotated[EpochEndOffset, tagged(0, since=12)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, tagged(1, since=12)] = LeaderIdAndEpoch()
    #: Unused: there are no snapshots to fetch.
    snapshot_id: Annotated[SnapshotId, tagged(2, since=12)] = SnapshotId()
    #: By first offset, ascending; null unless only committed records were asked for.
    aborted_transactions: list[AbortedTransaction] | None = None
    #: The broker to read from instead; -1: stay here.
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: schema.records | None = None


class FetchableTopicResponse(Struct):
    topic: Annotated[string, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = NO_TOPIC_ID
    partitions: list[PartitionData] = []


class NodeEndpoint(Struct):
    node_id: i32
    host: string
    port: i32
    rack: string | None = None


class FetchResponse(Message):
    api_key: ClassVar = 1
    flexible_since: ClassVar = 12

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(7)] = 0
    #: 0: no session, so the client sends full requests.
    session_id: Annotated[i32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    #: Addresses of the leaders named in `current_leader`.
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=16)] = []
