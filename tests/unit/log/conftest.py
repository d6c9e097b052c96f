"""A log on a disk that can be made to fail, and short ways to fill and read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.ports import Disk
from zurau.records.batch import BatchHeader, iter_batches, stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import Record, iter_records
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"


class Bench:
    """One log and its disk."""

    def __init__(self, disk: Disk, **settings: Any) -> None:
        self.disk = disk
        disk.make_directory("logs")
        self.settings = LogSettings(**{"segment_bytes": 1000, "index_interval_bytes": 200, **settings})
        self.log = self.open()

    def open(self, *, clean: bool = True, now_ms: int = 0, last_known: LastKnown | None = None) -> Log:
        self.log = Log.open(self.disk, DIRECTORY, self.settings, now_ms=now_ms, clean=clean, last_known=last_known)
        return self.log

    def append(self, *records: NewRecord, epoch: int = 0, **facts: Any) -> bytes:
        batch = build_batch(records, **facts)
        self.log.append(batch, stamp(batch, self.log.end_offset, epoch))
        return bytes(batch)

    def fill(self, count: int, *, size: int = 32, timestamp: int = 1000, epoch: int = 0) -> list[bytes]:
        """One record a batch, a millisecond apart, each 100 bytes long if `size` is left alone."""
        return [
            self.append(NewRecord(None, bytes(size), timestamp=timestamp + number), epoch=epoch)
            for number in range(count)
        ]

    def flush(self) -> None:
        """Until nothing is left to do: indexes take a second round."""
        while (work := self.log.begin_flush()) is not None:
            work()
            self.log.flush_done()

    def compact(self, now_ms: int = 10_000) -> bool:
        job = self.log.plan_compaction(now_ms, self.log.end_offset)
        if job is None:
            return False
        job.run()
        self.log.finish_compaction(job)
        return True

    def remove(self) -> None:
        work = self.log.take_removals()
        if work is not None:
            work()

    def names(self, *suffixes: str) -> list[str]:
        return [name for name in self.disk.list_directory(DIRECTORY) if name.endswith(suffixes or "")]

    def read_all(self, max_bytes: int = 10_000) -> bytes:
        found = bytearray()
        offset = self.log.start_offset
        while data := self.log.read(offset, max_bytes, self.log.end_offset):
            found += data
            offset = headers(data)[-1].next_offset
        return bytes(found)

    def records(self) -> list[Record]:
        return [record for _, batch in iter_batches(self.read_all()) for record in iter_records(batch)]


def headers(data: bytes) -> Sequence[BatchHeader]:
    return [header for header, _ in iter_batches(data)]


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def bench(disk) -> Bench:
    return Bench(disk)


@pytest.fixture
def make_bench(disk) -> Callable[..., Bench]:
    return partial(Bench, disk=disk)
