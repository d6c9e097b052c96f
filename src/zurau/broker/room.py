"""A leader whose disk is full lets somebody lead whose disk is not.

It asks the brokers that could lead in its place, and the first one that has room is given the lead: by this broker
where replicas elect their leader, and else by the controller, who is told that the replica here does not work for a
while. As long as nobody has room it leads on, and what there is can be read.
"""

from __future__ import annotations

import msgspec

from zurau.broker.leader_moves import LeaderMoves
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, PartitionId, TopicId
from zurau.ports import Peers, World
from zurau.settings import MIB
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: So much is free where there is room.
ROOM_BYTES = 16 * MIB
#: How long a replica that the controller let lead is not to lead again: there may be no room yet.
YIELD_MS = 10_000

_Asked = tuple[bytes, int]


class Room:
    def __init__(self, moves: LeaderMoves, world: World) -> None:
        self._moves = moves
        self._disk = world.disk
        self._clock = world.clock
        self.peers: Peers | None = None
        #: Replicas that another broker has room for, and until when that is to be taken for true.
        self._yielding: dict[PartitionId, float] = {}

    def is_missing(self, partition: PartitionId) -> None:
        """The disk here had none for something that a leader was to write."""
        if self.peers is not None:
            for broker in self._moves.could_lead(partition):
                self._say(broker, Kind.ROOM_ASKED, partition)

    def yields(self, partition: PartitionId) -> bool:
        """Whether somebody else rather leads."""
        return self._yielding.get(partition, 0.0) > self._clock.monotonic_ms()

    def received(self, sender: BrokerId, frame: memoryview) -> bool:
        """Returns whether a partition is to be led by somebody else, as the controller ought to hear."""
        kind, head, _ = decode_frame(frame)
        try:
            topic_id, index = msgspec.msgpack.decode(head, type=_Asked)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"what broker {sender} asks cannot be read: {error}") from error
        partition = PartitionId(TopicId(topic_id), index)
        if kind == Kind.ROOM_OFFERED:
            return self._offered(sender, partition)
        if self._disk.free_bytes() >= ROOM_BYTES:
            self._say(sender, Kind.ROOM_OFFERED, partition)
        return False

    def _offered(self, sender: BrokerId, partition: PartitionId) -> bool:
        if sender not in self._moves.could_lead(partition) or self._moves.give(partition, sender):
            return False
        now_ms = self._clock.monotonic_ms()
        self._yielding = {each: until_ms for each, until_ms in self._yielding.items() if until_ms > now_ms}
        self._yielding[partition] = now_ms + YIELD_MS
        return True

    def _say(self, to: BrokerId, kind: Kind, partition: PartitionId) -> None:
        assert self.peers is not None
        asked: _Asked = partition
        self.peers.send(to, encode_frame(kind, [msgspec.msgpack.encode(asked)]))
