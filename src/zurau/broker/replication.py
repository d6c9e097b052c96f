"""What the replicas of this broker say to those of other brokers, and hear from them.

All of it travels in one fetch session per pair of brokers and direction (`replica/session`). This is its shell: frames
come in from `Peers` and are delivered to replicas, what replicas say goes into sessions, and sessions are emptied once
for everything that happened in one step of the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from zurau.alarm import Alarm
from zurau.broker.peers.checking import check_records
from zurau.broker.peers.decoding import decode_session
from zurau.broker.peers.encoding import encode_session
from zurau.broker.throttles import Throttle, Throttles
from zurau.ids import BrokerId, Epoch
from zurau.partition import replicas
from zurau.partition.shell import Shell
from zurau.ports import Handshake, Peers, World
from zurau.replica.core.events import Event, FetchProgressed, LeaderDisconnected, Received
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetch, Fetched, HighWatermark, Message, SnapshotPoint
from zurau.replica.core.partition_state import InSyncProposal
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.sessions import Sessions

log = logging.getLogger("zurau.replica")

#: Room that is left on a disk for what is not records: votes, marks, checkpoints.
RESERVED_BYTES = 1 << 20


class Replication:
    """The `Outbox` of every shell, and the `PeerListener` of the connections to other brokers."""

    def __init__(self, world: World, settings: ReplicaSettings | None = None) -> None:
        self._clock = world.clock
        self._disk = world.disk
        self._observer = world.observer
        self._sessions = Sessions(settings or replicas.TIMING, world.randomness)
        self._shells: dict[PartitionId, Shell] = {}
        #: Set by whoever has connections to other brokers; without them there is nobody to send to.
        self.peers: Peers | None = None
        #: Told of every role that a replica here takes.
        self.role_listeners: list[Callable[[PartitionId, Role, Epoch], None]] = []
        self.on_proposal: Callable[[PartitionId, InSyncProposal], None] = _nobody_decides
        #: A replica here finds no room on its disk.
        self.on_cannot_write: Callable[[PartitionId], None] = _nobody_else_writes
        self.on_snapshot_wanted: Callable[[PartitionId, ReplicaId, SnapshotPoint], None] = _nobody_sends
        #: What replicas that catch up may take; set by whoever knows what operators want.
        self.throttles: Throttles | None = None
        self._is_pumping_soon = False
        self._alarm = Alarm(world.clock, self._pump)

    # Which replicas there are

    def add(self, shell: Shell) -> None:
        self._shells[shell.partition] = shell

    def remove(self, partition: PartitionId) -> None:
        if self._shells.pop(partition, None) is not None:
            self.failed(partition)

    # What shells say

    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None:
        if self.throttles is not None:
            kind = type(message)
            if kind is Fetch:
                throttle = self._throttle_of(partition)
                if throttle is not None and throttle.is_exhausted():
                    # It asks again; and it is not its leader that keeps it waiting.
                    self._clock.call_later(0, lambda: self._tell(partition, FetchProgressed()))
                    return
            elif kind is Fetched and message.batches:  # type: ignore[union-attr]
                throttle = self._throttle_of(partition, to)
                if throttle is not None:
                    throttle.take(_records_bytes(message))  # type: ignore[arg-type]
        self._sessions.send(to, partition, message)
        self._pump_soon()

    def holds_back(self, to: BrokerId, partition: PartitionId, answer: Fetched) -> bool:
        throttle = self._throttle_of(partition, to)
        if throttle is None or not throttle.is_exhausted():
            return False
        alive = HighWatermark(answer.sender, answer.epoch, answer.fetch_id, answer.high_watermark)
        self._sessions.send(to, partition, alive)
        self._pump_soon()
        return True

    def _throttle_of(self, partition: PartitionId, to: BrokerId | None = None) -> Throttle | None:
        """What bounds this replica, or what it sends to a follower; nothing does if something waits for that."""
        shell = self._shells.get(partition)
        if self.throttles is None or shell is None:
            return None
        throttle = self.throttles.as_follower(partition) if to is None else self.throttles.as_leader(partition)
        if throttle is None:
            return None
        broker = shell.core.id.broker if to is None else to
        return None if any(each.broker == broker for each in shell.core.counted) else throttle

    def evict(self, partition: PartitionId, broker: BrokerId) -> None:
        self._sessions.evict(partition, broker)
        self._pump_soon()

    @property
    def shells(self) -> Mapping[PartitionId, Shell]:
        return self._shells

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:
        log.debug("%s is %s in epoch %d", partition, role.value, epoch)
        for listener in self.role_listeners:
            listener(partition, role, epoch)
        if self._sessions.peers:
            self._sessions.role_changed(partition, role, epoch)
            self._pump_soon()

    def failed(self, partition: PartitionId) -> None:
        if self._sessions.peers:
            self._sessions.fail(partition)
            self._pump_soon()

    def cannot_write(self, partition: PartitionId) -> None:
        # Not from within what it could not write.
        self._clock.call_later(0, lambda: self.on_cannot_write(partition))

    def fetch_snapshot(self, partition: PartitionId, leader: ReplicaId, point: SnapshotPoint) -> None:
        self.on_snapshot_wanted(partition, leader, point)

    def alter_partition(self, partition: PartitionId, proposal: InSyncProposal) -> None:
        self.on_proposal(partition, proposal)

    # What other brokers say

    def connected(self, peer: Handshake) -> None:
        # What was sent before went nowhere: it is asked again now, not when somebody has waited for an answer in vain.
        self._sessions.lost(peer.broker)
        self._pump_soon()

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        said = decode_session(frame)
        check_records(said)
        messages = self._sessions.receive(sender, said, self._now_ms())
        if self._observer is not None:
            self._observer.heard(self._sessions, sender, said)
        for to, reply in self._sessions.replies():
            self._say(to, reply)
        self._pass_on_notices()
        for partition, message in messages:
            self._deliver(partition, message)
        self._pump_soon()

    def progressed(self, broker: BrokerId) -> None:
        self._sessions.progressed(broker, self._now_ms())
        self._pass_on_notices()
        self._pump_soon()

    def lost(self, broker: BrokerId) -> None:
        self._sessions.lost(broker)
        self._pass_on_notices()
        for shell in list(self._shells.values()):
            leader = shell.core.leader
            if leader is not None and leader.broker == broker:
                shell.tell(LeaderDisconnected())
        self._pump_soon()

    def _deliver(self, partition: PartitionId, message: Message) -> None:
        shell = self._shells.get(partition)
        if shell is None or shell.is_stopped:
            self._sessions.fail(partition)
        elif not (isinstance(message, Fetched) and message.batches):
            shell.tell(Received(message))
        elif self._has_room_for(message):
            throttle = self._throttle_of(partition)
            if throttle is not None:
                throttle.take(_records_bytes(message))
            shell.tell(Received(message))
        else:
            self.cannot_write(partition)

    def _has_room_for(self, message: Fetched) -> bool:
        """Records that the disk has no room for are dropped as if they had been lost on the way, and fetched again: a
        core that was told of them would be ahead of its log."""
        needed = _records_bytes(message) + RESERVED_BYTES
        if self._disk.free_bytes() >= needed:
            return True
        log.warning("no room for %d bytes of a leader's records; they are fetched again", needed)
        return False

    def _pass_on_notices(self) -> None:
        """What a session speaks for, or does no more: it must be known before something new is heard."""
        for partition, event in self._sessions.notices():
            self._tell(partition, event)

    def _tell(self, partition: PartitionId, event: Event) -> None:
        shell = self._shells.get(partition)
        if shell is not None:
            shell.tell(event)

    # What there is to send

    def _pump_soon(self) -> None:
        """Once for everything that happens in this step of the loop."""
        if not self._is_pumping_soon:
            self._is_pumping_soon = True
            self._clock.call_later(0, self._pump)

    def _pump(self) -> None:
        self._is_pumping_soon = False
        self._pass_on_notices()
        for to, it in self._sessions.due(self._now_ms()):
            self._say(to, it)
        self._pass_on_notices()
        deadline_ms = self._sessions.deadline_ms
        if deadline_ms is not None:
            self._alarm.no_later_than(deadline_ms)

    def _say(self, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        if self._observer is not None:
            self._observer.said(self._sessions, to, it)
        if self.peers is not None:
            self.peers.send(to, encode_session(it))

    def stop(self) -> None:
        self._alarm.cancel()
        self._shells.clear()

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())


def _records_bytes(message: Fetched) -> int:
    return sum(len(batch.data) for batch in message.batches)


def _nobody_decides(partition: PartitionId, proposal: InSyncProposal) -> None:
    """Without a controller no in-sync set changes."""


def _nobody_else_writes(partition: PartitionId) -> None:
    """Alone, nobody else could lead."""


def _nobody_sends(partition: PartitionId, leader: ReplicaId, point: SnapshotPoint) -> None:
    """Alone, nobody falls behind."""
