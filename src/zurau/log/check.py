"""Reading a whole log, checksums included, to name what of it is damaged. Only reads; the broker may be running.

The end of the last segment may be a write that is under way, or that a crash has torn: the beginning of a batch there,
above what is known to be flushed, is not damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.log.damage import DamagedRange, gap_reason
from zurau.log.files import LOG_SUFFIX, is_segment_file, segment_stem
from zurau.log.last_known import LastKnown
from zurau.log.scan import BadStretch, Scan, highest_offset
from zurau.log.segment_checks import walked_end
from zurau.log.segment_files import open_segment
from zurau.ports import Disk


def segment_bases(disk: Disk, directory: str) -> list[Offset]:
    """The base offsets of the segments in a directory, in order."""
    return [
        int(name.removesuffix(LOG_SUFFIX))
        for name in disk.list_directory(directory)
        if is_segment_file(name) and name.endswith(LOG_SUFFIX) and not disk.is_directory(f"{directory}/{name}")
    ]


def log_bytes(disk: Disk, directory: str) -> int:
    """How much a check will read."""
    return sum(disk.file_size(segment_stem(directory, base) + LOG_SUFFIX) for base in segment_bases(disk, directory))


def check_log(
    disk: Disk, directory: str, last_known: LastKnown, advance: Callable[[int], None] = lambda _: None
) -> Iterator[DamagedRange]:
    """Every damaged range, in order; `advance` is told how many more bytes were read. Blocks."""
    bases = _without_merged(disk, directory)
    for base, following in pairwise([*bases, None]):
        assert base is not None
        yield from _check_segment(disk, directory, base, following, last_known, advance)


def _check_segment(
    disk: Disk,
    directory: str,
    base: Offset,
    following: Offset | None,
    last_known: LastKnown,
    advance: Callable[[int], None],
) -> Iterator[DamagedRange]:
    path = segment_stem(directory, base) + LOG_SUFFIX
    known_end = max(last_known.flushed_offset, last_known.closed_offset or 0)
    end, position, size = base, 0, 0
    try:
        file = disk.open(path, create=False)
        size = file.size
        for stretch in Scan(file, size, highest_offset(base, following)).stretches(0, base):
            if not isinstance(stretch, BadStretch):
                end, position = stretch.header.next_offset, stretch.position + stretch.header.length
                advance(stretch.header.length)
                continue
            advance(stretch.end_position - stretch.position)
            if following is None and stretch.is_cut_short and stretch.first_offset >= known_end:
                break
            end = stretch.next_offset or following or max(stretch.claimed_offset, stretch.first_offset + 1, known_end)
            position = stretch.end_position
            if end > stretch.first_offset or position > stretch.position:
                yield DamagedRange(
                    directory, stretch.first_offset, end, path, stretch.position, position, stretch.reason
                )
        file.close()
    except DiskFault as fault:
        yield DamagedRange(directory, end, following or max(known_end, end + 1), path, position, size, str(fault))
        return
    if following is not None and end < following:
        yield DamagedRange(directory, end, following, path, position, position, gap_reason(following))
    elif following is None and end < known_end:
        reason = f"everything below offset {known_end} was flushed once"
        yield DamagedRange(directory, end, known_end, path, position, position, reason)


def _without_merged(disk: Disk, directory: str) -> Sequence[Offset]:
    """The segments, without those that a compaction had merged into the one before them when a crash came."""
    bases = segment_bases(disk, directory)
    kept: list[Offset] = []
    end = 0
    for base in bases:
        if base >= end or end not in bases:
            kept.append(base)
            end = _last_offset(disk, directory, base, end)
    return kept


def _last_offset(disk: Disk, directory: str, base: Offset, end: Offset) -> Offset:
    segment = open_segment(disk, directory, base, highest_offset(base, None))
    try:
        return max(end, walked_end(segment))
    except DiskFault:
        return end
    finally:
        segment.close()
