"""Which offsets a partition holds, and which one a moment in time points to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import CorruptRecords, check
from zurau.ids import Offset, TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class OffsetAndTimestamp(NamedTuple):
    """Both -1 when no record is that young."""

    offset: Offset
    timestamp_ms: int


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first offset at or after a timestamp in each partition; the two timestamps above are special."""
    topics = {partition.topic for partition in wanted}
    return cluster.retry(lambda: _ask_leaders(cluster, wanted, isolation), topics=topics)


def start_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
    found = list_offsets(cluster, dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
    return {partition: answer.offset for partition, answer in found.items()}


def end_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, Offset]:
    """One past the last record that a reader can see."""
    found = list_offsets(cluster, dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation=isolation)
    return {partition: answer.offset for partition, answer in found.items()}


def offsets_at_time(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, Offset]:
    """The first offset at or after a moment; the end of the partition when nothing is that young."""
    found = list_offsets(cluster, dict.fromkeys(partitions, timestamp_ms))
    too_young = [partition for partition, answer in found.items() if answer.offset < 0]
    ends = end_offsets(cluster, too_young) if too_young else {}
    return {partition: ends.get(partition, answer.offset) for partition, answer in found.items()}


def _ask_leaders(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, OffsetAndTimestamp]:
    found = {}
    for broker, partitions in cluster.by_leader(wanted).items():
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for partition in partitions:
            asked = ListOffsetsPartition(partition_index=partition.partition, timestamp=wanted[partition])
            topics.setdefault(partition.topic, []).append(asked)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
            timeout_ms=int(cluster.timeout_s * 1000),
        )
        for topic in cluster.ask_broker(broker, request).topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code == ErrorCode.CORRUPT_MESSAGE:
                    raise CorruptRecords.at(str(partition), "the broker cannot search it by time, it is damaged")
                check(answer.error_code, f"asking for offsets of {partition}")
                found[partition] = OffsetAndTimestamp(answer.offset, answer.timestamp)
    return found
