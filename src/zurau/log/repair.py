"""Making a plain gap of what is damaged, so that the log can be read from end to end.

A segment with damage is written anew: the good batches as they are, and in the place of each damaged range a batch
without records that spans its offsets, as compaction leaves them. Consumers pass over it, recovery finds that every
segment ends where the next one begins, and no offset is given out again. The damaged bytes are kept beside it in a
file that ends in `.damaged`.

The broker must be stopped. A crash in between is harmless: the new file takes the old one's place in one rename, as
after a compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zurau.errors import DiskFault
from zurau.ids import NO_PRODUCER_ID, Epoch, Offset
from zurau.log.damage import DamagedRange
from zurau.log.files import CLEANED_SUFFIX, DAMAGED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, complete_swap
from zurau.log.scan import SCAN_BYTES
from zurau.ports import Disk, File
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, parse_header
from zurau.records.builder import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, pack_batch
from zurau.settings import INT32_MAX


def repair_segment(disk: Disk, damage: Iterable[DamagedRange]) -> list[str]:
    """Write one segment anew, given all that is damaged in it. Returns the files with the damaged bytes. Blocks."""
    ranges = sorted(damage, key=lambda one: (one.position, one.first_offset))
    path = ranges[0].file
    assert all(one.file == path for one in ranges)
    old = disk.open(path, create=False)
    kept = [aside for one in ranges if one.size_bytes for aside in _keep(disk, old, one)]
    disk.remove(path + CLEANED_SUFFIX)
    new = disk.open(path + CLEANED_SUFFIX)
    position, epoch = 0, 0
    for one in ranges:
        _copy(old, new, position, one.position)
        epoch = _epoch_before(old, position, one.position, epoch)
        new.append(list(_empty_batches(one.first_offset, one.next_offset, epoch)))
        position = one.end_position
    _copy(old, new, position, old.size)
    new.flush()
    new.close()
    old.close()
    disk.flush_directory(_parent(path))
    disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
    disk.flush_directory(_parent(path))
    complete_swap(disk, path.removesuffix(LOG_SUFFIX))  # without indexes: they are made again
    disk.flush_directory(_parent(path))
    return kept


def _keep(disk: Disk, old: File, damaged: DamagedRange) -> Iterator[str]:
    """Put a copy of the damaged bytes beside the segment."""
    aside = f"{damaged.file}.{damaged.position}{DAMAGED_SUFFIX}"
    number = 1
    while disk.exists(aside):
        number += 1
        aside = f"{damaged.file}.{damaged.position}-{number}{DAMAGED_SUFFIX}"
    copy = disk.open(aside)
    _copy(old, copy, damaged.position, damaged.end_position)
    copy.flush()
    copy.close()
    yield aside


def _copy(old: File, new: File, position: int, end: int) -> None:
    while position < end:
        piece = old.read(position, min(max(1, SCAN_BYTES), end - position))
        if not piece:
            raise DiskFault("a file became shorter while it was copied; is the broker running?")
        new.append([piece])
        position += len(piece)


def _epoch_before(file: File, position: int, end: int, epoch: Epoch) -> Epoch:
    """The epoch of the last batch in a good stretch."""
    while position < end:
        header = parse_header(file.read(position, HEADER_BYTES))
        epoch = max(epoch, header.leader_epoch)
        position += header.length
    return epoch


def _empty_batches(first_offset: Offset, next_offset: Offset, epoch: Epoch) -> Iterator[bytearray]:
    while first_offset < next_offset:
        count = min(next_offset - first_offset, INT32_MAX)
        header = BatchHeader(
            base_offset=first_offset,
            length=0,
            leader_epoch=epoch,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=NO_TIMESTAMP,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=0,
        )
        yield pack_batch(header, b"")
        first_offset += count


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
