"""One partition: the rules by which a batch gets in and records get out.

The line of an append: examine (header, checksum, every record), recognise a retry, stamp offset and epoch in place,
write, then tell the replica. A batch that takes long to examine leaves the loop for it, and its client's next ones
wait behind it (`validation.py`). The shell (`shell.py`) has it flushed and replicated; the high watermark moves when
the replica core says so, and whoever waits for it is released.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Protocol

import msgspec

from zurau.epochs import NO_EPOCH
from zurau.errors import CorruptData, DiskFault, FlushFailed, Refused
from zurau.ids import Epoch, Offset, TopicId, TopicPartition
from zurau.journal.journal import LogNotes
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.admission import Admission
from zurau.partition.outbox import Alone, Outbox
from zurau.partition.producers import Producers, WrittenBatch
from zurau.partition.refusals import Refusals
from zurau.partition.replicas import replica_settings
from zurau.partition.shell import Shell
from zurau.partition.validation import RecordValidator, ValidationQueue
from zurau.partition.waiters import Waiters
from zurau.pending import Pending, done
from zurau.ports import World
from zurau.records.batch import APPEND_TIME_BIT, BatchHeader, parse_header, place
from zurau.records.compression import TooLarge
from zurau.replica.core.events import LogStartMoved, RecordsWritten, SettingsChanged
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.reading import Reading, reading
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Role
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.partition")

#: Shared by all whose answer is there at once: it is never changed any more.
_DONE = done(None)
#: How often others are told that the disk has no room.
NO_ROOM_EVERY_MS = 500


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a batch ended up. A repeated batch gets the place of its first copy."""

    base_offset: Offset
    next_offset: Offset
    log_append_time_ms: int


class LeadershipListener(Protocol):
    """Who lives as long as a leadership: the runtime of a machine."""

    def leadership_established(self) -> None: ...

    def leadership_lost(self) -> None: ...


class Partition:
    """A partition of which this broker holds a replica, and which it may lead."""

    __slots__ = (
        "_admission", "_clock", "_established", "_flush_waiters", "_readers", "_refusals", "_replicated_waiters",
        "_restore_producers", "_said_no_room_ms",
        "_validation", "_writers", "fault", "high_watermark", "leader", "leader_epoch", "leadership_listener", "leads",
        "log", "name", "on_commit", "producers", "shell", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        *,
        replica: ReplicaCore,
        producers: Producers,
        restore_producers: Callable[[], Producers],
        world: World,
        validator: RecordValidator,
        notes: LogNotes | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        """`notes`: where the journal keeps what is known of the log and promised by the replica. `restore_producers`
        reads anew what the log says of its producers, and blocks."""
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.producers = producers
        self._restore_producers = restore_producers
        #: The end of what is committed; consumers read below it. Only grows.
        self.high_watermark: Offset = replica.high_watermark
        #: Whether this replica leads, who does otherwise, and in which epoch.
        self.leads = False
        self.leader: ReplicaId | None = None
        self.leader_epoch: Epoch = replica.epoch
        self._clock = world.clock
        #: Why nothing is taken: until a restart if a flush failed, else until what failed was tried again and worked.
        self.fault: DiskFault | None = None
        self._said_no_room_ms = float("-inf")
        #: Who waits for what it has written, and who waits for something to read. The former have no answer to expect
        #: from a replica that leads no more.
        self._writers = Waiters()
        self._readers = Waiters()
        self._flush_waiters = Waiters()
        #: Who waits for more replicas than a majority.
        self._replicated_waiters = Waiters()
        self._established: Pending[None] = Pending()
        self._refusals = Refusals(world.clock)
        self.leadership_listener: LeadershipListener | None = None
        self._admission = Admission(log.settings)
        self._validation = ValidationQueue(validator, self._rules, self._append_examined)
        #: Called when the high watermark has moved, before anybody who waits for that is told.
        self.on_commit: Callable[[], None] = _nobody_follows
        self.shell = Shell(
            PartitionId(topic_id, name.partition),
            replica,
            log,
            notes=notes,
            world=world,
            outbox=outbox or Alone(),
            owner=self,
        )

    @property
    def established(self) -> Pending[None]:
        """Done while this replica leads and knows the true high watermark; also when it never will."""
        return self._established

    @property
    def is_established(self) -> bool:
        return self.leads and self._established.is_done and not self.is_broken

    @property
    def is_only_voter(self) -> bool:
        """Nobody else can lead it."""
        core = self.shell.core
        return core.membership.voters == (core.id,)

    def start(self) -> Pending[None]:
        """Begin to take part. Done when this replica leads and knows the true high watermark, if it ever does."""
        self.shell.start()
        return self._established

    # What is known of it

    @property
    def last_stable_offset(self) -> Offset:
        """The end of what no open transaction can still take back. There are no transactions yet."""
        return self.high_watermark

    @property
    def is_broken(self) -> bool:
        """A flush failed, or the replica did: until the broker is restarted nothing more is taken or committed."""
        return isinstance(self.fault, FlushFailed)

    @property
    def _others_count(self) -> bool:
        """Others have what is committed here, and can lead."""
        core = self.shell.core
        return any(each != core.id for each in core.counted)

    @property
    def safe_high_watermark(self) -> Offset:
        """What is committed, and flushed here: records below it may be removed."""
        return self.shell.core.safe_high_watermark

    def require_established(self) -> None:
        """Refuse while the high watermark may still be too low: an end offset told now might go back."""
        self.require_leadership()
        if not (self._established.is_done or self.is_broken):
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE, f"the leader of {self.name} has only just begun")

    def require_leadership(self) -> None:
        """Refuse what only a leader may answer. One that is broken is none where others can lead: it would show an old
        high watermark for ever."""
        if not self.leads or (self.is_broken and self._others_count):
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is not led here at present")

    def require_leader_heard(self) -> None:
        """Refuse when this replica does not know what is committed now: it neither leads nor hears who does."""
        if not (self.leads or self.shell.core.hears_leader) or self.is_broken:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} has no leader that is heard here")

    def lacks(self, offset: Offset) -> bool:
        """Whether the leader may have records at this offset, which this follower has not."""
        return reading(self.shell.core, offset, NO_EPOCH) is Reading.ASK_ANOTHER

    # Getting in

    def append(self, batch: memoryview, header: BatchHeader, client: Hashable = None) -> Appended | Pending[Appended]:
        """Check, stamp and write one batch from a producer: at once, or later if it takes long to examine.

        A client's batches are written in the order of the calls. Raises `Refused` with nothing changed.
        """
        admission, now_ms = self._admission, self._clock.now_ms()
        admission.check(batch, header)
        self.shell.flushing.writer = client
        if self._validation.has_waiting(client) or not admission.is_quick(batch, header):
            return self._validation.join(batch, header, client)
        try:
            examined, stored = admission.examine(batch, header, now_ms)
        except TooLarge:
            return self._validation.join(batch, header, client)
        return self._append_examined(examined, stored, now_ms)

    def append_plain(self, batch: memoryview, client: Hashable = None) -> Appended | None:
        """As `append`, of a batch that needs no closer look, as most; None if it does, and nothing is changed."""
        admission, now_ms = self._admission, self._clock.now_ms()
        header = None if self._validation.has_waiting(client) else admission.read_plain(batch, now_ms)
        if header is None:
            return None
        self.shell.flushing.writer = client
        return self._append_examined(batch, header, now_ms)

    def _rules(self) -> tuple[Admission, int]:
        """Of this moment, and the moment."""
        return self._admission, self._clock.now_ms()

    def _append_examined(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        if not self.leads:
            self.require_leadership()
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            repeated = self._find_repeated(header)
            if repeated is not None:
                next_offset = repeated.base_offset + header.last_offset_delta + 1
                return Appended(repeated.base_offset, next_offset, repeated.timestamp)
            try:
                self._write(batch, header)
            except Refused as refused:
                self._refusals.refused(refused)
                raise
            self.producers.written(header, now_ms)
        else:
            self._write(batch, header)
        append_time_ms = header.max_timestamp if header.attributes & APPEND_TIME_BIT else -1
        base_offset = header.base_offset
        return Appended(base_offset, base_offset + header.last_offset_delta + 1, append_time_ms)

    def _find_repeated(self, header: BatchHeader) -> WrittenBatch | None:
        """A batch that does not follow on the last one, because that was refused, is refused for the same reason."""
        producers, producer_id = self.producers, header.producer_id
        try:
            repeated = producers.find_repeated(header)
        except Refused as refused:
            is_gap = refused.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            explanation = self._refusals.explanation(producers.last_offset_of(producer_id)) if is_gap else None
            raise explanation or refused from None
        if header.base_sequence > 0 and producer_id not in producers:
            explanation = self._refusals.explanation(-1)
            if explanation is not None:
                raise explanation
        return repeated

    def append_own(self, batch: bytearray) -> Offset:
        """Write a batch of the broker's own making; returns the offset at which it is committed."""
        self.require_leadership()
        header = parse_header(batch)
        self._write(memoryview(batch), header)
        return header.next_offset

    def _write(self, batch: memoryview, header: BatchHeader) -> None:
        """In the log first, then told to the replica: what the disk has no room for has not happened."""
        if self.fault is not None:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.fault))
        refused = self.shell.core.refusal(acks_all=False)
        if refused is not None:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name}: {refused}")
        log, shell = self.log, self.shell
        if shell.core.log.position.offset != log.end_offset:
            # A change of voters waits in the shell's line, and has its offset already.
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is busy with its voters; try again")
        place(batch, header, log.end_offset, self.leader_epoch)
        try:
            log.append(batch, header)
        except DiskFault as fault:
            self._found_no_room()
            raise refusal(fault) from fault
        was_put_off = shell.flushing.is_put_off
        shell.tell(RecordsWritten(header.last_offset_delta + 1))
        if was_put_off:  # or else the replica has wanted one now, if there was none
            shell.flushing.consider()

    def require_in_sync_replicas(self) -> None:
        """Refuse when fewer copies are in step than the topic asks for: acks=all would promise too much."""
        wanted = self.log.settings.min_insync_replicas
        if wanted > 1:
            copies = self.shell.core.acknowledging
            if copies < wanted:
                acknowledged = f"min.insync.replicas={wanted}, but {self.name} is acknowledged by {copies}"
                raise self._refusals.refused(Refused(ErrorCode.NOT_ENOUGH_REPLICAS, acknowledged))

    # What the shell says

    def high_watermark_moved(self, offset: Offset) -> None:
        self.high_watermark = offset
        self.on_commit()
        if self._writers:
            self._writers.release(offset)
        if self._readers:
            self._readers.release(offset)
        if self._replicated_waiters:
            self.replicated_moved(self.shell.core.replicated_offset)

    def replicated_moved(self, offset: Offset) -> None:
        self._replicated_waiters.release(offset)

    def role_changed(self, role: Role, epoch: Epoch, leader: ReplicaId | None) -> None:
        """Who waits for a leader that is none any more, or another one's epoch, has no answer to expect."""
        self.leads, self.leader, self.leader_epoch = role is Role.LEADER, leader, epoch
        if self.leads and any(mark.epoch < epoch for mark in self.log.epochs.marks):  # somebody led before
            self._refusals.leadership_began(self.name, self.log.end_offset)
        self._writers.fail_all(_leadership_has_changed(self.name))
        self._replicated_waiters.fail_all(_leadership_has_changed(self.name))
        self._readers.fail_all(_leadership_has_changed(self.name))  # they look whether they may read on
        if self._established.is_done:
            self._established = Pending()
        if self.leadership_listener is not None:
            self.leadership_listener.leadership_lost()

    def leadership_established(self) -> None:
        if self.leadership_listener is not None:
            self.leadership_listener.leadership_established()
        self._established.resolve(None)

    def replicated(self, header: BatchHeader) -> None:
        self.producers.written(header, self._clock.now_ms())

    def recover_producers(self) -> Producers:
        return self._restore_producers()

    def truncated(self, producers: Producers) -> None:
        """What producers wrote there is not in the log any more."""
        before, self.producers = self.producers, producers
        producers.tell_of_new(before.on_new)

    def flushed_moved(self, offset: Offset) -> None:
        self._flush_waiters.release(offset)

    def storage_fault(self, fault: DiskFault | None) -> None:
        """Take no more, and tell everybody who waits. Consumers keep reading what is committed."""
        if fault is None:
            if self.fault is not None and not self.is_broken:
                log.info("%s takes writes again", self.name)
                self.fault = None
            return
        if isinstance(fault, FlushFailed):
            log.error("%s takes no more writes until the broker is restarted: %s", self.name, fault)
        elif self.fault is None:
            log.warning("%s takes no writes until this works, which is tried again and again: %s", self.name, fault)
        self.fault = fault
        if self.is_broken:
            self._established.resolve(None)  # or never: nobody needs to wait for it
        else:
            self._found_no_room()
        refused = Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
        self._fail_waiters(refused)

    def _found_no_room(self) -> None:
        """Somebody else may have some, and lead."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._said_no_room_ms + NO_ROOM_EVERY_MS:
            self._said_no_room_ms = now_ms
            self.shell.cannot_write()

    def _fail_waiters(self, error: Refused) -> None:
        for waiters in (self._writers, self._replicated_waiters, self._readers, self._flush_waiters):
            waiters.fail_all(error)

    def is_awaited(self, offset: Offset) -> bool:
        return self._writers.any_upto(offset) or self._readers.any_upto(offset) or self._flush_waiters.any_upto(offset)

    # Getting out

    def readable_upto(self, *, committed_only: bool) -> Offset:
        """Where a consumer's reading ends."""
        return self.last_stable_offset if committed_only else self.high_watermark

    def read(self, offset: Offset, max_bytes: int, upto: Offset, *, may_block: bool = False) -> bytes:
        """Whole batches from `offset` on, below `upto`. Raises `OffsetOutOfRange`, `WouldBlock` or `Refused`."""
        if upto <= offset <= self.log.end_offset:
            return b""
        try:
            return self.log.read(offset, max_bytes, upto, may_block=may_block)
        except DiskFault as fault:
            raise refusal(fault) from fault

    def wait_committed(self, offset: Offset) -> Pending[None]:
        """Done when everything below `offset`, which was written here, is committed; refused when that is lost sight of
        because somebody else leads."""
        return _DONE if self.high_watermark >= offset else self._wait(self._writers, offset)

    def wait_replicated(self, offset: Offset) -> Pending[None]:
        """As `wait_committed`, and stored by as many replicas as `min.insync.replicas` asks for (acks=all)."""
        if self.log.settings.min_insync_replicas <= 2:  # a majority, or else it was refused before it was written
            return self.wait_committed(offset)
        return self._wait(self._replicated_waiters, offset, now=self.shell.core.replicated_offset)

    def wait_readable(self, offset: Offset) -> Pending[None]:
        """Done when everything below `offset` is committed, whoever wrote it."""
        return self._wait(self._readers, offset)

    def _wait(self, waiters: Waiters, offset: Offset, now: Offset | None = None) -> Pending[None]:
        if (self.high_watermark if now is None else now) >= offset:
            return _DONE
        if self.fault is not None:
            failed: Pending[None] = Pending()
            failed.fail(Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.fault)))
            return failed
        pending = waiters.wait(offset)
        if offset <= self.log.end_offset:
            self.shell.flushing.begin()
        return pending

    def stop_waiting(self, offset: Offset, pending: Pending[None]) -> None:
        self._writers.forget(offset, pending)
        self._replicated_waiters.forget(offset, pending)
        self._readers.forget(offset, pending)

    def settings_changed(self, settings: LogSettings) -> None:
        self.log.settings = settings
        self._admission = Admission(settings)
        self.shell.tell(SettingsChanged(replica_settings(settings)))
        self.replicated_moved(self.shell.core.replicated_offset)
        self.shell.flushing.consider()

    # Getting smaller

    async def delete_records_before(self, offset: Offset) -> Offset:
        """Forget what is below `offset` (-1: below the high watermark). Returns the new first offset."""
        wanted = self.high_watermark if offset == -1 else offset
        self.require_leadership()
        if not self.log.start_offset <= wanted <= self.high_watermark:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} holds offsets {self.log.start_offset} to {self.high_watermark}",
            )
        if wanted > self.safe_high_watermark:
            # With flush=os: a crash could take what is behind the new start, and the log would end before it begins.
            await self._wait(self._flush_waiters, wanted, now=self.log.flushed_offset)
        try:
            await self.move_start(wanted)
        except DiskFault as fault:
            raise refusal(fault) from fault
        return self.log.start_offset

    async def move_start(self, offset: Offset) -> None:
        """Forget what is below `offset`, which is committed and flushed. Raises `DiskFault` with nothing changed."""
        await self.shell.move_start(offset)
        self.start_moved()

    def start_moved(self) -> None:
        """Records at the beginning of the log are gone."""
        self.shell.tell(LogStartMoved(self.log.start_offset))

    # The end of it

    def close(self, error: Callable[[], Refused]) -> None:
        """Release everyone who waits, with a reason."""
        self.shell.stop()
        self._validation.close(error)
        self._fail_waiters(error())
        self.leads = False
        self._established.resolve(None)  # or never: whoever made the topic still waits, if it is deleted so soon


def _nobody_follows() -> None:
    """Most partitions have no machine whose committed state somebody looks at."""


def _leadership_has_changed(name: TopicPartition) -> Refused:
    return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the leader of {name} has changed; it may be committed or not")


def refusal(fault: DiskFault) -> Refused:
    """What a client is told of a disk that failed."""
    code = ErrorCode.CORRUPT_MESSAGE if isinstance(fault, CorruptData) else ErrorCode.KAFKA_STORAGE_ERROR
    return Refused(code, str(fault))
