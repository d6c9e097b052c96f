"""What consumers put into the opaque bytes of a group: a subscription when they join, an assignment when they sync.

Written with `encode_versioned`. Only tools and checks look inside; the group itself never needs to.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Struct, blob, i32, since, string


class TopicPartition(Struct):
    topic: string
    partitions: list[i32] = []


class ConsumerProtocolSubscription(Message):
    versions: ClassVar = range(4)

    topics: list[string] = []
    user_data: blob | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1)] = []
    generation_id: Annotated[i32, since(2)] = -1
    rack_id: Annotated[string | None, since(3)] = None


class ConsumerProtocolAssignment(Message):
    versions: ClassVar = range(4)

    assigned_partitions: list[TopicPartition] = []
    user_data: blob | None = None
