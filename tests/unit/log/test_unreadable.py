"""A disk that cannot read some place in the middle of a file: that place is damaged, and the rest is served."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.log.last_known import LastKnown
from zurau.log.scan import BadStretch, Scan
from zurau.records.builder import NewRecord

FILE = "logs/t-0/00000000000000000000.log"
#: Each batch has 100 bytes, so these are of the batch with offset 5.
PLACE = range(520, 560)


@pytest.fixture
def bench(make_bench, monkeypatch):
    """Ten batches in one segment."""
    monkeypatch.setattr("zurau.log.scan.BLOCK_BYTES", 16)
    bench = make_bench(segment_bytes=1 << 20, index_interval_bytes=0)
    bench.fill(10)
    bench.flush()
    return bench


def served(log) -> list[int]:
    found = []
    for offset in range(log.start_offset, log.end_offset):
        try:
            log.read(offset, 100, offset + 1, may_block=True)
            found.append(offset)
        except CorruptData:
            pass
    return found


def test_a_read_is_told_of_damage_there_and_goes_on_behind_it(bench):
    bench.disk.make_unreadable(FILE, PLACE)
    assert served(bench.log) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    (damage,) = bench.log.damage
    assert (damage.first_offset, damage.next_offset) == (5, 6)
    assert "cannot read" in damage.reason


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_is_opened_with_the_place_named_and_the_rest_served(bench, clean):
    bench.append(NewRecord(None, b"last", timestamp=2000))
    bench.log.close()
    bench.disk.remove("logs/t-0/00000000000000000000.index")
    bench.disk.make_unreadable(FILE, PLACE)
    log = bench.open(clean=clean, last_known=LastKnown(11, 11 if clean else None, kept_unflushed=False))
    assert served(log) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_the_scan_finds_the_place_whatever_the_size_of_blocks_and_windows(bench, monkeypatch):
    bench.disk.make_unreadable(FILE, PLACE)
    file = bench.disk.open(FILE)
    for block in (1, 7, 64):
        for window in (7, 150, 1 << 20):
            monkeypatch.setattr("zurau.log.scan.BLOCK_BYTES", block)
            monkeypatch.setattr("zurau.log.scan.SCAN_BYTES", window)
            bad = [one for one in Scan(file, 1000, 10).stretches(0, 0) if isinstance(one, BadStretch)]
            assert bad[0].first_offset == 5


def test_a_search_by_time_passes_over_it(bench):
    bench.disk.make_unreadable(FILE, PLACE)
    assert bench.log.find_by_timestamp(1007, 10).offset == 7
