"""A log that begins anew behind a snapshot is the old one or the new one, whenever the power goes."""

from __future__ import annotations

from contextlib import suppress

import pytest

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault
from zurau.log.last_known import LastKnown
from zurau.simulation.disk import SimulatedDisk

OLD = Position(1, 25)
#: More operations of the disk than it takes to begin anew, and fewer than completing that takes, or a little more.
STEPS, MORE_STEPS = 40, 12


@pytest.fixture(params=[EpochMark(5, 100), EpochMark(5, 10), EpochMark(0, 100)], ids=["behind", "within", "older"])
def mark(request):
    """Behind all that the log holds; before the end of what nobody else has; after a mark that nobody followed."""
    return request.param


def filled(make_bench, seed: int = 0):
    bench = make_bench(disk=SimulatedDisk(seed))
    bench.fill(25, epoch=1)
    bench.flush()
    return bench


def begin_anew_until_power_goes(bench, mark: EpochMark, operations: int) -> bool:
    """Returns whether it was done by then."""
    bench.disk.fail_power_after(operations)
    try:
        bench.log.restart(mark)
    except DiskFault:
        return False
    finally:
        bench.disk.crash()
    return True


@pytest.mark.parametrize("seed", range(3))
def test_when_the_power_goes_it_is_the_old_log_or_the_new_one(make_bench, mark, seed):
    seen = set()
    for operations in range(STEPS):
        bench = filled(make_bench, seed)
        old, new = (0, OLD, bench.read_all()), (mark.start_offset, Position(*mark), b"")
        is_done = begin_anew_until_power_goes(bench, mark, operations)
        log = bench.open(clean=False, last_known=LastKnown())
        assert (log.start_offset, log.position, bench.read_all()) in ([new] if is_done else [old, new])
        seen.add((is_done, log.position == OLD))
    assert seen == {(False, True), (False, False), (True, False)}


def test_the_power_may_go_again_while_it_is_completed(make_bench, mark):
    for operations in range(STEPS):
        for more in range(MORE_STEPS):
            bench = filled(make_bench)
            old, new = (0, OLD, bench.read_all()), (mark.start_offset, Position(*mark), b"")
            begin_anew_until_power_goes(bench, mark, operations)
            bench.disk.fail_power_after(more)
            with suppress(DiskFault):
                bench.open(clean=False, last_known=LastKnown())
            bench.disk.crash()
            log = bench.open(clean=False, last_known=LastKnown())
            assert (log.start_offset, log.position, bench.read_all()) in (old, new)


def test_what_was_being_compacted_in_the_old_log_does_not_come_back(make_bench):
    bench = filled(make_bench)
    first = bench.names(".log")[0]
    bench.disk.replace_file(f"logs/t-0/{first}.swap", bench.disk.read_file(f"logs/t-0/{first}"))
    begin_anew_until_power_goes(bench, EpochMark(5, 100), 8)
    bench.open(clean=False, last_known=LastKnown())
    assert (bench.log.start_offset, bench.log.position, bench.read_all()) == (100, Position(5, 100), b"")


def test_marks_of_the_old_log_that_the_journal_has_are_not_taken_for_the_new_ones(make_bench):
    """To say that epoch 1 ended where the log begins would be to take what it wrote before for the same everywhere."""
    bench = make_bench()
    bench.log.mark(EpochMark(1, 0))
    bench.log.marks_noted(bench.log.epochs.change_count)
    bench.fill(25, epoch=1)
    bench.flush()
    bench.log.restart(EpochMark(5, 100))
    bench.disk.crash()
    log = bench.open(clean=False, last_known=LastKnown(marks=(EpochMark(1, 0),)))
    assert log.epochs.marks == [EpochMark(5, 100)]


@pytest.mark.parametrize("start", [10, 13, 20])
@pytest.mark.parametrize("epoch", [0, 1])
def test_when_the_power_goes_while_all_is_truncated_the_start_and_the_mark_there_stay(make_bench, start, epoch):
    """A log that began later would pass for one of which more is committed; one without its mark for an older one."""
    seen = set()
    for operations in range(STEPS):
        bench = make_bench(disk=SimulatedDisk(operations))
        bench.fill(start)
        bench.fill(30 - start, epoch=1)
        bench.flush()
        bench.log.advance_start(start)
        content = bench.read_all()
        bench.disk.fail_power_after(operations)
        with suppress(DiskFault):
            bench.log.truncate(Position(epoch, start))
            seen.add("done")
        bench.disk.crash()
        log = bench.open(clean=False, last_known=LastKnown())
        assert log.start_offset == start
        assert Position(epoch, start) <= log.position
        assert content.startswith(bench.read_all())
        seen.add(log.end_offset)
    assert seen == {"done", start, 20, 30}
