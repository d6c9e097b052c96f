"""One partition: the rules by which a batch gets in and records get out.

The line of an append: examine (header, checksum, every record), recognise a retry, stamp offset and epoch in place,
write, then flush in the background. A batch that takes long to examine leaves the loop for it, and those that come
after it wait (`judging.py`). The high watermark moves when the replica core says so, and whoever waits
for it is released.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData, DiskFault, FlushFailed, Refused
from zurau.ids import BrokerId, Epoch, Offset, TopicId, TopicPartition
from zurau.journal.journal import LogNotes
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.admission import Admission
from zurau.partition.judging import Judges, Line
from zurau.partition.producers import Producers
from zurau.partition.waiters import Waiters
from zurau.pending import Pending, done
from zurau.ports import Clock, Flusher, Timer
from zurau.records.batch import BatchHeader, stamp
from zurau.records.compression import TooLarge
from zurau.replica.lone import LoneReplica
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.partition")

#: How long to wait before what could not be stored is tried again: there may be room then.
RETRY_FLUSH_MS = 1000
#: How long a flush is put off while nobody waits for it. acks=1 does not, and would pay for one with each record.
UNAWAITED_FLUSH_MS = 5


#: Shared by all whose answer is there at once: it is never changed any more.
_DONE = done(None)


class Appended(NamedTuple):
    """Where a batch ended up. A repeated batch gets the place of its first copy."""

    base_offset: Offset
    next_offset: Offset
    log_append_time_ms: int


class Partition:
    """A partition that this broker leads."""

    __slots__ = (
        "_admission", "_clock", "_flush_timer", "_flusher", "_flushing", "_is_closed", "_line", "_notes", "_waiters",
        "broker_id", "fault", "log", "name", "on_commit", "producers", "replica", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        *,
        broker_id: BrokerId,
        replicas: Sequence[BrokerId],
        producers: Producers,
        clock: Clock,
        flusher: Flusher,
        judges: Judges,
        notes: LogNotes | None = None,
    ) -> None:
        """`notes`: where to write down how far the log is flushed."""
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.broker_id = broker_id
        self.producers = producers
        self.replica = LoneReplica(
            broker_id, replicas, last_epoch=log.epochs.last_epoch, log_start_offset=log.start_offset
        )
        self._clock = clock
        self._flusher = flusher
        self._flushing = False
        self._flush_timer: Timer | None = None
        self._notes = notes
        self._is_closed = False
        #: Why nothing is taken: until a restart if a flush failed, else until what failed was tried again and worked.
        self.fault: DiskFault | None = None
        self._waiters = Waiters()
        if notes is not None:
            notes.flushed(log.flushed_offset)
        self._admission = Admission(log.settings)
        self._line = Line(judges, self._rules, self._append_examined)
        #: Called when the high watermark has moved, before anybody who waits for that is told.
        self.on_commit: Callable[[], None] = _nobody_follows
        self._stored_more()

    # What is known of it

    @property
    def high_watermark(self) -> Offset:
        """The end of what is committed; consumers read below it."""
        return self.replica.high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """The end of what no open transaction can still take back. There are no transactions yet."""
        return self.replica.high_watermark

    @property
    def leader_epoch(self) -> Epoch:
        return self.replica.leader_epoch

    @property
    def is_broken(self) -> bool:
        """A flush failed: until the broker is restarted nothing more is taken, and nothing more gets committed."""
        return isinstance(self.fault, FlushFailed)

    # Getting in

    def append(self, batch: memoryview, header: BatchHeader) -> Appended | Pending[Appended]:
        """Check, stamp and write one batch from a producer: at once, or later if it takes long to examine.

        Batches are written in the order of the calls. Raises `Refused` with nothing changed.
        """
        admission, now_ms = self._rules()
        admission.check(batch, header)
        if not self._line and admission.is_quick(batch, header):
            try:
                examined = admission.examine(batch, header, now_ms, admission.quick_limit(header))
            except TooLarge:
                return self._line.join(batch, header)
            return self._append_examined(examined, header, now_ms)
        return self._line.join(batch, header)

    def _rules(self) -> tuple[Admission, int]:
        """Of this moment, and the moment."""
        if self._admission.settings is not self.log.settings:
            self._admission = Admission(self.log.settings)
        return self._admission, self._clock.now_ms()

    def _append_examined(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        if header.producer_id >= 0:
            repeated = self.producers.find_repeated(header)
            if repeated is not None:
                next_offset = repeated.base_offset + header.last_offset_delta + 1
                return Appended(repeated.base_offset, next_offset, repeated.timestamp)
        written = self._write(batch)
        self.producers.written(written, now_ms)
        return Appended(
            written.base_offset, written.next_offset, written.max_timestamp if written.uses_append_time else -1
        )

    def append_own(self, batch: bytearray) -> Offset:
        """Write a batch of the broker's own making; returns the offset at which it is committed."""
        return self._write(memoryview(batch)).next_offset

    def _write(self, batch: memoryview) -> BatchHeader:
        if self.fault is not None:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.fault))
        header = stamp(batch, self.log.end_offset, self.leader_epoch)
        try:
            self.log.append(batch, header)
        except DiskFault as fault:
            raise refusal(fault) from fault
        self._stored_more()
        return header

    def require_in_sync_replicas(self) -> None:
        """Refuse when fewer copies are in step than the topic asks for: acks=all would promise too much."""
        if self.log.settings.min_insync_replicas > 1:
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"min.insync.replicas={self.log.settings.min_insync_replicas}, but {self.name} has one replica",
            )

    # Getting safe

    def _stored_more(self) -> None:
        """The log holds more than the replica core knows: count it now, or once it is flushed."""
        log = self.log
        if log.settings.waits_for_flush:
            if not self._flushing:
                self._stored_upto(log.flushed_offset)
                if self._waiters.any_upto(log.end_offset):
                    self._flush()
                else:
                    self._flush_within(UNAWAITED_FLUSH_MS)
            return
        self._stored_upto(log.end_offset)
        if log.needs_flush or log.end_offset - log.flushed_offset >= log.settings.flush_messages:
            self._flush()
        elif log.settings.flush_ms < INT64_MAX:
            self._flush_within(log.settings.flush_ms)

    def _stored_upto(self, offset: Offset) -> None:
        if self.replica.stored(offset):
            self.on_commit()
            self._waiters.release(self.replica.high_watermark)

    def _flush(self) -> None:
        """Start a flush of what is not flushed; appends that come meanwhile share the next one."""
        work = None if self._flushing else self.log.begin_flush()
        if work is not None:
            self._flushing = True
            self._flusher.flush(work).then(self._flushed)

    def _flush_within(self, delay_ms: int) -> None:
        if self._flush_timer is None and self.log.flushed_offset < self.log.end_offset:
            self._flush_timer = self._clock.call_later(delay_ms, self._flush_due)

    def _flush_due(self) -> None:
        self._flush_timer = None
        self._flush()

    def _flushed(self, outcome: Pending[None]) -> None:
        self._flushing = False
        try:
            outcome.result()
        except DiskFault as fault:
            if not self._is_closed:
                self._not_flushed(fault)
            return
        if self.fault is not None:
            log.info("%s takes writes again", self.name)
            self.fault = None
        self.log.flush_done()
        if self._notes is not None:
            self._notes.flushed(self.log.flushed_offset)
        self._stored_more()

    def _not_flushed(self, fault: DiskFault) -> None:
        """Take no more, and tell everybody who waits. Consumers keep reading what is committed."""
        if isinstance(fault, FlushFailed):
            # The kernel may have dropped what it could not write; asking again would report success.
            log.error("%s takes no more writes until the broker is restarted: %s", self.name, fault)
            if self._notes is not None:
                self._notes.flush_failed()
        else:
            if self.fault is None:
                log.warning("%s takes no writes until this works, which is tried again and again: %s", self.name, fault)
            self.log.flush_failed()
            if self._flush_timer is None:
                self._flush_timer = self._clock.call_later(RETRY_FLUSH_MS, self._flush_due)
        self.fault = fault
        self._waiters.fail_all(Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))

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

    def wait_high_watermark(self, offset: Offset) -> Pending[None]:
        """Done when everything below `offset` is committed."""
        if self.replica.high_watermark >= offset:
            return _DONE
        if self.fault is not None:
            failed: Pending[None] = Pending()
            failed.fail(Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(self.fault)))
            return failed
        pending = self._waiters.wait(offset)
        if offset <= self.log.end_offset:
            self._flush()
        return pending

    def stop_waiting(self, offset: Offset, pending: Pending[None]) -> None:
        self._waiters.forget(offset, pending)

    def settings_changed(self, settings: LogSettings) -> None:
        self.log.settings = settings
        self._stored_more()

    # Getting smaller

    def delete_records_before(self, offset: Offset) -> Offset:
        """Forget what is below `offset` (-1: below the high watermark). Returns the new first offset."""
        wanted = self.high_watermark if offset == -1 else offset
        if not self.log.start_offset <= wanted <= self.high_watermark:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} holds offsets {self.log.start_offset} to {self.high_watermark}",
            )
        try:
            self.log.advance_start(wanted)
        except DiskFault as fault:
            raise refusal(fault) from fault
        return self.log.start_offset

    # The end of it

    def close(self, error: Callable[[], Refused]) -> None:
        """Release everyone who waits, with a reason."""
        self._is_closed = True
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self._line.close(error)
        self._waiters.fail_all(error())


def _nobody_follows() -> None:
    """Most partitions have no machine whose committed state somebody looks at."""


def refusal(fault: DiskFault) -> Refused:
    """What a client is told of a disk that failed."""
    code = ErrorCode.CORRUPT_MESSAGE if isinstance(fault, CorruptData) else ErrorCode.KAFKA_STORAGE_ERROR
    return Refused(code, str(fault))
