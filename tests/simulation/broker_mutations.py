"""Bugs planted in whole brokers: the journal, the log, the shell, machines, snapshots, topics. See mutations.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from planted import held, in_one

from zurau.broker import broker as broker_module
from zurau.broker import metadata_log as metadata_log_module
from zurau.broker import metadata_snapshots as metadata_snapshots_module
from zurau.broker import placement as placement_module
from zurau.broker.cluster_view import ClusterView
from zurau.broker.directories import Directories
from zurau.broker.stop_mark import StopMark
from zurau.epochs import Position
from zurau.errors import CorruptData, DiskFault
from zurau.ids import Epoch, Offset, TopicId
from zurau.journal import frames as frames_module
from zurau.journal.journal import Journal, LogNotes
from zurau.log.compaction import CompactionJob
from zurau.log.flushing import Flushing
from zurau.log.log import Log
from zurau.log.scan import Scan
from zurau.machines.controller.changes import Change
from zurau.machines.controller.image import ClusterImage
from zurau.machines.machine import Decision, OffsetOf
from zurau.partition import opening as opening_module
from zurau.partition import shell as shell_module
from zurau.partition import snapshots as snapshots_module
from zurau.partition.flushing import LogFlushing
from zurau.partition.group_flush import outcome_of
from zurau.partition.partition import Partition
from zurau.partition.producers import Producers
from zurau.partition.runtime import MachineRuntime
from zurau.partition.shell import Shell
from zurau.partition.snapshots import Snapshot
from zurau.partition.validation import ValidationQueue
from zurau.pending import Pending, done
from zurau.ports import Disk
from zurau.records.batch import BatchHeader
from zurau.replica.core.effects import SaveVote
from zurau.replica.core.state import ReplicaState
from zurau.simulation.brokers import process as process_module


def _nothing(*_: Any) -> None:
    pass


def _true(*_: Any) -> bool:
    return True


def _at_once(*_: Any) -> Pending[None]:
    return done(None)


# The journal


def note_what_is_written(self: Partition, batch: memoryview, header: BatchHeader) -> None:
    _write(self, batch, header)
    if self.shell._notes is not None:
        self.shell._notes.flushed(self.log.position)


def believe_a_torn_end(content: bytes, position: int) -> bytes | None:
    start = position + frames_module._HEADER.size
    return content[start : start + int.from_bytes(content[position + 4 : position + 8])]


def believe_any_stop(disk: Disk) -> StopMark | None:
    mark = _read_stop_mark(disk)
    return mark if mark is None else mark._replace(start_count=0)


# The log


def safe_up_to_the_end(self: Log) -> None:
    _flush_done(self)
    self.flushed_offset = self.end_offset


def flushed_up_to_the_end(self: LogFlushing, outcome: Any, number: int, upto: Position) -> None:
    _flushed(self, outcome, number, self._log.position)


def flush_no_names(self: Flushing, flush: Any, epochs: bytes | None, *, directory_changed: bool) -> None:
    for segment, _, _ in flush.segments:
        segment.flush()


def flush_the_last_segment_only(self: Flushing, flush: Any, epochs: bytes | None, *, directory_changed: bool) -> None:
    flush.segments = flush.segments[-1:]
    _make_safe(self, flush, epochs, directory_changed=directory_changed)


def finish_without_a_flush(disk: Any, group: Any) -> list[Any]:
    return [outcome_of(lambda flush=flush: flush.after_all(None), flush.pending) for flush in group]


def flush_again_and_believe_it(self: LogFlushing, fault: DiskFault, number: int) -> None:
    self._log._flushing.fault = None
    _failed(self, DiskFault(str(fault)), number)


class _Unflushed:
    """A disk whose files take no flush."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def open(self, path: str, **how: Any) -> Any:
        return _Unflushed(self._target.open(path, **how))

    def flush(self) -> None:
        pass


def rewrite_without_a_flush(self: CompactionJob, group: Any) -> Any:
    disk, self._disk = self._disk, _Unflushed(self._disk)  # type: ignore[assignment]
    try:
        return _rewrite(self, group)
    finally:
        self._disk = disk


# The shell and its partition


def go_on_before_the_vote_is_safe(self: Shell, effect: SaveVote) -> None:
    if self._notes is not None:
        self._notes.save_vote(effect.epoch, effect.voted_for)


everything_written = property(lambda self: self.log.position)


def overtake(self: ValidationQueue, client: Hashable) -> bool:
    return False


def take_any_snapshot_of_producers(disk: Disk, partition_log: Log, now_ms: int) -> Producers:
    producers = Producers()
    content = disk.read_file(f"{partition_log.directory}/{opening_module.PRODUCERS_FILE}")
    try:
        from_offset = producers.restore(content) if content is not None else partition_log.start_offset
    except CorruptData:
        from_offset = partition_log.start_offset
    for header in partition_log.headers(from_offset):
        producers.written(header, now_ms)
    return producers


def know_no_producers(disk: Disk, partition_log: Log, now_ms: int) -> Producers:
    return Producers()


# Machines


def reply_at_once(self: MachineRuntime[Any], decision: Decision, first_offset: Offset) -> None:
    for request_id, reply in decision.replies:
        said = first_offset + reply.record if isinstance(reply, OffsetOf) else reply
        self._deliver(self._waiting.pop(request_id), said, done(None))


def show_what_is_decided(self: ClusterView) -> list[Change]:
    self._replay.catch_up(self._metadata.log.end_offset)
    changes, self._changes = self._changes, []
    return changes


def write_and_show(self: Partition, batch: bytearray) -> Offset:
    offset = _append_own(self, batch)
    self.on_commit()
    return offset


def freeze_without_producer_ids(image: ClusterImage) -> Callable[[], Iterable[Any]]:
    records = _freeze(image)
    return lambda: [record for record in records() if type(record).__name__ != "ProducerIdsAllocated"]


def freeze_without_a_topic(image: ClusterImage) -> Callable[[], Iterable[Any]]:
    records = _freeze(image)
    return lambda: [record for record in records() if getattr(record, "name", "") != "orders"]


def start_over_without_a_word(self: Log, offset: Offset, restart_epoch: Epoch | None = None) -> None:
    _start_over(self, offset)


def no_snapshot(disk: Disk, directory: str, log_start_offset: Offset, log_end_offset: Offset) -> Snapshot:
    return snapshots_module.NO_SNAPSHOT


# Topics


def delete_later(self: Directories, directories: Iterable[str], topic_id: TopicId) -> None:
    self._remove(directories)


def any_topic_will_do(disk: Disk, directory: str) -> None:
    return None


_write = Partition._write
_read_stop_mark = broker_module.read_stop_mark
_flush_done = Log.flush_done
_flushed = LogFlushing._flushed
_failed = LogFlushing._failed
_make_safe = Flushing.make_safe
_rewrite = CompactionJob._rewrite
_start_over = Log._start_over
_append_own = Partition.append_own
_freeze = metadata_snapshots_module.freeze
_hasty_work = {**shell_module._WORK, SaveVote: go_on_before_the_vote_is_safe}


BROKER_MUTATIONS = (
    in_one("a position is noted when it is written", 100, (Partition, "_write", note_what_is_written)),
    in_one("a torn end of the journal is believed", 300, (frames_module, "_payload_at", believe_a_torn_end)),
    in_one(
        "a start is not noted", 300, (Journal, "begin", _nothing), (broker_module, "read_stop_mark", believe_any_stop)
    ),
    in_one("a vote is not written down", 100, (LogNotes, "save_vote", _at_once)),
    in_one("a replica votes before that is safe", 300, (shell_module, "_WORK", _hasty_work)),
    in_one(
        "a flush covers what came while it ran",
        100,
        (Log, "flush_done", safe_up_to_the_end),
        (LogFlushing, "_flushed", flushed_up_to_the_end),
    ),
    in_one("names of new segments are not flushed", 100, (Flushing, "make_safe", flush_no_names)),
    in_one("a segment that was rolled is not flushed", 100, (Flushing, "make_safe", flush_the_last_segment_only)),
    in_one("a group of logs is not flushed", 100, (process_module, "flush_together", finish_without_a_flush)),
    in_one(
        "a failed flush is tried again, believed", 300, (LogFlushing, "_failed", flush_again_and_believe_it), near=181
    ),
    in_one(
        "a compacted segment is swapped in before it is safe", 300, (CompactionJob, "_rewrite", rewrite_without_a_flush)
    ),
    in_one("a torn batch is taken for whole", 300, (Scan, "_crc_is_right", _true)),
    in_one("what is written counts as stored", 100, (ReplicaState, "stored", everything_written)),
    in_one("a quick batch overtakes a slow one", 100, (ValidationQueue, "has_waiting", overtake)),
    in_one(
        "a snapshot of producers outlives their batches",
        300,
        (placement_module, "restore_producers", take_any_snapshot_of_producers),
    ),
    in_one("producers are forgotten by a restart", 100, (placement_module, "restore_producers", know_no_producers)),
    in_one("a machine replies before it is committed", 100, (MachineRuntime, "_release_when_committed", reply_at_once)),
    in_one(
        "topics are shown before they are committed",
        100,
        (ClusterView, "catch_up", show_what_is_decided),
        (Partition, "append_own", write_and_show),
    ),
    in_one(
        "a snapshot forgets the producer ids", 300, (metadata_snapshots_module, "freeze", freeze_without_producer_ids)
    ),
    in_one("a snapshot forgets a topic", 300, (metadata_snapshots_module, "freeze", freeze_without_a_topic)),
    in_one("a snapshot is not read", 300, (metadata_log_module, "load_newest", no_snapshot)),
    in_one(
        "a deleted topic keeps its directories for a while",
        100,
        (Directories, "delete", delete_later),
        (placement_module, "read_topic_id", any_topic_will_do),
    ),
    held(
        "a log that begins anew does not say so first",
        "unit/log/test_restart.py::test_when_the_power_goes_it_is_the_old_log_or_the_new_one",
        (Log, "_start_over", start_over_without_a_word),
    ),
)
