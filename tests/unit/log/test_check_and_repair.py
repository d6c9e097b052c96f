from __future__ import annotations

from contextlib import suppress

import pytest

from zurau.errors import DiskFault
from zurau.log.check import check_log
from zurau.log.last_known import LastKnown
from zurau.log.repair import repair_segment
from zurau.records.batch import iter_batches
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"
LOG_0 = f"{DIRECTORY}/{0:020}.log"
LOG_10 = f"{DIRECTORY}/{10:020}.log"
LOG_20 = f"{DIRECTORY}/{20:020}.log"
ALL_FLUSHED = LastKnown(25, closed_offset=25)


def found(disk, last_known=ALL_FLUSHED) -> list[tuple[int, int]]:
    return [(one.first_offset, one.next_offset) for one in check_log(disk, DIRECTORY, last_known)]


def repair(disk) -> list[str]:
    damage = list(check_log(disk, DIRECTORY, ALL_FLUSHED))
    return [
        aside
        for path in dict.fromkeys(one.file for one in damage)
        for aside in repair_segment(disk, [one for one in damage if one.file == path])
    ]


DAMAGES = {
    "a flipped bit": (lambda disk: disk.flip_bit(LOG_0, 299), [(2, 3)]),
    "two flipped bits": (lambda disk: [disk.flip_bit(LOG_0, at) for at in (16, 516)], [(0, 1), (5, 6)]),
    "a broken first batch": (lambda disk: disk.flip_bit(LOG_0, 8, 6), [(0, 1)]),
    "a middle segment that is gone": (lambda disk: disk.remove(LOG_10), [(10, 20)]),
    "a last segment that is empty": (lambda disk: disk.open(LOG_20).truncate(0), [(20, 25)]),
    "a last segment that is gone": (lambda disk: disk.remove(LOG_20), [(20, 25)]),
    "a segment cut short": (lambda disk: disk.open(LOG_10).truncate(250), [(12, 20)]),
    "an end cut short": (lambda disk: disk.open(LOG_20).truncate(250), [(22, 25)]),
    "zeroes in place of a segment": (lambda disk: disk.replace_file(LOG_10, bytes(1000)), [(10, 20)]),
}


@pytest.mark.parametrize(("damage", "expected"), DAMAGES.values(), ids=DAMAGES)
def test_a_check_names_what_is_damaged(bench, disk, damage, expected):
    bench.fill(25)
    bench.log.close()
    damage(disk)
    assert found(disk) == expected


@pytest.mark.parametrize(("damage", "expected"), DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("clean", [True, False])
def test_a_repaired_log_has_a_plain_gap_that_stays_one(bench, disk, damage, expected, clean):
    batches = bench.fill(25)
    bench.log.close()
    damage(disk)
    repair(disk)
    assert found(disk) == []
    lost = {offset for first, after in expected for offset in range(first, after)}
    for last_known in (LastKnown(25, closed_offset=25 if clean else None), LastKnown(25, kept_unflushed=True), None):
        log = bench.open(clean=clean, last_known=last_known)
        assert (log.damage, log.start_offset, log.end_offset) == ([], 0, 25)
        assert [record.offset for record in bench.records()] == [offset for offset in range(25) if offset not in lost]
        whole = [bytes(batch) for header, batch in iter_batches(bench.read_all()) if header.record_count]
        assert whole == [batch for offset, batch in enumerate(batches) if offset not in lost]
        log.close()


def test_the_damaged_bytes_are_kept(bench, disk):
    bench.fill(25)
    bench.log.close()
    disk.flip_bit(LOG_0, 299)
    damaged = disk.read_file(LOG_0)[200:300]
    (aside,) = repair(disk)
    assert (aside, disk.read_file(aside)) == (f"{LOG_0}.200.damaged", damaged)


def test_a_repaired_log_can_be_written_to_and_compacted(make_bench, disk):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    bench.fill(25)
    bench.log.close()
    disk.flip_bit(LOG_0, 299)
    disk.remove(LOG_10)
    repair(disk)
    bench.open(clean=False, last_known=LastKnown(25))
    bench.fill(15)
    bench.flush()
    assert bench.compact()
    bench.open(clean=False, last_known=LastKnown(40))
    assert (bench.log.damage, bench.log.end_offset) == ([], 40)


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_in_the_middle_of_a_repair_loses_nothing(make_bench, seed):
    disk = SimulatedDisk(seed)
    bench = make_bench(disk=disk)
    bench.fill(25)
    bench.log.close()
    disk.flip_bit(LOG_0, 299)
    disk.capacity_bytes = disk.used_bytes + 150 * seed
    with suppress(DiskFault):  # it is full at some point
        repair(disk)
    disk.crash()
    disk.capacity_bytes = 1 << 40
    log = bench.open(clean=False, last_known=LastKnown(25))
    assert log.end_offset == 25
    assert [bool(log.read(offset, 1, 25, may_block=True)) for offset in (1, 3, 24)] == [True] * 3
    assert found(disk) in ([], [(2, 3)])


def test_a_write_under_way_is_not_damage(bench, disk):
    bench.fill(25)
    bench.log.close()
    disk.open(LOG_20).append([disk.read_file(LOG_20)[:61]])
    content = bytearray(disk.read_file(LOG_20))
    content[500:508] = (25).to_bytes(8)
    disk.replace_file(LOG_20, bytes(content))
    assert found(disk) == []


def test_progress_is_told_in_bytes(bench, disk):
    bench.fill(25)
    bench.log.close()
    disk.flip_bit(LOG_0, 299)
    told: list[int] = []
    list(check_log(disk, DIRECTORY, ALL_FLUSHED, told.append))
    assert sum(told) == 2500
