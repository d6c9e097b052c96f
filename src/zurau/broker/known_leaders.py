"""Who leads the partitions whose replicas elect their leader, as far as leaders have said so.

Only those that vote know whom they have elected, and clients may ask any broker. So a leader tells all other brokers
that it leads, and tells a broker that it connects to everything that it leads. Of what is heard the highest epoch wins,
so nothing that comes late or twice does harm. None of it is kept: a broker that starts is told by everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, Epoch, PartitionId, TopicId
from zurau.partition.shell import Shell
from zurau.ports import Clock, Peers
from zurau.replica.core.roles import Role
from zurau.replica.quorum.replica import Replica
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: Leaders in one frame.
FRAME_LEADERS_MAX = 1000

#: A topic's id, a partition of it, and the epoch in which the sender leads it.
_Said = list[tuple[bytes, int, int]]


class KnownLeader(NamedTuple):
    epoch: Epoch
    broker: BrokerId


class KnownLeaders:
    def __init__(
        self,
        me: BrokerId,
        shells: Mapping[PartitionId, Shell],
        registered: Callable[[], Iterable[BrokerId]],
        clock: Clock,
    ) -> None:
        self._me = me
        self._shells = shells
        self._registered = registered
        self._clock = clock
        #: Whoever was ever connected: a broker may be before it is registered, and a leader be elected in between.
        self._met: set[BrokerId] = set()
        self.peers: Peers | None = None
        self._known: dict[PartitionId, KnownLeader] = {}
        self._news: dict[PartitionId, Epoch] = {}

    def find(self, partition: PartitionId) -> KnownLeader | None:
        return self._known.get(partition)

    def forget(self, topic_id: TopicId, partition_count: int) -> None:
        """The topic is gone."""
        for index in range(partition_count):
            self._known.pop(PartitionId(topic_id, index), None)

    # Telling

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:
        """Of a replica here."""
        if role is Role.LEADER and isinstance(self._shells[partition].core, Replica):
            if not self._news:
                self._clock.call_later(0, self._tell_news)
            self._news[partition] = epoch

    def connected(self, broker: BrokerId) -> None:
        """It has heard nothing yet of what is led here."""
        self._met.add(broker)
        self._tell([broker], list(self._led_here()))

    def _led_here(self) -> Iterator[tuple[bytes, int, int]]:
        for partition, shell in self._shells.items():
            if isinstance(shell.core, Replica) and shell.core.role is Role.LEADER:
                yield partition.topic_id, partition.partition, shell.core.epoch

    def _tell_news(self) -> None:
        news, self._news = self._news, {}
        others = sorted({*self._registered(), *self._met} - {self._me})
        self._tell(others, [(each.topic_id, each.partition, epoch) for each, epoch in news.items()])

    def _tell(self, brokers: Sequence[BrokerId], led: Sequence[tuple[bytes, int, int]]) -> None:
        if self.peers is None:
            return
        for some in _frames_of(led):
            frame = encode_frame(Kind.LEADERS, [msgspec.msgpack.encode(some)])
            for broker in brokers:
                self.peers.send(broker, frame)

    # Hearing

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        try:
            said = msgspec.msgpack.decode(decode_frame(frame)[1], type=_Said)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"what broker {sender} leads cannot be read: {error}") from error
        for topic_id, index, epoch in said:
            partition = PartitionId(TopicId(topic_id), index)
            known = self._known.get(partition)
            if known is None or epoch > known.epoch:
                self._known[partition] = KnownLeader(epoch, sender)


def _frames_of(led: Sequence[tuple[bytes, int, int]]) -> Iterator[Sequence[tuple[bytes, int, int]]]:
    return (led[first : first + FRAME_LEADERS_MAX] for first in range(0, len(led), FRAME_LEADERS_MAX))
