"""Stored batches as the replica core sees them: one item for each run of batches of one epoch.

A new epoch begins a new run, because an epoch mark comes between; so does a control batch, since it may change who
votes. Every checksum is looked at on the way: a damaged disk must not pass its damage on to whoever follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zurau.epochs import EpochMark
from zurau.errors import CorruptData
from zurau.partition.voters import voters_in
from zurau.ports import Buffer
from zurau.records.batch import BatchHeader, check_crc, iter_batches
from zurau.replica.core.items import Batch, Item

#: A mark; a change of voters of the leader's own, which is a batch only when it is written; a batch of a leader's.
Write = EpochMark | Batch | tuple[BatchHeader, memoryview]


def split_runs(stored: Buffer) -> tuple[Batch, ...]:
    """Whole stored batches in runs. Nothing is copied. Raises `CorruptData`."""
    view = memoryview(stored)
    runs: list[Batch] = []
    run: list[BatchHeader] = []
    start = position = 0
    for header, batch in iter_batches(view):
        if not check_crc(batch, header):
            raise CorruptData(f"the batch at offset {header.base_offset} does not match its checksum")
        if run and (header.is_control or header.leader_epoch != run[0].leader_epoch):
            runs.append(_joined(run, view[start:position]))
            run, start = [], position
        position += header.length
        if header.is_control:
            runs.append(_control(header, batch))
            start = position
        else:
            run.append(header)
    if run:
        runs.append(_joined(run, view[start:position]))
    return tuple(runs)


def _joined(run: list[BatchHeader], data: memoryview) -> Batch:
    first, last = run[0], run[-1]
    return Batch(first.leader_epoch, first.base_offset, last.next_offset - first.base_offset, data)


def _control(header: BatchHeader, batch: memoryview) -> Batch:
    count = header.last_offset_delta + 1
    return Batch(header.leader_epoch, header.base_offset, count, batch, voters_in(batch))


def batches_of(run: Batch) -> Iterator[tuple[BatchHeader, memoryview]]:
    return iter_batches(run.data)


def writes_of(items: Iterable[Item]) -> Iterator[Write]:
    """What a replica is to append, one write after the other: each can be tried again by itself."""
    for item in items:
        if isinstance(item, EpochMark) or (item.voters is not None and not item.data):
            yield item
        else:
            yield from batches_of(item)
