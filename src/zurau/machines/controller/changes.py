"""What an applied record means for brokers, so that they can open, close and tune partitions.

The image already shows a change when it is told of. A record that concerns nobody (a block of producer ids) changes
nothing for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.ids import BrokerId
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.machines.machine import Value


class BrokerAdded(Value):
    """A broker registered: for the first time, or again after a restart."""

    broker_id: BrokerId


class BrokerFencingChanged(Value):
    """A broker was fenced or unfenced, or is about to stop."""

    broker_id: BrokerId


class BrokerRemoved(Value):
    """A broker was unregistered."""

    broker_id: BrokerId


class TopicAdded(Value):
    topic: TopicImage


class PartitionsAdded(Value):
    topic: TopicImage
    partitions: Sequence[PartitionImage]


class PartitionStatesChanged(Value):
    """Other leaders or in-sync sets, or replicas that have other names."""

    topic: TopicImage
    partitions: Sequence[PartitionImage]


class TopicRemoved(Value):
    """The topic as it last was."""

    topic: TopicImage


class TopicConfigChanged(Value):
    topic: TopicImage


class BrokerConfigChanged(Value):
    """`resource_name` is a broker id as text, or `ALL_BROKERS`."""

    resource_name: str


Change = (
    BrokerAdded
    | BrokerFencingChanged
    | BrokerRemoved
    | TopicAdded
    | PartitionsAdded
    | PartitionStatesChanged
    | TopicRemoved
    | TopicConfigChanged
    | BrokerConfigChanged
)
