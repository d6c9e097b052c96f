"""What a change of the cluster's image means for this broker: carried out as it is committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from zurau.ids import TopicPartition
from zurau.machines.controller.changes import (
    BrokerAdded,
    BrokerConfigChanged,
    BrokerFencingChanged,
    Change,
    PartitionsAdded,
    PartitionStatesChanged,
    TopicAdded,
    TopicConfigChanged,
    TopicRemoved,
)
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.pending import start

if TYPE_CHECKING:
    from zurau.broker.broker import Broker


class ImageChanges:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def follow(self, changes: list[Change]) -> None:
        for change in changes:
            self._carry_out(change)
        removed = [change.topic for change in changes if isinstance(change, TopicRemoved)]
        self._broker.groups.forget_topics(frozenset((topic.name, topic.topic_id) for topic in removed))

    def _carry_out(self, change: Change) -> None:
        broker = self._broker
        match change:
            case TopicAdded(topic) | PartitionsAdded(topic):
                broker.elections.begin()
                self._begin_opening(topic)
            case TopicConfigChanged(topic):
                broker.placement.tune(topic, broker.settings_of(topic))
            case PartitionStatesChanged(topic, partitions):
                self._move(topic, partitions)
                broker.in_sync.tell(topic, partitions)
                broker.names.compare(topic, partitions)
            case BrokerFencingChanged(broker_id):
                broker.fenced_since_ms[broker_id] = broker.clock.now_ms()
            case BrokerAdded():
                broker.on_brokers(broker.image)
            case BrokerConfigChanged():
                start(self._tune_all())
            case TopicRemoved(topic):
                broker.placement.remove_topic(topic)
                broker.known_leaders.forget(topic.topic_id, len(topic.partitions))
                for partition in topic.partitions:
                    broker.troubles.forget(TopicPartition(topic.name, partition.index))
            case _:
                pass

    def _move(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> None:
        """Have the replicas that are here now, and those only."""
        broker = self._broker
        for name in broker.placement.remove_moved(topic, partitions):
            broker.groups.stop_on(name)
            broker.troubles.forget(name)
        if any(broker.broker_id in each.replicas and not broker.placement.has(topic, each) for each in partitions):
            self._begin_opening(topic)

    def _begin_opening(self, topic: TopicImage) -> None:
        """Not before the image holds this start: until then it may mean replicas of a directory that is lost, and to
        begin with nothing under their names would be to vote as if nothing had been promised. `open` opens them all."""
        if self._broker.broker_epoch >= 0:
            self._broker.openings.begin(topic)

    async def _tune_all(self) -> None:
        broker = self._broker
        for name in list(broker.image.topics):
            topic = broker.image.topics.get(name)
            if topic is not None:
                broker.placement.tune(topic, broker.settings_of(topic))
            if broker.world.turns.is_over():
                await broker.world.turns.next()
