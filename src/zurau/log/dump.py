"""Telling what is in a log's directory, for people: everything that is found, in order, and what is wrong with it.

Reads only; a log that is being written to can be looked at too. Damage is one of the things that are found: behind
something that is no batch, the next good one is looked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from zurau.errors import CorruptData, DiskFault
from zurau.ids import Offset
from zurau.log.files import LOG_SUFFIX, OFFSET_SUFFIX, TIME_SUFFIX, is_segment_file, segment_stem
from zurau.log.index import OFFSET_ENTRY, TIME_ENTRY
from zurau.log.scan import BadStretch, Scan, highest_offset
from zurau.ports import Disk, File
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc, parse_header
from zurau.records.record import Record, iter_records


class SegmentFound(NamedTuple):
    path: str
    base_offset: Offset
    size_bytes: int


class BatchFound(NamedTuple):
    path: str
    position: int
    header: BatchHeader


class RecordFound(NamedTuple):
    path: str
    record: Record


class OffsetEntryFound(NamedTuple):
    path: str
    offset: Offset
    position: int


class TimeEntryFound(NamedTuple):
    path: str
    timestamp: int
    offset: Offset


class DamageFound(NamedTuple):
    path: str
    position: int
    text: str


Finding = SegmentFound | BatchFound | RecordFound | OffsetEntryFound | TimeEntryFound | DamageFound


def dump_log(disk: Disk, directory: str, *, records: bool = False, indexes: bool = False) -> Iterator[Finding]:
    """Every segment and batch of the log in `directory`; its records and index entries if asked for. Blocks."""
    for name in disk.list_directory(directory):
        if is_segment_file(name) and name.endswith(LOG_SUFFIX):
            base_offset = int(name.removesuffix(LOG_SUFFIX))
            yield from dump_segment(disk, directory, base_offset, records=records, indexes=indexes)


def dump_segment(
    disk: Disk, directory: str, base_offset: Offset, *, records: bool = False, indexes: bool = False
) -> Iterator[Finding]:
    stem = segment_stem(directory, base_offset)
    path = stem + LOG_SUFFIX
    try:
        file = disk.open(path, create=False)
    except DiskFault as fault:
        yield DamageFound(path, 0, str(fault))
        return
    try:
        yield SegmentFound(path, base_offset, file.size)
        yield from _batches(file, path, base_offset, records=records)
    finally:
        file.close()
    if indexes:
        yield from _offset_entries(disk, stem + OFFSET_SUFFIX, base_offset)
        yield from _time_entries(disk, stem + TIME_SUFFIX, base_offset)


def _batches(file: File, path: str, expected_offset: Offset, *, records: bool) -> Iterator[Finding]:
    scan = Scan(file, file.size, highest_offset(expected_offset, None))
    position = 0
    while position < file.size:
        left = file.size - position
        try:
            header = parse_header(file.read(position, HEADER_BYTES))
            batch = file.read(position, header.length) if header.length <= left else b""
        except DiskFault as fault:
            yield DamageFound(path, position, f"no batch begins here: {fault}")
            position = _next_batch(scan, position, expected_offset, file.size)
            continue
        yield BatchFound(path, position, header)
        if not batch:
            yield DamageFound(path, position, f"the batch is cut short: {left} of {header.length} bytes")
            position = _next_batch(scan, position, expected_offset, file.size)
            continue
        if (trouble := _trouble(batch, header, expected_offset)) is not None:
            yield DamageFound(path, position, trouble)
        elif records:
            yield from _records(batch, path, position)
        expected_offset = header.next_offset
        position += header.length


def _next_batch(scan: Scan, position: int, expected_offset: Offset, end: int) -> int:
    """Where the next good batch begins, or the end."""
    stretch = next(scan.stretches(position, expected_offset), None)
    return stretch.end_position if isinstance(stretch, BadStretch) else end


def _trouble(batch: bytes, header: BatchHeader, expected_offset: Offset) -> str | None:
    if header.magic != MAGIC:
        return f"the batch is of version {header.magic}"
    if not check_crc(batch, header):
        return "the batch does not match its checksum"
    if header.base_offset < expected_offset:
        return f"offset {header.base_offset} after offset {expected_offset - 1}"
    return None


def _records(batch: bytes, path: str, position: int) -> Iterator[Finding]:
    try:
        for record in iter_records(batch):
            yield RecordFound(path, record)
    except CorruptData as damage:
        yield DamageFound(path, position, str(damage))


def _offset_entries(disk: Disk, path: str, base_offset: Offset) -> Iterator[Finding]:
    entries, damage = _entries(disk, path, OFFSET_ENTRY)
    yield from (OffsetEntryFound(path, base_offset + relative, position) for relative, position in entries)
    yield from damage


def _time_entries(disk: Disk, path: str, base_offset: Offset) -> Iterator[Finding]:
    entries, damage = _entries(disk, path, TIME_ENTRY)
    yield from (TimeEntryFound(path, timestamp, base_offset + relative) for timestamp, relative in entries)
    yield from damage


def _entries(disk: Disk, path: str, entry: struct.Struct) -> tuple[list[tuple[int, int]], list[DamageFound]]:
    data = disk.read_file(path) or b""
    whole = len(data) // entry.size * entry.size
    entries = [(first, second) for first, second in entry.iter_unpack(data[:whole])]
    damage = [
        DamageFound(path, number * entry.size, "the entry does not follow on the one before it")
        for number, (before, after) in enumerate(pairwise(entries), 1)
        if after[0] <= before[0]
    ]
    if whole < len(data):
        damage.append(DamageFound(path, whole, "the last entry is cut short"))
    return entries, damage
