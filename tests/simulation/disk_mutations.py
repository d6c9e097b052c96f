"""Bugs planted around disks, snapshots and what is made of a log: see mutations.py."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from planted import in_sync, quorum

from zurau.epochs import EpochMark, Position
from zurau.partition.producers import Producers
from zurau.replica.core import reading as reading_module
from zurau.replica.core.effects import FetchSnapshot
from zurau.replica.core.events import Flushed, TimePassed
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch, Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import SnapshotPoint
from zurau.replica.core.reading import Readable, Reading
from zurau.replica.core.state import ReplicaState
from zurau.simulation.cluster import host as host_module
from zurau.simulation.cluster import service as service_module
from zurau.simulation.cluster.controller import Controller
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.memory import Folders, Memory
from zurau.simulation.cluster.replica_group import ReplicaGroup
from zurau.simulation.cluster.service import Service
from zurau.simulation.cluster.snapshots import Image, Snapshot, has_producer, written_by
from zurau.simulation.cluster.storage import StoredLog

# Disks


def read_damaged(self: StoredLog, offset: int, upto: int, count_max: int) -> tuple[Batch, ...]:
    """Nobody looks at checksums, and a bit of what was damaged is another one."""
    damaged = {self.items[index] for index in self.damaged - self.removed}
    with_none = dataclasses.replace(self, damaged=set())
    return tuple(_flipped(batch) if batch in damaged else batch for batch in _read(with_none, offset, upto, count_max))


def _flipped(batch: Batch) -> Batch:
    if not has_producer(batch):
        return batch
    producer, sequence = written_by(batch)
    return msgspec.structs.replace(batch, data=f"{producer}.{sequence ^ 64}".encode())


def put_back_under_its_old_name(self: ReplicaGroup, host: Host) -> None:
    self.replace_disk(host, host.old_copy)


def flush_again(self: Host, number: int) -> None:
    """The kernel has dropped what it could not write, and says yes the second time."""
    self.node.flush_fails = False
    disk = self.disk
    upto = disk._flush_marks.pop(number)
    del disk._writes[:upto]
    disk._flush_marks = {each: mark - upto for each, mark in disk._flush_marks.items()}
    self.tell(Flushed(number))


# Snapshots


def begin_without_an_epoch(self: LogView, mark: EpochMark) -> None:
    _restart(self, mark)
    self.epochs.truncate(Position(-1, -1))


def arrive_without_producers(self: Host, point: SnapshotPoint, checksum: int, snapshot: Snapshot) -> None:
    _arrived(self, point, checksum, dataclasses.replace(snapshot, producers=Producers().snapshot(0)))


def arrive_without_metadata(self: Host, point: SnapshotPoint, checksum: int, snapshot: Snapshot) -> None:
    _arrived(self, point, checksum, dataclasses.replace(snapshot, image=Image()))


def ask_again_with_every_answer(self: ReplicaState, leader: ReplicaId, point: SnapshotPoint) -> None:
    self.effects.append(FetchSnapshot(leader, point))


# What is removed


def only_dense_offsets(self: LogView, item: Item) -> None:
    begins = item.base_offset if isinstance(item, Batch) else item.start_offset
    assert begins == self.end_offset, f"{item} would leave a gap after {self.end_offset}"
    _append(self, item)


# What is made of a log


def remove_what_is_not_named(self: Folders, image: Image) -> None:
    for topic in self.kept - image.ids:
        self.remove(topic)
    self.kept = set(image.ids)


def apply_at_once(self: Memory, items: tuple[Any, ...]) -> None:
    _appended(self, items)
    self.committed(self._disk.seen.end_offset)


def _nothing(*_: Any) -> None:
    pass


def _true(*_: Any) -> bool:
    return True


def _false(*_: Any) -> bool:
    return False


# Consumers


def read_to_the_end(self: Service, offset: int, known_epoch: int) -> Any:
    host = self._host
    host.tell(TimePassed())
    if host.replica is None or not host.leads or not host.disk.start_offset <= offset < host.disk.seen.end_offset:
        return None
    return Reading.RECORDS, host.disk.seen.read(offset, host.disk.seen.end_offset, 4)


def out_of_range_behind_the_high_watermark(replica: Readable, offset: int, known_epoch: int) -> Reading:
    return Reading.OUT_OF_RANGE if offset > replica.high_watermark else _reading(replica, offset, known_epoch)


def in_any_epoch(replica: Readable, offset: int, known_epoch: int) -> Reading:
    return _reading(replica, offset, -1)


_append = LogView.append
_read = StoredLog.read
_restart = LogView.restart
_arrived = Host.snapshot_arrived
_appended = Memory.appended
_reading = reading_module.reading


DISK_MUTATIONS = (
    quorum("a damaged log is shortened and votes on", 600, (host_module, "is_intact", _true), near=107),
    quorum("a damaged batch is sent", 600, (StoredLog, "read", read_damaged), near=107),
    quorum("an old copy is put back under its old name", 300, (ReplicaGroup, "put_back", put_back_under_its_old_name)),
    quorum("a flush that failed is tried again", 300, (Host, "flush_failed", flush_again)),
    quorum("a log begins anew without an epoch", 300, (LogView, "restart", begin_without_an_epoch)),
    quorum("a snapshot comes without its producers", 300, (Host, "snapshot_arrived", arrive_without_producers)),
    quorum("a snapshot comes without its metadata", 300, (Host, "snapshot_arrived", arrive_without_metadata)),
    quorum(
        "a snapshot is asked for again while it comes",
        800,
        (ReplicaState, "fetch_snapshot", ask_again_with_every_answer),
        near=79,
    ),
    quorum("a compacted log cannot be followed", 300, (LogView, "append", only_dense_offsets), near=58),
    quorum("a follower keeps what the leader has deleted", 60, (ReplicaState, "follow_start", _false)),
    in_sync("a follower keeps what the leader has deleted, in sync", 60, (ReplicaState, "follow_start", _false)),
    quorum("metadata is applied before it is committed", 300, (Memory, "appended", apply_at_once)),
    quorum("what the metadata does not name is removed", 300, (Folders, "reconcile", remove_what_is_not_named)),
    quorum("producers are remembered across a truncation", 300, (Memory, "cut", _nothing)),
    quorum("a retry is written again", 300, (Service, "_is_repeated", _false)),
    quorum("a consumer reads to the end of the log", 300, (Service, "read", read_to_the_end)),
    quorum(
        "an offset behind the high watermark is out of range",
        300,
        (service_module, "reading", out_of_range_behind_the_high_watermark),
    ),
    in_sync("a deposed leader answers consumers", 800, (service_module, "reading", in_any_epoch), near=302),
    in_sync("an old copy is not found out", 300, (Controller, "is_old_copy", _false)),
    in_sync("a damaged log stays in sync", 300, (host_module, "is_intact", _true), near=31),
    in_sync("a retry is written again, in sync", 300, (Service, "_is_repeated", _false)),
)
