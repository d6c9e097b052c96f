"""Bugs planted where something is larger than the window it is read through, or sits at its edge: see mutations.py.

With the usual constants most of them need hundreds of megabytes to show. They are looked for in a whole broker whose
constants are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from planted import in_a_broker

from zurau.broker import upkeep as upkeep_module
from zurau.ids import Offset
from zurau.log import scan as scan_module
from zurau.log.compaction import CompactionJob
from zurau.log.log import Log
from zurau.log.scan import Scan
from zurau.log.segment import Place, Segment, SegmentEnd
from zurau.machines.controller import controller as controller_module
from zurau.machines.controller.commands import AllocateProducerIds
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import ProducerIdsAllocated
from zurau.partition import replay as replay_module
from zurau.partition.producers import Producers
from zurau.partition.replay import Replay
from zurau.ports import Disk
from zurau.records.batch import HEADER_BYTES, BatchHeader, check_crc, iter_batches


def check_what_is_in_the_window(self: Scan, position: int, header: BatchHeader) -> bool:
    """A batch that is larger than the window is judged by its beginning, and counts as damaged."""
    batch = self._file.read(position, min(max(scan_module.SCAN_BYTES, HEADER_BYTES), header.length))
    return check_crc(memoryview(batch), header) if len(batch) == header.length else False


def drop_the_last_of_a_window(
    self: Segment, position: int, end: SegmentEnd, *, may_block: bool
) -> Iterator[tuple[Place, bytes, int]]:
    """A header that begins in the window and ends behind it is taken for the end."""
    for place, window, at in _walk(self, position, end, may_block=may_block):
        yield place, window, at
        if at + place.stop - place.start < len(window) < at + place.stop - place.start + HEADER_BYTES:
            return


def cut_where_a_batch_begins(self: Segment, start: int, max_bytes: int, upto: Offset, *, may_block: bool) -> Any:
    """The limit is compared with where the batch begins."""
    stop, next_offset = start, upto
    for place in self.places(start, may_block=may_block):
        if place.last_offset >= upto or (place.start > start + max_bytes and stop > start):
            return stop, place.base_offset
        stop, next_offset = place.stop, place.last_offset + 1
    return stop, next_offset


def cut_before_a_batch_that_does_not_fit(
    self: Segment, start: int, max_bytes: int, upto: Offset, *, may_block: bool
) -> Any:
    """Also before the first, so a batch that is larger than the limit is never read."""
    stop, next_offset = _cut(self, start, max_bytes, upto, may_block=may_block)
    return (stop, next_offset) if stop - start <= max_bytes else (start, next_offset)


def look_first(self: Segment, start: int, max_bytes: int, upto: Offset) -> bytes:
    """No bug: then all reads are cut in one place."""
    return b""


def snapshot_one_later(disk: Disk, log: Log, producers: Producers) -> Callable[[], None]:
    """It claims to know of the next batch too."""
    path = f"{log.directory}/producers.snapshot"
    encode = producers.snapshot(log.end_offset + 1)
    return lambda: disk.replace_file(path, encode())


def replay_until_a_read_is_short(self: Replay, upto_offset: Offset) -> None:
    """A read that is not full is taken for the last one; but whole batches seldom fill it."""
    while self.next_offset < upto_offset:
        chunk = self._partition.log.read(self.next_offset, replay_module.READ_BYTES, upto_offset, may_block=True)
        for header, batch in iter_batches(memoryview(chunk)):
            self._apply_batch(batch, header)
            self.next_offset = header.next_offset
        if len(chunk) < replay_module.READ_BYTES:
            break
    self.next_offset = upto_offset


def begin_with_the_last_of_the_block(image: ClusterImage, command: AllocateProducerIds) -> Decided:
    ids = range(max(0, image.next_producer_id - 1), image.next_producer_id + command.count)
    return Decided([ProducerIdsAllocated(next_producer_id=ids.stop)], ids)


_cut = Segment._cut
_walk = Segment._walk
_is_kept = CompactionJob._is_kept


WINDOW_MUTATIONS = (
    in_a_broker(
        "a batch larger than the window counts as damaged", 30, (Scan, "_crc_is_right", check_what_is_in_the_window)
    ),
    in_a_broker("the last header of a window is dropped", 200, (Segment, "_walk", drop_the_last_of_a_window), near=85),
    in_a_broker(
        "a read is cut where a batch begins",
        30,
        (Segment, "_cut", cut_where_a_batch_begins),
        (Segment, "_read_at_once", look_first),
    ),
    in_a_broker(
        "a batch that is larger than a read is left out",
        30,
        (Segment, "_cut", cut_before_a_batch_that_does_not_fit),
        (Segment, "_read_at_once", look_first),
    ),
    in_a_broker(
        "a snapshot of producers is one offset late",
        300,
        (upkeep_module, "producers_snapshot", snapshot_one_later),
        near=90,
    ),
    in_a_broker("a machine's replay ends at a short read", 30, (Replay, "catch_up", replay_until_a_read_is_short)),
    in_a_broker(
        "blocks of producer ids overlap",
        30,
        (controller_module, "allocate_producer_ids", begin_with_the_last_of_the_block),
    ),
)
