"""A leader whose disk is full lets somebody lead whose disk is not.

It asks the brokers that could lead in its place, and the first one that has room is given the lead: by this broker
where replicas elect their leader, and else by the controller, who is told that the replica here does not work for a
moment. As long as nobody has room it leads on, and what there is can be read.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zurau.broker.leader_moves import LeaderMoves
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, PartitionId, TopicId
from zurau.ports import Peers, World
from zurau.settings import MIB
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: So much is free where there is room.
ROOM_BYTES = 16 * MIB
#: For so long after there was no room, the controller is told that a replica does not work.
YIELD_MS = 3000

_Asked = tuple[bytes, int]


class Room:
    def __init__(self, moves: LeaderMoves, world: World, heartbeat: Callable[[], None]) -> None:
        """`heartbeat`: tells the controller which replicas do not work."""
        self._moves = moves
        self._disk = world.disk
        self._clock = world.clock
        self._heartbeat = heartbeat
        self.peers: Peers | None = None
        #: Replicas that have no room, and until when that is to be taken for true.
        self._yielding: dict[PartitionId, float] = {}

    def is_missing(self, partition: PartitionId) -> None:
        """The disk here had none for something. A follower is not waited for; a leader leads on if nobody else can."""
        others = self._moves.could_lead(partition)
        for broker in others:
            self._say(broker, Kind.ROOM_ASKED, partition)
        if not others and not self._moves.leads(partition):
            self._yield(partition)

    def yields(self, partition: PartitionId) -> bool:
        """Whether others do without the replica here."""
        return self._yielding.get(partition, 0.0) > self._clock.monotonic_ms()

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        kind, head, _ = decode_frame(frame)
        try:
            topic_id, index = msgspec.msgpack.decode(head, type=_Asked)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"what broker {sender} asks cannot be read: {error}") from error
        partition = PartitionId(TopicId(topic_id), index)
        if kind == Kind.ROOM_ASKED:
            if self._disk.free_bytes() >= ROOM_BYTES:
                self._say(sender, Kind.ROOM_OFFERED, partition)
        elif sender in self._moves.could_lead(partition) and not self._moves.give(partition, sender):
            self._yield(partition)

    def _yield(self, partition: PartitionId) -> None:
        now_ms = self._clock.monotonic_ms()
        is_known = self.yields(partition)
        self._yielding = {each: until_ms for each, until_ms in self._yielding.items() if until_ms > now_ms}
        self._yielding[partition] = now_ms + YIELD_MS
        if not is_known:
            self._heartbeat()

    def _say(self, to: BrokerId, kind: Kind, partition: PartitionId) -> None:
        asked: _Asked = partition
        if self.peers is not None:
            self.peers.send(to, encode_frame(kind, [msgspec.msgpack.encode(asked)]))
