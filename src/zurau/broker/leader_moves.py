"""Leaders go where they should be, in partitions whose replicas elect them: the leader itself hands over.

It should be the first replica of a partition (the preferred one), unless that is drained or not caught up; and nobody
leads from a broker that is drained or about to stop, if another could. Where the controller names leaders, it sees to
that itself (`machines/controller/in_sync.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import msgspec

from zurau.broker.known_leaders import KnownLeaders
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, PartitionId, ReplicaId, TopicId, TopicPartition
from zurau.machines.controller.image import ClusterImage
from zurau.partition.partition import Partition
from zurau.pending import start
from zurau.ports import Peers, Timer, World
from zurau.replica.core.events import TransferAsked
from zurau.replica.quorum.replica import Replica
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

_Asked = tuple[bytes, int]


class LeaderMoves:
    def __init__(
        self,
        me: BrokerId,
        metadata: Partition,
        partitions: Mapping[TopicPartition, Partition],
        image: Callable[[], ClusterImage],
        known: KnownLeaders,
        world: World,
        *,
        prefers: bool,
        interval_ms: int,
    ) -> None:
        """`prefers`: whether leadership goes back to the preferred replica without being asked."""
        self._me = me
        self._metadata = metadata
        self._partitions = partitions
        self._image = image
        self._known = known
        self._clock = world.clock
        self._turns = world.turns
        self._prefers = prefers
        self._interval_ms = interval_ms
        self.peers: Peers | None = None
        self._timer: Timer | None = None
        self._is_closed = False
        #: The broker is about to stop.
        self._is_leaving = False

    def begin(self) -> None:
        self._timer = self._clock.call_later(self._interval_ms, self._again)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _again(self) -> None:
        start(self._look_at_all())
        self.begin()

    async def _look_at_all(self) -> None:
        """In turns: there may be thousands of partitions, and mostly nothing is to be done."""
        given: Counter[BrokerId] = Counter()
        for partition in list(self._partitions.values()):
            if self._turns.is_over():
                await self._turns.next()
            if self._is_closed:
                return
            if partition.leads:
                self._move(partition, given, prefers=self._prefers)

    # Asking

    def ask(self, partition: PartitionId, name: TopicPartition) -> None:
        """Somebody wants the preferred replica to lead. Whether it does so turns out later."""
        here = self._partitions.get(name)
        if here is not None and here.leads:
            self._move(here, Counter(), prefers=True)
            return
        leader = here.leader.broker if here is not None and here.leader is not None else None
        known = self._known.find(partition)
        if leader is None and known is not None:
            leader = known.broker
        if leader is not None and self.peers is not None:
            asked: _Asked = (partition.topic_id, partition.partition)
            self.peers.send(leader, encode_frame(Kind.PREFER_LEADER, [msgspec.msgpack.encode(asked)]))

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        try:
            topic_id, index = msgspec.msgpack.decode(decode_frame(frame)[1], type=_Asked)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"what broker {sender} asks cannot be read: {error}") from error
        here = self._find(PartitionId(TopicId(topic_id), index))
        if here is not None and here.leads:
            self._move(here, Counter(), prefers=True)

    def _find(self, key: PartitionId) -> Partition | None:
        """Its replica here."""
        if key.topic_id == self._metadata.topic_id:
            return self._metadata
        topic = self._image().topics_by_id.get(key.topic_id)
        return self._partitions.get(TopicPartition(topic.name, key.partition)) if topic is not None else None

    # Giving

    def could_lead(self, key: PartitionId) -> list[BrokerId]:
        """Who could lead at once what this broker leads."""
        partition, image = self._find(key), self._image()
        if partition is None or not partition.is_established or self._is_closed:
            return []
        core = partition.shell.core
        if isinstance(core, Replica):
            return [voter.broker for voter in self._able(core, image)]
        found = image.partition(key)
        return [] if found is None else [each.broker for each in found.in_sync if each != core.id]

    def leads(self, key: PartitionId) -> bool:
        partition = self._find(key)
        return partition is not None and partition.leads

    def give(self, key: PartitionId, broker: BrokerId) -> bool:
        """Hand it over to somebody who could lead it. Returns False where only the controller can."""
        partition = self._find(key)
        if partition is None or not isinstance(partition.shell.core, Replica):
            return False
        voter = next(each for each in partition.shell.core.voters if each.broker == broker)
        partition.shell.tell(TransferAsked(voter))
        return True

    # Leaving

    def leave(self) -> bool:
        """Hand over everything that another could lead, the metadata last. Returns whether that is done."""
        self._is_leaving = True
        given: Counter[BrokerId] = Counter()
        led = [each for each in self._partitions.values() if each.leads and each is not self._metadata]
        movable = [each for each in led if self._move(each, given, prefers=False)]
        if movable:
            return False
        return not (self._metadata.leads and self._move(self._metadata, given, prefers=False))

    # Whom to

    def _move(self, partition: Partition, given: Counter[BrokerId], *, prefers: bool) -> bool:
        """Hand it over if another should lead. Returns whether one should and could."""
        successor = self._successor(partition, given, prefers=prefers)
        if successor is None:
            return False
        given[successor.broker] += 1
        partition.shell.tell(TransferAsked(successor))
        return True

    def _successor(self, partition: Partition, given: Counter[BrokerId], *, prefers: bool) -> ReplicaId | None:
        core, image = partition.shell.core, self._image()
        if not partition.is_established or not isinstance(core, Replica):
            return None
        found = image.partition(PartitionId(partition.topic_id, partition.name.partition))
        preferred = found.preferred if found is not None else None
        able = list(self._able(core, image))
        must_go = self._is_leaving or image.is_drained(self._me)
        if must_go:
            if not self._is_leaving:
                able = [each for each in able if not image.is_drained(each.broker)]

            def rank(each: ReplicaId) -> tuple[bool, bool, int, ReplicaId]:
                return image.is_drained(each.broker), each != preferred, given[each.broker], each

            return min(able, key=rank, default=None)
        is_wanted = prefers and preferred is not None and preferred in able
        return preferred if is_wanted and preferred is not None and not image.is_drained(preferred.broker) else None

    def _able(self, core: Replica, image: ClusterImage) -> Iterator[ReplicaId]:
        """Other voters that could lead at once. Not while voters change: who is one may be another in a moment."""
        if core.membership.is_settled(core.high_watermark):
            for voter in core.voters:
                broker = image.brokers.get(voter.broker)
                if voter != core.id and broker is not None and broker.is_active and core.is_caught_up(voter):
                    yield voter
