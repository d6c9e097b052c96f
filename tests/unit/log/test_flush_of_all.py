"""A log among many that one flush of the whole disk makes safe."""

from __future__ import annotations

import pytest

from zurau.errors import DiskFault, FlushFailed


def test_a_flush_of_the_whole_disk_serves_for_a_flush_of_the_log(bench, disk):
    bench.fill(25)
    work = bench.log.begin_flush()
    disk.flush_all()
    work.after_all(None)
    bench.log.flush_done()
    disk.crash()
    assert (bench.log.flushed_offset, bench.open(clean=False).end_offset) == (25, 25)


def test_after_a_flush_of_the_whole_disk_that_failed_a_log_takes_no_more(bench):
    bench.fill(5)
    work = bench.log.begin_flush()
    with pytest.raises(FlushFailed, match="an error"):
        work.after_all(FlushFailed("an error"))
    with pytest.raises(DiskFault, match="takes no more writes"):
        bench.fill(1)
