from __future__ import annotations

import pytest

from zurau.errors import DiskFault, FlushFailed
from zurau.ports import WouldBlock
from zurau.simulation.disk import SimulatedDisk


@pytest.fixture(params=range(8))
def disk(request) -> SimulatedDisk:
    disk = SimulatedDisk(request.param)
    disk.make_directory("logs")
    return disk


def written(disk: SimulatedDisk, path: str, safe: bytes, more: bytes) -> None:
    file = disk.open(path)
    file.append([safe])
    file.flush()
    disk.flush_directory("logs")
    file.append([more])


def test_a_crash_keeps_what_was_flushed_and_a_beginning_of_the_rest(disk):
    written(disk, "logs/a", b"safe", b"12345678")
    disk.crash()
    survived = disk.read_file("logs/a")
    assert survived is not None
    assert survived.startswith(b"safe")
    assert b"safe12345678".startswith(survived.rstrip(b"\0"))


def test_different_seeds_tear_at_different_bytes():
    lengths = set()
    for seed in range(40):
        disk = SimulatedDisk(seed)
        disk.make_directory("logs")
        written(disk, "logs/a", b"", bytes(range(1, 20)))
        disk.crash()
        lengths.add(len((disk.read_file("logs/a") or b"").rstrip(b"\0")))
    assert len(lengths) > 10


def test_the_same_seed_crashes_the_same_way():
    def survivors() -> list[bytes | None]:
        disk = SimulatedDisk(7)
        disk.make_directory("logs")
        for name in "abc":
            written(disk, f"logs/{name}", b"x", bytes(range(1, 50)))
        disk.crash()
        return [disk.read_file(f"logs/{name}") for name in "abc"]

    assert survivors() == survivors()


def test_a_name_is_not_safe_before_its_directory_was_flushed():
    survived = set()
    for seed in range(20):
        disk = SimulatedDisk(seed)
        disk.make_directory("logs")
        file = disk.open("logs/a")
        file.append([b"x"])
        file.flush()
        disk.crash()
        survived.add(disk.read_file("logs/a"))
    assert survived == {None, b"x"}


def test_changes_of_names_survive_in_order():
    survived = set()
    for seed in range(40):
        disk = SimulatedDisk(seed)
        disk.make_directory("logs")
        written(disk, "logs/a", b"x", b"")
        disk.rename("logs/a", "logs/b")
        disk.rename("logs/b", "logs/c")
        disk.crash()
        survived.add(tuple(disk.list_directory("logs")))
    assert survived == {("a",), ("b",), ("c",)}


def test_a_flushed_removal_stays_removed(disk):
    written(disk, "logs/a", b"x", b"")
    disk.remove("logs/a")
    disk.flush_directory("logs")
    disk.crash()
    assert not disk.exists("logs/a")


def test_a_file_replaced_as_a_whole_survives_whole(disk):
    disk.replace_file("logs/state", b"old")
    disk.replace_file("logs/state", b"new")
    disk.crash()
    assert disk.read_file("logs/state") == b"new"


def test_a_cut_that_was_not_flushed_may_come_back():
    survived = set()
    for seed in range(40):
        disk = SimulatedDisk(seed)
        disk.make_directory("logs")
        written(disk, "logs/a", b"abcdef", b"")
        file = disk.open("logs/a")
        file.truncate(3)
        file.append([b"xyz"])
        disk.crash()
        survived.add((disk.read_file("logs/a") or b"").rstrip(b"\0"))
    assert {b"abcdef", b"abc", b"abcxyz"} <= survived


def test_open_files_do_not_survive_a_crash(disk):
    file = disk.open("logs/a")
    disk.crash()
    with pytest.raises(DiskFault, match="closed"):
        file.append([b"x"])


def test_a_full_disk_writes_nothing_and_takes_more_when_there_is_room(disk):
    disk.capacity_bytes = 5
    file = disk.open("logs/a")
    with pytest.raises(DiskFault, match="full"):
        file.append([b"abc", b"def"])
    file.append([b"abc"])
    assert disk.free_bytes() == 2


def test_a_failed_flush_makes_nothing_safe(disk):
    file = disk.open("logs/a")
    disk.fail_flushes = True
    with pytest.raises(DiskFault, match="flush"):
        file.flush()


def test_a_flipped_bit_stays_flipped(disk):
    written(disk, "logs/a", b"abc", b"")
    disk.flip_bit("logs/a", 1, bit=0)
    disk.crash()
    assert disk.read_file("logs/a") == b"acc"


def test_bytes_out_of_memory_are_read_only_by_waiting(disk):
    written(disk, "logs/a", b"abc", b"")
    file = disk.open("logs/a")
    disk.forget_cached()
    with pytest.raises(WouldBlock):
        file.read(0, 1, may_block=False)
    assert file.read(0, 1) == b"a"
    assert file.read(0, 1, may_block=False) == b"a"


def test_files_need_a_directory_to_be_in(disk):
    with pytest.raises(DiskFault, match="directory"):
        disk.open("nowhere/a")


def test_a_renamed_directory_takes_its_files_along(disk):
    written(disk, "logs/a", b"safe", b"")
    disk.rename("logs", "old")
    disk.flush_directory("")
    disk.crash()
    assert not disk.exists("logs")
    assert disk.list_directory("") == ["old"]
    assert disk.read_file("old/a") == b"safe"


def test_a_crash_keeps_a_directory_under_one_of_its_names(disk):
    written(disk, "logs/a", b"safe", b"")
    disk.rename("logs", "old")
    disk.crash()
    (name,) = disk.list_directory("")
    assert name in {"logs", "old"}
    assert disk.read_file(f"{name}/a") == b"safe"


def test_a_directory_is_not_renamed_over_one_that_holds_something(disk):
    disk.make_directory("old")
    disk.open("old/b")
    with pytest.raises(DiskFault, match="old is not empty"):
        disk.rename("logs", "old")


def test_a_flush_that_takes_its_time_leaves_out_what_came_meanwhile():
    survived = set()
    for seed in range(40):
        disk = SimulatedDisk(seed)
        file = disk.open("a")
        disk.flush_directory("")
        file.append([b"before"])
        begun = file.begin_flush()
        file.append([b"meanwhile"])
        file.flush(begun)
        disk.crash()
        survived.add((disk.read_file("a") or b"").rstrip(b"\0"))
    assert all(content.startswith(b"before") for content in survived)
    assert b"before" in survived


def test_a_cut_while_a_flush_runs_is_not_safe_with_it(disk):
    file = disk.open("logs/a")
    disk.flush_directory("logs")
    file.append([b"abcdef"])
    begun = file.begin_flush()
    file.truncate(2)
    file.append([b"xyz"])
    file.flush(begun)
    disk.crash()
    survived = (disk.read_file("logs/a") or b"").rstrip(b"\0")
    assert b"abxyz".startswith(survived)
    assert survived.startswith(b"ab")


def test_names_that_come_while_a_directory_is_flushed_are_not_safe_with_it():
    survived = set()
    for seed in range(40):
        disk = SimulatedDisk(seed)
        disk.open("a")
        disk.open("b")
        disk.flush_directory("", 1)
        disk.crash()
        survived.add(tuple(disk.list_directory("")))
    assert survived == {("a",), ("a", "b")}


def test_what_a_failed_flush_dropped_is_seen_and_never_safe_though_the_next_flush_works(disk):
    written(disk, "logs/a", b"safe", b"dropped")
    file = disk.open("logs/a")
    disk.fail_flushes = True
    with pytest.raises(FlushFailed):
        file.flush()
    disk.fail_flushes = False
    file.append([b"later"])
    file.flush()
    assert disk.read_file("logs/a") == b"safedroppedlater"
    disk.crash()
    assert disk.read_file("logs/a") == b"safe" + bytes(7) + b"later"


def test_what_is_written_again_is_safe_with_the_next_flush(disk):
    written(disk, "logs/a", b"safe", b"dropped")
    file = disk.open("logs/a")
    disk.fail_flushes = True
    with pytest.raises(FlushFailed):
        file.flush()
    disk.fail_flushes = False
    file.write_again(4)
    file.flush()
    disk.crash()
    assert disk.read_file("logs/a") == b"safedropped"


def test_a_flush_of_everything_makes_names_and_bytes_safe(disk):
    disk.open("logs/a").append([b"bytes"])
    disk.flush_all()
    disk.crash()
    assert disk.read_file("logs/a") == b"bytes"


def test_a_flush_of_everything_covers_what_there_was_when_it_began(disk):
    disk.open("logs/a").append([b"before"])
    begun = disk.begin_flush_all()
    disk.open("logs/a").append([b"meanwhile"])
    disk.open("logs/b").append([b"new"])
    disk.flush_all(begun)
    assert disk.unflushed_names("logs") == 1
    disk.crash()
    assert disk.read_file("logs/a") in [b"before" + b"meanwhile"[:count] for count in range(10)]


def test_who_looks_into_it_leaves_no_trace(disk):
    file = disk.open("logs/a")
    disk.forget_cached()
    with disk.looked_into():
        file.read(0, 1)
    with pytest.raises(WouldBlock):
        file.read(0, 1, may_block=False)


@pytest.mark.parametrize("seed", range(8))
def test_a_directory_that_takes_the_name_of_a_renamed_one_keeps_its_own_files(seed):
    disk = SimulatedDisk(seed)
    disk.make_directory("a")
    disk.open("a/old")
    disk.flush_directory("a")
    disk.rename("a", "b")
    disk.make_directory("a")
    disk.open("a/new")
    disk.flush_directory("a")
    disk.crash()
    assert (disk.list_directory("a"), disk.list_directory("b")) == (["new"], ["old"])


def test_a_byte_that_the_disk_changed_is_never_in_memory():
    disk = SimulatedDisk()
    file = disk.open("a")
    file.append([b"abcd"])
    file.flush()
    disk.change_bit("a", 2, 0)
    assert (file.read(0, 2, may_block=False), file.is_in_memory(0, 2), file.is_in_memory(0, 3)) == (b"ab", True, False)
    with pytest.raises(WouldBlock):
        file.read(1, 2, may_block=False)
    assert file.read(0, 4) == b"abbd"
    with pytest.raises(WouldBlock):
        file.read(2, 1, may_block=False)
    file.truncate(2)
    file.append([b"cd"])
    assert file.read(0, 4, may_block=False) == b"abcd"
