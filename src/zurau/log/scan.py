"""Reading a segment's file byte by byte, to learn which of its batches can be believed and where it goes wrong.

A batch is good if its checksum is right and it fits where it stands: its offsets follow on those before it and lie
below the next segment, and its epoch does not fall. Offset and epoch are outside of the checksum, so one that leaps
ahead is held against the batch behind it: if that one goes on as if there had been no leap, the leap is the damage.

Behind a bad place the next good batch is looked for: first where the bad batch says that it ends, then at every byte.
A record may hold a whole batch in its value, so one that is followed by another batch, or by the end of the file, is
believed before one that stands alone.

Files are read in windows. A batch may be larger than any window. What the disk cannot read counts as zeros, which are
no batch, so it is a bad place like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fastcrc import crc32

from zurau.errors import CorruptData, UnreadableData
from zurau.ids import Epoch, Offset
from zurau.ports import File
from zurau.records.batch import CHECKED_FROM, HEADER_BYTES, MAGIC, BatchHeader, parse_header
from zurau.settings import INT32_MAX, KIB, MIB

#: Read at once when every byte is checked. Any value is right.
SCAN_BYTES = 4 * MIB
#: What a disk reads or cannot read as one. Any value is right: others take longer, or lose more.
BLOCK_BYTES = 4 * KIB
_MAGIC_AT = 16
_BASE_OFFSET_BYTES = 8
_MAGIC_BYTE = bytes([MAGIC])


class GoodBatch(NamedTuple):
    position: int
    header: BatchHeader


class BadStretch(NamedTuple):
    """Bytes in which no batch can be believed."""

    position: int
    end_position: int
    first_offset: Offset
    #: The first offset of the good batch behind it; None if none follows in this file.
    next_offset: Offset | None
    #: Where the bad batch says that its offsets end; `first_offset` if it says nothing that can be.
    claimed_offset: Offset
    #: It is the beginning of a batch that could be good, and the file ends in it.
    is_cut_short: bool
    reason: str


class Scan:
    """One pass over the first `size` bytes of a file whose offsets all lie below `below_offset`. Blocks."""

    def __init__(self, file: File, size: int, below_offset: Offset) -> None:
        self._file = file
        self._size = size
        self._below_offset = below_offset
        self._window = memoryview(b"")
        self._window_start = 0
        #: Where blocks begin that the disk cannot read.
        self._unreadable: set[int] = set()

    def stretches(self, position: int, expected_offset: Offset, epoch: Epoch = -1) -> Iterator[GoodBatch | BadStretch]:
        """All of the file from `position` on: each good batch, and what lies between them."""
        while position < self._size:
            header, reason = self._judge(position, expected_offset, epoch)
            if header is not None and reason is None:
                yield GoodBatch(position, header)
                expected_offset, epoch = header.next_offset, header.leader_epoch
                position += header.length
                continue
            behind = self._find_behind(position, header, expected_offset, epoch)
            end_position = self._size if behind is None else behind.position
            if any(position <= one < end_position for one in self._unreadable):
                reason = "the disk cannot read it; look at the system's log and replace the disk"
            yield BadStretch(
                position,
                end_position,
                expected_offset,
                None if behind is None else behind.header.base_offset,
                self._claimed(header, expected_offset),
                behind is None and self._is_cut_short(position, expected_offset),
                reason or "",
            )
            if behind is None:
                return
            position = behind.position

    def _judge(self, position: int, expected_offset: Offset, epoch: Epoch) -> tuple[BatchHeader | None, str | None]:
        """The header at `position`, if there is one, and what is wrong with the batch, if anything is."""
        header = self._header(position)
        if header is None:
            return None, "no batch begins here"
        left = self._size - position
        reason = None
        if header.magic != MAGIC:
            reason = f"no batch begins here: its version would be {header.magic}"
        elif header.last_offset_delta < 0 or header.base_offset < expected_offset:
            reason = f"offsets {header.base_offset} to {header.last_offset} where {expected_offset} follows"
        elif header.next_offset > self._below_offset:
            reason = f"offset {header.last_offset} where all are below {self._below_offset}"
        elif header.leader_epoch < epoch:
            reason = f"leader epoch {header.leader_epoch} after {epoch}"
        elif header.length > left:
            reason = f"the batch is cut short: {left} of {header.length} bytes"
        elif not self._crc_is_right(position, header):
            reason = "the batch does not match its checksum"
        elif header.base_offset > expected_offset or header.leader_epoch > epoch:
            reason = self._leap(position, header, expected_offset, epoch)
        return header, reason

    def _leap(self, position: int, header: BatchHeader, expected_offset: Offset, epoch: Epoch) -> str | None:
        """What leaps ahead in this batch, going by the one behind it."""
        following = self._header(position + header.length)
        if following is None or following.magic != MAGIC or following.length > self._size - position - header.length:
            return None
        offset_leaps = expected_offset <= following.base_offset < header.next_offset
        epoch_leaps = (
            following.base_offset >= header.next_offset and epoch <= following.leader_epoch < header.leader_epoch
        )
        if not (offset_leaps or epoch_leaps) or not self._crc_is_right(position + header.length, following):
            return None
        if offset_leaps:
            return f"offset {header.base_offset} between {expected_offset} and {following.base_offset}"
        return f"leader epoch {header.leader_epoch} between {epoch} and {following.leader_epoch}"

    def _claimed(self, header: BatchHeader | None, expected_offset: Offset) -> Offset:
        if (
            header is None
            or header.magic != MAGIC
            or header.base_offset != expected_offset
            or not 0 <= header.last_offset_delta < max(header.record_count, 1)
            or header.next_offset > self._below_offset
        ):
            return expected_offset
        return header.next_offset

    def _is_cut_short(self, position: int, expected_offset: Offset) -> bool:
        """Whether a good batch could begin here and go on behind the end of the file."""
        data = self._bytes(position, HEADER_BYTES)
        if len(data) >= _BASE_OFFSET_BYTES and (
            not expected_offset <= int.from_bytes(data[:_BASE_OFFSET_BYTES]) < self._below_offset
        ):
            return False
        if len(data) > _MAGIC_AT and data[_MAGIC_AT] != MAGIC:
            return False
        header = self._header(position)
        return len(data) < HEADER_BYTES or (header is not None and header.length > self._size - position)

    # Behind a bad place

    def _find_behind(
        self, position: int, header: BatchHeader | None, expected_offset: Offset, epoch: Epoch
    ) -> GoodBatch | None:
        if header is not None and header.length < self._size - position:
            behind, reason = self._judge(position + header.length, expected_offset, epoch)
            if behind is not None and reason is None:
                return GoodBatch(position + header.length, behind)
        lonely: GoodBatch | None = None
        for at in self._candidates(position + 1, expected_offset):
            behind, reason = self._judge(at, expected_offset, epoch)
            if behind is None or reason is not None:
                continue
            found = GoodBatch(at, behind)
            if self._is_followed(found):
                return found if lonely is None or lonely.header.next_offset > behind.base_offset else lonely
            lonely = lonely or found
        return lonely

    def _is_followed(self, found: GoodBatch) -> bool:
        end = found.position + found.header.length
        if end == self._size:
            return True
        following = self._header(end)
        return (
            following is not None
            and following.magic == MAGIC
            and found.header.next_offset <= following.base_offset < self._below_offset
        )

    def _candidates(self, position: int, expected_offset: Offset) -> Iterator[int]:
        """Positions at which a header could begin, going by its version and the first bytes of its offset."""
        prefix = _common_prefix(expected_offset, self._below_offset - 1)
        while position + HEADER_BYTES <= self._size:
            data = self._read(position, min(max(SCAN_BYTES, HEADER_BYTES), self._size - position))
            at = data.find(_MAGIC_BYTE, _MAGIC_AT)
            while at >= 0:
                if data.startswith(prefix, at - _MAGIC_AT):
                    yield position + at - _MAGIC_AT
                at = data.find(_MAGIC_BYTE, at + 1)
            if len(data) <= _MAGIC_AT:
                return
            position += len(data) - _MAGIC_AT

    # Bytes

    def _header(self, position: int) -> BatchHeader | None:
        try:
            return parse_header(self._bytes(position, HEADER_BYTES))
        except CorruptData:
            return None

    def _read(self, position: int, length: int) -> bytes:
        """With zeros in the place of blocks that the disk cannot read."""
        try:
            return self._file.read(position, length)
        except UnreadableData:
            rest = position % BLOCK_BYTES
            if rest + length <= BLOCK_BYTES:
                self._unreadable.add(position)
                return bytes(length)
            # At the bound of a block in the middle, or the only one there is.
            first = max(BLOCK_BYTES - rest, length // 2 // BLOCK_BYTES * BLOCK_BYTES - rest)
            return self._read(position, first) + self._read(position + first, length - first)

    def _bytes(self, position: int, count: int) -> memoryview:
        """Up to `count` bytes; fewer only at the end."""
        count = max(0, min(count, self._size - position))
        at = position - self._window_start
        if not 0 <= at <= at + count <= len(self._window):
            wanted = min(max(SCAN_BYTES, count), self._size - position)
            self._window, self._window_start, at = memoryview(self._read(position, wanted)), position, 0
        return self._window[at : at + count]

    def _crc_is_right(self, position: int, header: BatchHeader) -> bool:
        """Whether the batch matches its checksum. Its end is known to lie in the file."""
        if header.length <= max(SCAN_BYTES, HEADER_BYTES):
            return crc32.iscsi(self._bytes(position, header.length)[CHECKED_FROM:]) == header.crc
        crc, at, end = 0, position + CHECKED_FROM, position + header.length
        while at < end:
            piece = self._read(at, min(max(SCAN_BYTES, 1), end - at))
            if not piece:
                return False
            crc = crc32.iscsi(piece, crc)
            at += len(piece)
        return crc == header.crc


def highest_offset(base_offset: Offset, following: Offset | None) -> Offset:
    """What all offsets of a segment are below: the next segment, or what its indexes can express."""
    limit = base_offset + INT32_MAX + 1
    return limit if following is None else min(limit, following)


def _common_prefix(low: Offset, high: Offset) -> bytes:
    """The bytes with which all offsets from `low` to `high` begin."""
    first, last = low.to_bytes(_BASE_OFFSET_BYTES), max(low, high).to_bytes(_BASE_OFFSET_BYTES)
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=True)) if a != b), _BASE_OFFSET_BYTES)
    return first[:same]
