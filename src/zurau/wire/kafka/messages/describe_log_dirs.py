"""DescribeLogDirs (key 35), versions 1 to 5: how many bytes does each partition take, and on which disk?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i16, i32, i64, since, string


class DescribableLogDirTopic(Struct):
    topic: string
    partitions: list[i32]


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    api_key: ClassVar = 35
    flexible_since: ClassVar = 2

    #: Null: everything.
    topics: list[DescribableLogDirTopic] | None = None


class DescribeLogDirsPartition(Struct):
    partition_index: i32
    partition_size: i64
    #: How far behind the high watermark this replica is.
    offset_lag: i64
    #: True for a copy that is being moved here from another disk.
    is_future_key: boolean


class DescribeLogDirsTopic(Struct):
    name: string
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Struct, kw_only=True):
    error_code: i16 = 0
    log_dir: string
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[i64, since(4)] = -1
    usable_bytes: Annotated[i64, since(4)] = -1
    is_cordoned: Annotated[boolean, since(5)] = False


class DescribeLogDirsResponse(Message):
    api_key: ClassVar = 35
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(3)] = 0
    results: list[DescribeLogDirsResult] = []
