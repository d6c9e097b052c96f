"""What members of a group tell each other through the coordinator, which does not look inside.

Each member joins with its subscription. One of them is made leader: it sees every subscription and assigns the
partitions, and the others are told their part. The range assignor goes topic by topic: partitions in order,
members in order, in runs of equal length, where the first runs are one longer if it does not come out even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from zurau.ids import TopicPartition
from zurau.wire.kafka.codec import decode_versioned, encode_versioned
from zurau.wire.kafka.messages import consumer_protocol
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"
RANGE = "range"
#: What every consumer can read; later versions carry what cooperative assignors need.
VERSION = 0

Assignment = dict[str, list[TopicPartition]]


def encode_subscription(topics: Iterable[str]) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=sorted(topics)), VERSION)


def subscribed_topics(subscription: bytes) -> list[str]:
    return decode_versioned(ConsumerProtocolSubscription, subscription).topics


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    parts = [consumer_protocol.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in topics.items()]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=parts), VERSION)


def assigned_partitions(assignment: bytes) -> list[TopicPartition]:
    """Empty bytes stand for nothing assigned."""
    if not assignment:
        return []
    parts = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    return [TopicPartition(part.topic, index) for part in parts for index in part.partitions]


def assign_ranges(subscriptions: Mapping[str, Iterable[str]], partition_count: Callable[[str], int]) -> Assignment:
    """The assignment of each member, given the topics it asked for; topics that do not exist count no partitions."""
    members_of: dict[str, list[str]] = {}
    for member, topics in sorted(subscriptions.items()):
        for topic in topics:
            members_of.setdefault(topic, []).append(member)
    assignments: Assignment = {member: [] for member in subscriptions}
    for topic, members in sorted(members_of.items()):
        length, longer = divmod(partition_count(topic), len(members))
        first = 0
        for position, member in enumerate(members):
            after = first + length + (position < longer)
            assignments[member] += [TopicPartition(topic, index) for index in range(first, after)]
            first = after
    return assignments
