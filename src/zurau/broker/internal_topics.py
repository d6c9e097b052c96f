"""Topics that brokers make for themselves, and how these get more replicas as brokers come.

The first broker of a cluster makes them with itself as the only replica. The controller's broker looks now and then
whether there are brokers for more, and moves a few partitions at a time: consumer groups go on meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from zurau.broker.lost_replicas import new_name
from zurau.broker.settings import BrokerSettings
from zurau.ids import BrokerId, PartitionId, TopicId
from zurau.machines.controller.commands import CreateTopic, ReassignPartition
from zurau.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from zurau.machines.controller.names import OFFSETS_TOPIC
from zurau.pending import Pending
from zurau.ports import Randomness, Timer, World

#: How often it is looked whether there are brokers for more replicas.
GROW_INTERVAL_MS = 2000
#: Partitions that are on their way at a time.
GROWN_AT_ONCE = 8


def offsets_topic(settings: BrokerSettings, randomness: Randomness, brokers: int) -> CreateTopic:
    """The topic that holds consumer groups, in a cluster of so many brokers."""
    return CreateTopic(
        name=OFFSETS_TOPIC,
        topic_id=TopicId(randomness.bytes(16)),
        partition_count=settings.offsets_topic_num_partitions,
        replication_factor=min(settings.offsets_topic_replication_factor, brokers),
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
        by_broker=True,
    )


class InternalTopicGrowth:
    """`is_controller`: whether this broker decides at present; the others leave it to that one."""

    def __init__(
        self,
        image: Callable[[], ClusterImage],
        is_controller: Callable[[], bool],
        submit: Callable[[ReassignPartition], Pending[None]],
        world: World,
        factor: int,
    ) -> None:
        self._image = image
        self._is_controller = is_controller
        self._submit = submit
        self._clock = world.clock
        self._randomness = world.randomness
        self._factor = factor
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._timer = self._clock.call_later(GROW_INTERVAL_MS, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        topic = self._image().topics.get(OFFSETS_TOPIC)
        if topic is not None and self._is_controller():
            underway = sum(bool(partition.target) for partition in topic.partitions)
            due = larger_assignments(self._image(), topic, self._factor)
            for index, replicas in islice(due, max(0, GROWN_AT_ONCE - underway)):
                key = PartitionId(topic.topic_id, index)
                # Whatever is refused now is found again at the next look.
                self._submit(ReassignPartition(key, replicas, new_name(self._randomness)))
        self.begin()


def larger_assignments(image: ClusterImage, topic: TopicImage, factor: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The partitions that have fewer replicas than there could be, and who shall have each of them.

    Replicas that vote grow from one to three at once: two survive no more failures than one, and stop at more.
    """
    there = {each.broker_id: each for each in image.brokers.values() if each.is_active} if topic.partitions else {}
    for leaving in image.leaving:
        there.pop(leaving, None)
    factor = min(factor, len(there))
    if not topic.is_in_sync_mode and factor % 2 == 0:
        factor -= 1
    load = Counter(broker for partition in topic.partitions for broker in (partition.target or partition.replicas))
    for partition in topic.partitions:
        if not partition.target and len(partition.replicas) < factor:
            chosen = _with_more(partition, factor, image, sorted(there), load)
            load.update(chosen[len(partition.replicas) :])
            # Coordinators are spread: the first replica is the preferred leader.
            turn = partition.index % factor
            yield partition.index, (*chosen[turn:], *chosen[:turn])


def _with_more(
    partition: PartitionImage, factor: int, image: ClusterImage, there: list[BrokerId], load: Counter[BrokerId]
) -> list[BrokerId]:
    """In racks that have none yet if there are any, then whoever has the fewest."""
    chosen = list(partition.replicas)
    while len(chosen) < factor:
        racks = {image.brokers[each].rack for each in chosen if each in image.brokers} - {None}
        free = [each for each in there if each not in chosen]
        chosen.append(min(free, key=lambda each: (image.brokers[each].rack in racks, load[each], each)))
    return chosen
