"""The newest records of topics, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets, start_offsets
from zurau.ids import Offset, TopicPartition
from zurau.records.record import Record

Ends = Mapping[TopicPartition, tuple[Offset, Offset]]


def newest_offsets(cluster: Cluster, partitions: Iterable[TopicPartition], count: int) -> Ends:
    """From where to where the newest records lie: about so many of them, the same number in each partition."""
    partitions = sorted(partitions)
    starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions)
    each = -(-count // max(1, len(partitions)))
    return {one: (max(starts[one], ends[one] - each), ends[one]) for one in partitions}


def newest_records(cluster: Cluster, topic: str, count: int) -> list[Record]:
    cluster.retry(lambda: cluster.topic(topic))
    partitions = [TopicPartition(topic, one.index) for one in cluster.topic(topic).partitions]
    wanted = newest_offsets(cluster, partitions, count)
    found: list[Record] = []
    with Consumer(cluster) as consumer:
        consumer.assign({partition: start for partition, (start, _) in wanted.items()})
        while any(consumer.positions[partition] < end for partition, (_, end) in wanted.items()):
            found += [record for _, records, _ in consumer.poll() for record in records]
    return found[:count]
