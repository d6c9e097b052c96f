"""The consumer groups of this broker: a machine on each partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.names import OFFSETS_TOPIC
from zurau.machines.groups.commands import ForgetTopics, Unfinished
from zurau.machines.groups.machine import GroupMachine
from zurau.machines.groups.settings import GroupSettings
from zurau.partition.partition import Partition
from zurau.partition.runtime import MachineRuntime
from zurau.pending import Pending, start
from zurau.ports import World
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.broker")

#: Consumers that were handed something; what the one was that was handed nothing for longest, it is handed again.
DELIVERED_MAX = 10_000

GroupRuntime = MachineRuntime[GroupMachine]
TopicIds = frozenset[tuple[str, TopicId]]


class _Delivered(NamedTuple):
    """What a registered consumer was handed and has not acknowledged."""

    #: Of the leadership in which that was: a later one may follow on one elsewhere.
    machine: GroupMachine
    topic_id: TopicId
    #: By partition, up to where.
    offsets: Mapping[int, Offset]


class GroupCoordinators:
    def __init__(self, world: World, settings: GroupSettings, image: Callable[[], ClusterImage]) -> None:
        self._world = world
        self._settings = settings
        self._image = image
        self._runtimes: dict[int, GroupRuntime] = {}
        #: Partitions whose groups are not served, and why.
        self.not_served: dict[TopicPartition, str] = {}
        #: The metadata log was repaired: a topic may be missing that was never deleted.
        self.may_forget = True
        #: By consumer.
        self._delivered: dict[str, _Delivered] = {}

    def find(self, group_id: str) -> GroupRuntime:
        """Where a group lives: the same partition of `__consumer_offsets` that Kafka would choose."""
        name = self.partition_of(group_id)
        runtime = self._runtimes.get(name.partition)
        if runtime is None or name in self.not_served:
            reason = self.not_served.get(name, f"{name} is not open")
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the groups of {name} are not served: {reason}")
        return runtime

    def partition_of(self, group_id: str) -> TopicPartition:
        topic = self._image().topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the topic of the consumer groups is not there yet")
        return TopicPartition(OFFSETS_TOPIC, _java_abs(_java_hash(group_id)) % len(topic.partitions))

    def loaded(self) -> list[GroupRuntime]:
        return [runtime for runtime in self._runtimes.values() if runtime.is_loaded]

    def loading(self) -> list[Pending[None]]:
        """Those that are led here, done when their groups are there."""
        return [runtime.loaded for runtime in self._runtimes.values() if runtime.partition.leads]

    def run_on(self, partition: Partition) -> None:
        """Serve the groups of a partition whenever this broker leads it."""
        runtime: GroupRuntime = MachineRuntime(
            partition, partial(GroupMachine, self._settings), self._world, partial(_not_served_now, partition)
        )
        if partition.log.damage:
            # With some of their offsets forgotten, consumers would silently skip or repeat records.
            self._cannot_serve(
                partition,
                f"{'; '.join(map(str, partition.log.damage))}. Restore its directory from a copy, or give up what "
                "is damaged with `zurau log repair`",
            )
        elif partition.is_broken:
            self._cannot_serve(partition, str(partition.fault))
        else:
            self._runtimes[partition.name.partition] = runtime
            self.not_served.pop(partition.name, None)
            runtime.on_loaded = partial(self._loaded, partition, runtime)
            if partition.is_established:
                runtime.leadership_established()

    def stop_on(self, partition: TopicPartition) -> None:
        """It is not here any more."""
        if partition.topic == OFFSETS_TOPIC:
            self._runtimes.pop(partition.partition, None)
            self.not_served.pop(partition, None)

    def close(self, error: Callable[[], Refused]) -> None:
        for runtime in self._runtimes.values():
            runtime.close(error)

    # What registered consumers were handed (`deliveries.py`)

    def delivered_to(self, consumer_id: str, topic_id: TopicId) -> dict[int, Offset]:
        """By partition. Nothing, if this broker did not look after the consumer all the time since."""
        known = self._delivered.get(consumer_id)
        if known is None or known.machine is not self.find(consumer_id).machine or known.topic_id != topic_id:
            return {}
        return dict(known.offsets)

    def note_delivered(self, consumer_id: str, topic_id: TopicId, offsets: Mapping[int, Offset]) -> None:
        together = self.delivered_to(consumer_id, topic_id) | dict(offsets)
        self._delivered.pop(consumer_id, None)
        while len(self._delivered) >= DELIVERED_MAX:
            del self._delivered[next(iter(self._delivered))]
        self._delivered[consumer_id] = _Delivered(self.find(consumer_id).machine, topic_id, together)

    def forget_delivered(self, consumer_id: str, offsets: Mapping[int, Offset] | None = None) -> None:
        """All of it, or as far as it was only up to these offsets."""
        known = self._delivered.pop(consumer_id, None)
        if known is not None and offsets is not None:
            left = {index: offset for index, offset in known.offsets.items() if offset > offsets.get(index, -1)}
            if left:
                self._delivered[consumer_id] = known._replace(offsets=left)

    def forget_topics(self, topics: TopicIds) -> None:
        """These topics were deleted."""
        for runtime in self.loaded() if topics else ():
            start(_forget_topics(topics, runtime))

    def _loaded(self, partition: Partition, runtime: GroupRuntime, outcome: Pending[None]) -> None:
        if outcome.error is not None:
            # Other groups and all topics can be served; the groups in this partition find no coordinator.
            self._cannot_serve(partition, str(outcome.error))
        elif self.may_forget:
            # The broker that led before may have stopped between the deletion of a topic and this: a new one of its
            # name must not inherit.
            gone = frozenset(each for each in runtime.machine.topics() if not self._is_present(*each))
            if gone:
                start(_forget_topics(gone, runtime))

    def _cannot_serve(self, partition: Partition, reason: str) -> None:
        log.error("the groups of %s are not served: %s", partition.name, reason)
        self.not_served[partition.name] = reason

    def _is_present(self, name: str, topic_id: TopicId) -> bool:
        present = self._image().topics.get(name)
        return present is not None and topic_id in (NO_TOPIC_ID, present.topic_id)


async def _forget_topics(topics: TopicIds, runtime: GroupRuntime) -> None:
    reply = await runtime.submit(ForgetTopics(topics))
    while isinstance(reply, Unfinished):
        reply = await runtime.submit(ForgetTopics(topics, reply.now_ms))


def _not_served_now(partition: Partition) -> Refused:
    """Clients wait for a coordinator that loads, and look for another one that leads no more."""
    if partition.leads:
        return Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the groups are being loaded")
    return Refused(ErrorCode.NOT_COORDINATOR, f"another broker leads {partition.name}")


def _java_abs(number: int) -> int:
    """As Kafka takes it: the one number whose positive twin does not fit into 32 bits becomes 0."""
    return 0 if number == -(1 << 31) else abs(number)


def _java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, in signed 32 bits."""
    units = text.encode("utf-16-be")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
