"""Leaving many partitions so that the next start is quick, with a few flushes of the whole disk, not some for each.

What a clean stop writes has to be safe in steps (see `Log.closing`): the records, then the time indexes, then all. All
partitions take each step together. What a partition cannot write leaves that one to be checked at the next start; a
flush that fails leaves all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from zurau.errors import DiskFault
from zurau.log.files import TEMPORARY_SUFFIX
from zurau.partition.opening import producers_snapshot
from zurau.partition.partition import Partition
from zurau.ports import Disk

log = logging.getLogger("zurau.partition")


def close_together(disk: Disk, partitions: Iterable[Partition]) -> list[Partition]:
    """Returns those that were left in good order. Blocks."""
    staged = _StagedFiles(disk)
    left_well: list[Partition] = []
    under_way = [(one, _steps(one, disk, staged.replace_file)) for one in partitions if not one.is_broken]
    while under_way:
        steps, under_way = under_way, []
        for partition, closing in steps:
            try:
                next(closing)
                under_way.append((partition, closing))
            except StopIteration:
                left_well.append(partition)
            except DiskFault as fault:
                log.warning("%s has to be checked at the next start: %s", partition.name, fault)
        try:
            if under_way:
                staged.make_safe()
        except DiskFault as fault:
            log.warning("%d partitions have to be checked at the next start: %s", len(under_way), fault)
            break
    for partition in partitions:
        if partition.is_broken:
            with suppress(DiskFault):  # then it is found again by whoever reads it
                partition.log.note_damage()
        partition.log.close(clean=False)
    return left_well


def _steps(partition: Partition, disk: Disk, replace_file: Callable[[str, bytes], None]) -> Iterator[None]:
    producers_snapshot(disk, partition.log, partition.producers, replace_file)()
    yield from partition.log.closing(replace_file)


class _StagedFiles:
    """Files that are replaced together, once everything is safe."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._paths: list[str] = []

    def replace_file(self, path: str, content: bytes) -> None:
        file = self._disk.open(path + TEMPORARY_SUFFIX)
        file.truncate(0)
        file.append([content])
        file.close()
        self._paths.append(path)

    def make_safe(self) -> None:
        """Everything that was written, and what was staged under its own name. The names are safe the next time."""
        self._disk.flush_all()
        for path in self._paths:
            self._disk.rename(path + TEMPORARY_SUFFIX, path)
        self._paths = []
