"""A file of batches, walked from header to header.

Whoever meets something that cannot be a header has the whole file looked through, once (see scan). What is damaged is
known from then on, and walks pass over it.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import msgspec

from zurau.errors import CorruptData, UnreadableData
from zurau.ids import Offset
from zurau.log.damage import ADVICE, DamagedRange
from zurau.log.scan import BadStretch, Scan
from zurau.ports import Disk, File, WouldBlock
from zurau.records.batch import HEADER_BYTES, LENGTH_PREFIX_BYTES, MAGIC, BatchHeader, check_crc, parse_header
from zurau.settings import KIB

log = logging.getLogger("zurau.log")

#: Read at once when going from header to header: a few small batches, or one header and the start of its batch. Any
#: value is right.
WALK_BYTES = 8 * KIB
#: base offset, length, (epoch), magic, (crc, attributes), last offset delta
_PLACE = struct.Struct(">qi4xb6xi")
#: Of what a walk yields.
_PLACE_OF = itemgetter(0)


class SegmentEnd(msgspec.Struct, frozen=True, gc=False):
    """Where the next batch goes."""

    offset: Offset
    position: int


class Place(NamedTuple):
    """A batch in a segment: its offsets, and where its bytes begin and end."""

    base_offset: Offset
    last_offset: Offset
    start: int
    stop: int


class BatchFile:
    """The batches from `base_offset` up to `end`, and which of them are known to be damaged."""

    __slots__ = ("_disk", "_file", "_scanned_bytes", "base_offset", "damage", "directory", "end", "is_retired", "path")

    def __init__(self, disk: Disk, directory: str, path: str, base_offset: Offset, end: SegmentEnd) -> None:
        self._disk = disk
        self.directory = directory
        self.path = path
        self.base_offset = base_offset
        #: Replaced as a whole, after the bytes are written. In a segment that is no longer written to, the offset is
        #: the next segment's first.
        self.end = end
        self.is_retired = False
        #: What is known to be damaged, in order. Replaced as a whole.
        self.damage: tuple[DamagedRange, ...] = ()
        #: Up to where the file was looked through for damage.
        self._scanned_bytes = 0
        self._file: File | None = None

    @property
    def size(self) -> int:
        return self.end.position

    @property
    def file(self) -> File:
        """The log file; made when first written to."""
        file = self._file
        if file is None:
            file = self._file = self._disk.open(self.path, create=self.size == 0)
        return file

    @property
    def is_open(self) -> bool:
        """Whether its file has been used, so that there is one."""
        return self._file is not None

    def make_file(self) -> None:
        """If there is none yet. Its name is safe when the directory is flushed."""
        assert self.file is not None

    # Walking

    def places(self, position: int = 0, *, may_block: bool = True) -> Iterator[Place]:
        """From header to header, beginning at `position`, which must be the start of a batch."""
        return map(_PLACE_OF, self._walk(position, self.end, may_block=may_block))

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """As `places`, with all that a header says. Blocks."""
        for place, window, at in self._walk(position, self.end, may_block=True):
            yield place.start, parse_header(window, at)

    def _walk(self, position: int, end: SegmentEnd, *, may_block: bool) -> Iterator[tuple[Place, bytes, int]]:
        """Each batch, some bytes that hold its header, and where in them. Passes over what is known to be damaged."""
        window, window_start = b"", position
        offset = self.base_offset
        while position < end.position:
            if self.damage and (behind := self._behind_damage(position)) != position:
                position = behind
                continue
            at = position - window_start
            if not 0 <= at <= len(window) - HEADER_BYTES:
                wanted = min(max(WALK_BYTES, HEADER_BYTES), self._before_damage(position, end.position) - position)
                try:
                    window = self.file.read(position, wanted, may_block=may_block)
                except UnreadableData as fault:
                    self._found_unreadable(fault, may_block=may_block)
                    continue
                window_start, at = position, 0
            place = place_in(window, at, position)
            if (
                place is None
                or place.stop > end.position
                or not offset <= place.base_offset <= place.last_offset < end.offset
            ):
                self._look_closer(position, may_block=may_block)
                continue
            yield place, window, at
            position, offset = place.stop, place.last_offset + 1

    # Damage

    def _behind_damage(self, position: int) -> int:
        for one in self.damage:
            if one.position <= position < one.end_position:
                return one.end_position
        return position

    def _before_damage(self, position: int, end_position: int) -> int:
        """Where damage begins next, or the end: the disk may not be able to read on there."""
        if not self.damage:
            return end_position
        return min((one.position for one in self.damage if one.position > position), default=end_position)

    def _check_gap(self, before: Place | None, behind: Iterator[Place], *, may_block: bool) -> None:
        """Offsets are missing between two batches: compaction made a gap, or damage made one of them lie."""
        next(behind, None)  # an offset that leaps ahead shows in the batch behind it
        if before is not None:
            batch = self.file.read(before.start, before.stop - before.start, may_block=may_block)
            if not check_crc(batch, parse_header(batch)):
                self._look_closer(before.start, may_block=may_block)

    def _look_closer(self, position: int, *, may_block: bool) -> None:
        """There is no batch at `position`. Raises `CorruptData` unless that is known, afterwards, to be damaged."""
        if not may_block:
            raise WouldBlock
        if not self.is_retired and position >= self._scanned_bytes:
            self.find_damage()
        if self._behind_damage(position) == position:
            raise CorruptData(f"{self.path} has no batch at {position}; run `zurau log check`")

    def _found_unreadable(self, fault: UnreadableData, *, may_block: bool) -> None:
        """The disk cannot read some place: find out which, and remember it. Raises the fault if it can after all."""
        if not may_block:
            raise WouldBlock
        before = self.damage
        self._scanned_bytes = 0
        self.find_damage()
        if self.damage is before:
            raise fault

    def find_damage(self) -> None:
        """Look at every byte of the file, and remember and tell what is damaged. Blocks."""
        end, known = self.end, self.damage
        if end.position <= self._scanned_bytes:
            return
        found = [
            self.damaged_range(stretch, end.offset)
            for stretch in Scan(self.file, end.position, end.offset).stretches(0, self.base_offset)
            if isinstance(stretch, BadStretch)
        ]
        if self.is_retired:
            return
        fresh = [one for one in found if one[:-1] not in {other[:-1] for other in known}]
        self._scanned_bytes = end.position
        if fresh:
            self.damage = tuple(sorted({*(one for one in known if not one.size_bytes), *found}))
            self._forget_places()
        for one in fresh:
            log.error("%s; %s", one, ADVICE)

    def _forget_places(self) -> None:
        """Where something was found before, something else may have to be found now."""

    def damaged_range(self, stretch: BadStretch, end_offset: Offset) -> DamagedRange:
        """A bad stretch of this segment's file; `end_offset`: where it ends if nothing good follows."""
        return DamagedRange(
            self.directory,
            stretch.first_offset,
            end_offset if stretch.next_offset is None else stretch.next_offset,
            self.path,
            stretch.position,
            stretch.end_position,
            stretch.reason,
        )

    def batch(self, place: Place) -> bytes:
        """The bytes of one batch. Blocks. Raises `CorruptData` if the disk cannot read them."""
        try:
            return self.file.read(place.start, place.stop - place.start)
        except UnreadableData as fault:
            self._found_unreadable(fault, may_block=True)
            raise CorruptData(f"{self.path} cannot be read at {place.start}; run `zurau log check`") from fault


def place_in(window: bytes, at: int, position: int) -> Place | None:
    """The batch whose header is in `window`, or None if it cannot be one."""
    if at + HEADER_BYTES > len(window):
        return None
    base_offset, length, magic, delta = _PLACE.unpack_from(window, at)
    if magic != MAGIC or length < HEADER_BYTES - LENGTH_PREFIX_BYTES:
        return None
    return Place(base_offset, base_offset + delta, position, position + LENGTH_PREFIX_BYTES + length)
