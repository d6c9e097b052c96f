"""How far a query has read: an offset for each partition, as Spark keeps it in checkpoints.

The JSON is that of Spark's Kafka connector, `{"topic": {"partition": offset}}`, and always in the same order, because
Spark compares offsets as text.
"""

from __future__ import annotations

from collections.abc import Mapping

from zurau.ids import Offset, TopicPartition

Offsets = Mapping[TopicPartition, Offset]
OffsetsJson = dict[str, dict[str, Offset]]


def to_json(offsets: Offsets) -> OffsetsJson:
    document: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def from_json(document: Mapping[str, Mapping[str, Offset]]) -> dict[TopicPartition, Offset]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def in_words(partitions: object) -> str:
    """Partitions, sorted and readable, for error messages."""
    assert isinstance(partitions, set | dict)
    return ", ".join(str(partition) for partition in sorted(partitions))
