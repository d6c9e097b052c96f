"""A broker's place: the disk that stays, the replica that comes and goes, and whoever carries out its effects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch, Offset
from zurau.replica.effects import (
    Announce,
    Append,
    AskController,
    CutEnd,
    Effect,
    FetchSnapshot,
    ReadAndSend,
    Refuse,
    Release,
    RestartLog,
    SaveVote,
    Send,
    StartFlush,
)
from zurau.replica.events import (
    Event,
    Flushed,
    LogStartMoved,
    Received,
    RecordsOffered,
    ShutdownAsked,
    SnapshotStored,
    TimePassed,
)
from zurau.replica.identity import ReplicaId
from zurau.replica.in_sync_replica import InSyncReplica
from zurau.replica.messages import Fetched, Message, SnapshotPoint
from zurau.replica.position import Batch
from zurau.replica.reading import Reading, reading
from zurau.replica.recovery import keeps_its_name
from zurau.replica.replica import Replica
from zurau.replica.roles import Role
from zurau.simulation.cluster.memory import Folders, Memory
from zurau.simulation.cluster.snapshots import EMPTY, Snapshot, header
from zurau.simulation.cluster.storage import DamagedBatch, ReplicaDisk
from zurau.simulation.world import SeededRandomness

if TYPE_CHECKING:
    from zurau.simulation.cluster.cluster import Cluster

_READ_BATCHES = 4
#: How often a high watermark is written down.
_SAVES_HIGH_WATERMARK = 0.3
#: How long it takes until somebody starts a broker again that has stopped by itself.
_REPAIR_MS = 100


AnyReplica = Replica | InSyncReplica


class PowerCut(Exception):
    """A crash that was waiting for a moment has found it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A client that wants to hear when its record is committed."""

    offset: Offset
    client: int
    value: bytes
    epoch: Epoch


class Host:
    def __init__(self, cluster: Cluster, broker: BrokerId, disk: ReplicaDisk) -> None:
        self._cluster = cluster
        self._chance = Random(f"host {cluster.swarm.seed} {broker}")
        self.broker = broker
        self.disk = disk
        self.replica: AnyReplica | None = None
        #: Counts starts, so that what belongs to an earlier one is not heard any more.
        self.life = 0
        self.paused_until_ms = 0.0
        self.clock_ahead_ms = 0.0
        #: Moments at which the power goes: see `faults.CrashAt`.
        self.crash_at: str | None = None
        self.crash_down_ms = 0
        #: Whether it was stopped in good order the last time.
        self.was_clean = True
        self.slow_flush_ms = 0
        self._wake_at_ms: float | None = None
        self._waiting: list[Waiting] = []
        self._snapshot_sum = 0
        self._snapshot: Snapshot = EMPTY
        self.folders = Folders()
        self.memory = Memory(disk, self.folders, 0)
        #: The disk as it was before the last start, for whoever puts an old copy back.
        self.old_copy = disk
        self.is_full = False
        self.flush_fails = False

    @property
    def id(self) -> ReplicaId:
        return ReplicaId(self.broker, self.disk.directory)

    @property
    def is_up(self) -> bool:
        return self.replica is not None

    @property
    def leads(self) -> bool:
        return self.replica is not None and self.replica.role is Role.LEADER

    # Coming and going

    def start(self) -> None:
        assert self.replica is None
        self.life += 1
        if not keeps_its_name(self.disk.recover()):
            self._cluster.rename(self)
        self.old_copy = self.disk.copy(self.disk.directory)
        self.disk.starts += (self.life,)
        self.replica = self.make_replica(self.disk)
        self.memory = Memory(self.disk, self.folders, self.replica.high_watermark)
        self._cluster.started(self)
        self.tell(TimePassed())

    def make_replica(self, disk: ReplicaDisk) -> AnyReplica:
        return Replica(
            self.id,
            brokers=self._cluster.broker_ids,
            log=disk.view(),
            membership=disk.membership(),
            epoch=disk.epoch,
            voted_for=disk.voted_for,
            high_watermark=max(disk.high_watermark, disk.start_offset),
            settings=self._cluster.swarm.settings,
            randomness=SeededRandomness(self._chance.getrandbits(48)),
        )

    def crash(self, *, loses: bool = True) -> None:
        self.was_clean = not loses
        self.replica = None
        self.crash_at = None
        self._waiting = []
        self._wake_at_ms = None
        self.disk.crash(self._chance, loses=loses)
        self._cluster.stopped(self)

    # Hearing

    def tell(self, event: Event) -> tuple[Effect, ...]:
        """One step, all its effects, and then whoever checks. A host that is stopped hears it later."""
        cluster = self._cluster
        if self.replica is None:
            return ()
        if cluster.now_ms < self.paused_until_ms:
            cluster.at_in_life(self, self.paused_until_ms, lambda: self.tell(event))
            return ()
        if cluster.transcript is not None:
            cluster.transcript.told(self, event)
        effects = cluster.guard(self, lambda replica: replica.step(event, int(cluster.now_ms + self.clock_ahead_ms)))
        try:
            for effect in effects:
                self._maybe_lose_power("before", effect)
                self._carry_out(effect)
                cluster.check(self, effect)
                self._maybe_lose_power("after", effect)
        except PowerCut:
            cluster.crash(self, self.crash_down_ms)
            return ()
        self._wake()
        return effects

    def receive(self, message: Message) -> None:
        if self.is_full and isinstance(message, Fetched) and message.batches:
            return  # as if it had been lost: there is room for marks and votes, and none for records
        self.tell(Received(message))

    def offer(self, client: int, value: bytes) -> None:
        if self._cluster.now_ms < self.paused_until_ms:
            self._cluster.at_in_life(self, self.paused_until_ms, lambda: self.offer(client, value))
            return
        if self.is_full and self.leads:
            self._cluster.answer(self, client, value, None)
            self.tell(ShutdownAsked())  # somebody else may have room
            return
        self.tell(TimePassed())
        if self.leads and self._is_repeated(client, value):
            return
        effects = self.tell(RecordsOffered(value, 1))
        for effect in effects:
            if isinstance(effect, Append) and self.replica is not None and effect.items[-1].epoch == self.replica.epoch:
                self._waiting.append(Waiting(self.replica.log.end_offset, client, value, self.replica.epoch))
            elif isinstance(effect, Refuse):
                self._cluster.answer(self, client, value, None)
        self._release_waiting()

    def _is_repeated(self, client: int, value: bytes) -> bool:
        """It was written before, or comes too early or too late. Whoever asked hears so when that is committed."""
        assert self.replica is not None
        try:
            written = self.memory.producers.find_repeated(header(value))
        except Refused:
            self._cluster.answer(self, client, value, None)
            return True
        if written is None:
            return False
        self._waiting.append(Waiting(written.base_offset + 1, client, value, self.replica.epoch))
        self._release_waiting()
        return True

    def serve(self, offset: Offset, known_epoch: Epoch) -> tuple[Reading, tuple[Batch, ...]] | None:
        """What a consumer gets; None when nobody is there to answer."""
        self.tell(TimePassed())
        if self.replica is None or self._cluster.now_ms < self.paused_until_ms:
            return None
        answer = reading(self.replica, offset, known_epoch)
        if answer is not Reading.RECORDS:
            return answer, ()
        try:
            return answer, self.disk.seen.read(offset, self.replica.high_watermark, _READ_BATCHES)
        except DamagedBatch:
            self._stop_damaged()
            return None

    def _stop_damaged(self) -> None:
        self._cluster.note(f"!! {self.id} has read a damaged batch")
        self.disk.survives_in_cache = True
        self._cluster.crash(self, _REPAIR_MS)

    def expire(self) -> None:
        """Retention takes some of what is committed and flushed here."""
        if self.replica is None or self._cluster.now_ms < self.paused_until_ms:
            return
        upto = min(self.replica.high_watermark, self.disk.safe.end_offset)
        if upto > self.disk.start_offset:
            offset = self._chance.randint(self.disk.start_offset + 1, upto)
            while self.disk.seen.sum_at(offset) is None:
                offset += 1
            self.disk.expire(offset)
            self.tell(LogStartMoved(offset))

    def _wake(self) -> None:
        """Come back at the replica's deadline."""
        if self.replica is None:
            return
        deadline_ms = max(self.replica.deadline_ms - self.clock_ahead_ms, self._cluster.now_ms)
        if self._wake_at_ms is None or deadline_ms < self._wake_at_ms:
            self._wake_at_ms = deadline_ms
            self._cluster.at_in_life(self, deadline_ms, lambda: self._woken(deadline_ms))

    def _woken(self, deadline_ms: float) -> None:
        if self._wake_at_ms == deadline_ms:
            self._wake_at_ms = None
            self.tell(TimePassed())

    # Doing

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Append(items):
                for item in items:
                    self.disk.append(item)
                self.memory.appended(items)
            case CutEnd(point):
                self.disk.cut(point)
                self.memory.cut()
            case SaveVote(epoch, voted_for):
                self.disk.epoch, self.disk.voted_for = epoch, voted_for
            case StartFlush(number):
                self._start_flush(number)
            case Send(to, message):
                self._cluster.send(self, to, message)
            case ReadAndSend():
                self._read_and_send(effect)
            case Release(high_watermark):
                self._save_high_watermark(high_watermark)
                self.memory.committed(high_watermark)
                self._release_waiting()
            case Announce(role):
                if role is not Role.LEADER:
                    self._waiting = []  # they hear nothing, and try again
            case _:
                self._carry_out_rarely(effect)

    def _save_high_watermark(self, high_watermark: Offset) -> None:
        assert self.replica is not None
        if self._chance.random() < _SAVES_HIGH_WATERMARK:
            self.disk.high_watermark = max(self.disk.high_watermark, self.replica.safe_high_watermark)

    def _carry_out_rarely(self, effect: Effect) -> None:
        match effect:
            case FetchSnapshot(leader, point):
                self._cluster.ask_snapshot(self, leader.broker, point)
            case RestartLog(point):
                self.disk.restart(point, self._snapshot_sum, self._snapshot)
                self.memory.begin(point.mark.start_offset)
            case AskController(proposal):
                self._cluster.ask_controller(self, proposal)

    def snapshot_arrived(self, point: SnapshotPoint, checksum: int, snapshot: Snapshot) -> None:
        self._snapshot_sum, self._snapshot = checksum, snapshot
        self.tell(SnapshotStored(point))

    def _start_flush(self, number: int) -> None:
        self.disk.begin_flush(number)
        swarm = self._cluster.network.swarm
        delay_ms = self._chance.random() * swarm.flush_ms + self.slow_flush_ms
        self._cluster.at_in_life(self, self._cluster.now_ms + delay_ms, lambda: self._flush_done(number))

    def _flush_done(self, number: int) -> None:
        if self.flush_fails:
            self.flush_failed(number)
            return
        try:
            self._maybe_lose_power("before", Flushed(number))
            self.disk.end_flush(number)
            self._maybe_lose_power("after", Flushed(number))
        except PowerCut:
            self._cluster.crash(self, self.crash_down_ms)
            return
        self.tell(Flushed(number))

    def flush_failed(self, number: int) -> None:
        """Nobody knows what of it is on the disk, and asking again would be answered with a lie."""
        self.flush_fails = False
        self._cluster.crash(self, _REPAIR_MS)

    def _read_and_send(self, effect: ReadAndSend) -> None:
        try:
            batches = self.disk.seen.read(effect.from_offset, effect.upto_offset, _READ_BATCHES)
        except DamagedBatch:
            self.crash_down_ms, self.disk.survives_in_cache = _REPAIR_MS, True
            raise PowerCut from None
        self._cluster.send(self, effect.to, replace(effect.message, batches=batches))

    def _release_waiting(self) -> None:
        replica = self.replica
        if replica is None or not self._waiting:
            return
        done = [each for each in self._waiting if each.offset <= replica.high_watermark]
        if done:
            self._waiting = [each for each in self._waiting if each.offset > replica.high_watermark]
            for each in done:
                self._cluster.answer(self, each.client, each.value, each.offset)

    def _maybe_lose_power(self, when: str, what: Effect | Flushed) -> None:
        if self.crash_at is not None and self.crash_at == f"{when} {type(what).__name__}":
            raise PowerCut
