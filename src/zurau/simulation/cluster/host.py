"""A broker's place: the disk that stays, the replica that comes and goes, and whoever carries out its effects."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from zurau.ids import BrokerId, Epoch, Offset
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceStart,
    AlterPartition,
    Append,
    Effect,
    FetchSnapshot,
    ReadAndSend,
    RestartLog,
    RoleChanged,
    SaveVote,
    Send,
    StartFlush,
    Truncate,
)
from zurau.replica.core.events import (
    Event,
    Flushed,
    LogStartMoved,
    Received,
    SnapshotStored,
    TimePassed,
)
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Fetched, Message, SnapshotPoint
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.recovery import is_intact
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.quorum.replica import Replica
from zurau.simulation.cluster.memory import Folders, Memory
from zurau.simulation.cluster.service import READ_BATCHES, Service
from zurau.simulation.cluster.snapshots import EMPTY, Snapshot
from zurau.simulation.cluster.storage import DamagedBatch, ReplicaDisk
from zurau.simulation.world import SeededRandomness

if TYPE_CHECKING:
    from zurau.simulation.cluster.replica_group import ReplicaGroup

#: How often a high watermark is written down.
_SAVES_HIGH_WATERMARK = 0.3
#: How long it takes until somebody starts again what has stopped by itself.
_REPAIR_MS = 100


AnyReplica = Replica | InSyncReplica


class PowerCut(Exception):
    """A crash that was waiting for a moment has found it."""


class Host:
    def __init__(self, group: ReplicaGroup, broker: BrokerId, disk: ReplicaDisk) -> None:
        self.group = group
        self.node = group.world.node(broker)
        self._world = group.world
        self._rng = Random(f"host {group.swarm.seed} {broker} {group.partition}")
        self.broker = broker
        self.partition = group.partition
        self.disk = disk
        self._id = ReplicaId(broker, disk.directory)
        self.replica: AnyReplica | None = None
        #: Counts starts, so that what belongs to an earlier one is not heard any more.
        self.incarnation = 0
        #: Out of order until the node is started again, although the node is up.
        self.is_broken = False
        self.broken_ms = 0.0
        #: The node knows that the topic is gone.
        self.is_removed = False
        self._wake_at_ms: float | None = None
        #: Where in its log the last append began.
        self.appended_from = 0
        self.service = Service(self)
        #: Counts transfers of snapshots.
        self.transfer = 0
        self._snapshot_sum = 0
        self._snapshot: Snapshot = EMPTY
        self.folders = Folders()
        self.memory = Memory(disk, self.folders, 0)
        #: The disk as it was before the last start, for whoever puts an old copy back.
        self.old_copy = disk
        #: The disk is such a copy, under its old name.
        self.is_put_back = False

    @property
    def id(self) -> ReplicaId:
        if self._id.directory != self.disk.directory:
            self._id = ReplicaId(self.broker, self.disk.directory)
        return self._id

    @property
    def name(self) -> str:
        """Who it is in a transcript."""
        return str(self.id) if self.group.swarm.partitions == 1 else f"{self.id}/{self.partition.partition}"

    @property
    def is_paused(self) -> bool:
        return self._world.now_ms < self.node.paused_until_ms

    @property
    def is_up(self) -> bool:
        return self.replica is not None

    @property
    def works(self) -> bool:
        """As its broker tells the controller."""
        return not self.is_broken

    @property
    def leads(self) -> bool:
        return self.replica is not None and self.replica.role is Role.LEADER

    # Coming and going

    def start(self) -> None:
        assert self.replica is None
        self.incarnation += 1
        self.is_broken = False
        self.group.reads_again(self)
        promised = self.disk.copy(self.disk.directory)
        if not is_intact(self.disk.recover()):
            self.group.rename(self, promised=promised)
        self.group.started(self)
        self.old_copy = self.disk.copy(self.disk.directory)
        self.replica = self.make_replica(self.disk)
        self.memory = Memory(self.disk, self.folders, self.replica.high_watermark)
        self.tell(TimePassed())

    def make_replica(self, disk: ReplicaDisk) -> AnyReplica:
        return Replica(
            self.id,
            brokers=self.group.broker_ids,
            log=disk.view(),
            membership=disk.membership(),
            epoch=disk.epoch,
            voted_for=disk.voted_for,
            high_watermark=max(disk.high_watermark, disk.start_offset),
            settings=self.group.swarm.settings,
            randomness=SeededRandomness(self._rng.getrandbits(48)),
        )

    def crash(self, *, loses: bool = True) -> None:
        self.replica = None
        self.service.forget()
        self._wake_at_ms = None
        self.disk.crash(self._rng, loses=loses)

    def break_down(self) -> None:
        """The replica fails, the node does not."""
        if self.replica is not None:
            self.crash(loses=False)
            self.is_broken = True
            self.broken_ms = self._world.now_ms
            self.node.sessions.fail(self.partition)
            self._world.pump_soon(self.node)

    def break_down_damaged(self) -> None:
        """Something that was read does not match its checksum. Somebody will look after it."""
        self.group.note(f"!! {self.name} has read a damaged batch")
        self.break_down()
        incarnation = self.incarnation
        self._world.at(self._world.now_ms + _REPAIR_MS, lambda: self._repaired(incarnation))

    def _repaired(self, incarnation: int) -> None:
        if self.is_broken and self.incarnation == incarnation and self.node.is_up and not self.is_removed:
            self.start()

    # Hearing

    def tell(self, event: Event) -> tuple[Effect, ...]:
        """One step, all its effects, and then whoever checks. A host that is stopped hears it later."""
        group, node = self.group, self.node
        if self.replica is None:
            return ()
        if self._world.now_ms < node.paused_until_ms:
            self._hear_later(event)
            return ()
        if group.transcript is not None:
            group.transcript.told(self, event)
        effects = group.guard(self, event)
        try:
            for effect in effects:
                if node.crash_at is not None:
                    self._maybe_lose_power("before", effect)
                self._carry_out(effect)
                group.check(self, effect)
                if node.crash_at is not None:
                    self._maybe_lose_power("after", effect)
        except PowerCut:
            self._world.crash(node, node.crash_down_ms)
            return ()
        except DamagedBatch:
            self.break_down_damaged()
            return ()
        self.service.acknowledge()
        self._wake()
        return effects

    def _hear_later(self, event: Event) -> None:
        """When the node goes on. What others said on a bad day is lost when a good one begins."""
        if isinstance(event, Received):
            self.on_the_same_day(lambda: self.tell(event))
        else:
            self._world.at_in_incarnation(self, self.node.paused_until_ms, lambda: self.tell(event))

    def on_the_same_day(self, act: Callable[[], object]) -> None:
        was_calm = self._world.is_calm
        self._world.at_in_incarnation(
            self, self.node.paused_until_ms, lambda: act() if self._world.is_calm == was_calm else None
        )

    def assign(self, broker_epoch: Epoch, state: PartitionState) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    def receive(self, message: Message) -> None:
        if self.node.is_full and isinstance(message, Fetched) and message.batches:
            return  # as if it had been lost: there is room for marks and votes, and none for records
        self.tell(Received(message))

    def expire(self) -> None:
        """Retention takes some of what is committed and flushed here."""
        if self.replica is None or self.is_paused:
            return
        upto = self.replica.safe_high_watermark
        if upto > self.disk.start_offset:
            offset = self._rng.randint(self.disk.start_offset + 1, upto)
            while self.disk.seen.sum_at(offset) is None:
                offset += 1
            self.disk.expire(offset)
            self.tell(LogStartMoved(offset))

    def compact(self) -> None:
        """Compaction removes some of what is committed and flushed here."""
        if self.replica is not None and not self.is_paused:
            gone = self.disk.compact(self.replica.safe_high_watermark, lambda: self._rng.random() < 0.5)
            self.group.truth.compacted.update({batch.base_offset: batch for batch in gone})

    def _wake(self) -> None:
        """Come back at the replica's deadline."""
        if self.replica is None or self.replica.deadline_ms == NEVER_MS:
            return
        deadline_ms = max(self.replica.deadline_ms - self.node.clock_ahead_ms, self._world.now_ms)
        if self._wake_at_ms is None or deadline_ms < self._wake_at_ms:
            self._wake_at_ms = deadline_ms
            self._world.at_in_incarnation(self, deadline_ms, lambda: self._woken(deadline_ms))

    def _woken(self, deadline_ms: float) -> None:
        if self._wake_at_ms == deadline_ms:
            self._wake_at_ms = None
            self.tell(TimePassed())

    # Doing

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Append(items):
                self.appended_from = len(self.disk.seen.items)
                for item in items:
                    self.disk.append(item, self.group.truth.compacted)
                # Compaction leaves producers alone: what it has removed elsewhere counts as read here.
                self.memory.appended(tuple(self.disk.seen.items[self.appended_from :]))
            case Truncate(point):
                self.disk.cut(point)
                self.memory.cut()
            case AdvanceStart(offset):
                self.disk.expire(offset)
            case SaveVote(epoch, voted_for):
                self.disk.epoch, self.disk.voted_for = epoch, voted_for
            case StartFlush(number):
                self._start_flush(number)
            case Send(to, message):
                self.node.send(to, self.partition, message)
            case ReadAndSend():
                self._read_and_send(effect)
            case AdvanceHighWatermark(high_watermark):
                self._save_high_watermark(high_watermark)
                self.memory.committed(high_watermark)
            case RoleChanged(role, epoch):
                self.node.sessions.role_changed(self.partition, role, epoch)
                self._world.pump_soon(self.node)
                if role is not Role.LEADER:
                    self.service.forget()  # they hear nothing, and try again
            case _:
                self._carry_out_rarely(effect)

    def _save_high_watermark(self, high_watermark: Offset) -> None:
        assert self.replica is not None
        if self._rng.random() < _SAVES_HIGH_WATERMARK:
            self.disk.high_watermark = max(self.disk.high_watermark, self.replica.safe_high_watermark)

    def _carry_out_rarely(self, effect: Effect) -> None:
        match effect:
            case FetchSnapshot(leader, point):
                self.group.ask_snapshot(self, leader.broker, point)
            case RestartLog(point):
                self.disk.restart(point, self._snapshot_sum, self._snapshot)
                self.memory.begin(point.mark.start_offset)
            case AlterPartition(proposal):
                self.group.alter_partition(self, proposal)

    def begin_transfer(self) -> int:
        """Of a snapshot: it is written where the last one was being written."""
        self.transfer += 1
        return self.transfer

    def snapshot_arrived(self, point: SnapshotPoint, checksum: int, snapshot: Snapshot) -> None:
        self._snapshot_sum, self._snapshot = checksum, snapshot
        self.tell(SnapshotStored(point))

    def _start_flush(self, number: int) -> None:
        self.disk.begin_flush(number)
        flush_ms = self.group.network.swarm.flush_ms
        delay_ms = self._rng.random() * flush_ms + self.node.slow_flush_ms
        self._world.at_in_incarnation(self, self._world.now_ms + delay_ms, lambda: self._flush_done(number))

    def _flush_done(self, number: int) -> None:
        if self.node.flush_fails:
            self.flush_failed(number)
            return
        try:
            self._maybe_lose_power("before", Flushed(number))
            self.disk.end_flush(number)
            self.group.flushed(self)
            self._maybe_lose_power("after", Flushed(number))
        except PowerCut:
            self._world.crash(self.node, self.node.crash_down_ms)
            return
        self.tell(Flushed(number))

    def flush_failed(self, number: int) -> None:
        """Nobody knows what of it is on the disk, and asking again would be answered with a lie."""
        self.node.flush_fails = False
        self._world.crash(self.node, _REPAIR_MS)

    def _read_and_send(self, effect: ReadAndSend) -> None:
        """At once if it is in memory; who has to wait for the disk may be deposed meanwhile."""
        read_ms = self.group.network.swarm.read_ms
        if not read_ms:
            self._read_now(effect)
            return
        delay_ms = self._rng.random() * read_ms
        self._world.at_in_incarnation(self, self._world.now_ms + delay_ms, lambda: self._read_late(effect))

    def _read_now(self, effect: ReadAndSend) -> None:
        assert self.replica is not None
        is_there = effect.from_offset >= self.disk.start_offset
        if self.leads and self.replica.epoch == effect.message.epoch and is_there and not self.is_paused:
            count_max = READ_BATCHES if effect.max_bytes > 1 else 1
            batches = self.disk.seen.read(effect.from_offset, effect.upto_offset, count_max)
            self.node.send(effect.to, self.partition, replace(effect.message, batches=batches))
        else:
            self.node.sessions.evict(self.partition, effect.to)

    def _read_late(self, effect: ReadAndSend) -> None:
        try:
            self._read_now(effect)
        except DamagedBatch:
            self.break_down_damaged()

    def _maybe_lose_power(self, when: str, what: Effect | Flushed) -> None:
        if self.node.crash_at == f"{when} {type(what).__name__}":
            raise PowerCut
