"""What every disk does, real or simulated, and then what only a real one can get wrong."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from zurau.errors import DiskFault
from zurau.node.disk import RealDisk
from zurau.ports import Disk
from zurau.simulation.disk import SimulatedDisk


@pytest.fixture
def real(tmp_path) -> RealDisk:
    return RealDisk(tmp_path)


@pytest.fixture(params=["real", "simulated"])
def disk(request, real) -> Disk:
    chosen: Disk = real if request.param == "real" else SimulatedDisk()
    chosen.make_directory("logs")
    return chosen


def content(disk: Disk, path: str) -> bytes:
    found = disk.read_file(path)
    assert found is not None
    return found


def test_chunks_are_appended_one_after_the_other(disk):
    file = disk.open("logs/a")
    file.append([b"one ", bytearray(b"two "), memoryview(b"three")])
    assert (content(disk, "logs/a"), file.size) == (b"one two three", 13)


def test_more_chunks_than_one_system_call_takes_are_all_written(disk):
    file = disk.open("logs/a")
    file.append([b"x"] * 3000)
    assert content(disk, "logs/a") == b"x" * 3000


def test_reading_stops_at_the_end_of_the_file(disk):
    file = disk.open("logs/a")
    file.append([b"0123456789"])
    assert (file.read(2, 3), file.read(8, 100), file.read(50, 1)) == (b"234", b"89", b"")


def test_bytes_just_written_are_read_without_waiting(disk):
    file = disk.open("logs/a")
    file.append([b"0123456789"])
    assert (file.read(2, 3, may_block=False), file.read(8, 9, may_block=False)) == (b"234", b"89")


def test_an_absent_file_is_not_made_unless_asked(disk):
    with pytest.raises(DiskFault, match="logs/none"):
        disk.open("logs/none", create=False)
    assert not disk.exists("logs/none")


def test_a_truncated_file_grows_from_its_new_end(disk):
    file = disk.open("logs/a")
    file.append([b"0123456789"])
    file.truncate(4)
    file.append([b"x"])
    file.flush()
    assert content(disk, "logs/a") == b"0123x"


def test_two_open_files_of_one_name_share_their_bytes(disk):
    first, second = disk.open("logs/a"), disk.open("logs/a")
    first.append([b"abc"])
    assert second.read(0, 3) == b"abc"


def test_an_open_file_is_still_read_after_its_name_is_gone(disk):
    file = disk.open("logs/a")
    file.append([b"abc"])
    disk.remove("logs/a")
    assert (file.read(0, 3), disk.exists("logs/a")) == (b"abc", False)


def test_a_closed_file_refuses_to_be_used(disk):
    file = disk.open("logs/a")
    file.close()
    file.close()
    with pytest.raises(DiskFault, match="closed"):
        file.append([b"x"])


def test_directories_list_their_names_in_order(disk):
    for name in ("logs/b", "logs/a", "logs/deep"):
        disk.make_directory(name) if name.endswith("deep") else disk.open(name)
    assert (disk.list_directory("logs"), disk.list_directory("none")) == (["a", "b", "deep"], [])


def test_renaming_replaces_what_was_there(disk):
    for name in ("old", "new"):
        disk.open(f"logs/{name}").append([name.encode()])
    disk.rename("logs/old", "logs/new")
    disk.flush_directory("logs")
    assert (disk.list_directory("logs"), content(disk, "logs/new")) == (["new"], b"old")


def test_removing_what_is_not_there_is_no_fault(disk):
    disk.remove("logs/none")
    disk.remove_tree("none")


def test_a_removed_tree_takes_everything_in_it(disk):
    disk.make_directory("logs/t-0")
    disk.open("logs/t-0/a").append([b"x"])
    disk.remove_tree("logs")
    assert (disk.exists("logs/t-0/a"), disk.list_directory("logs")) == (False, [])


def test_a_replaced_file_has_the_new_content_and_leaves_nothing_else(disk):
    for text in (b"first", b"second"):
        disk.replace_file("logs/state", text)
    assert (content(disk, "logs/state"), disk.list_directory("logs")) == (b"second", ["state"])


def test_an_absent_file_reads_as_none(disk):
    assert disk.read_file("logs/none") is None


def test_the_size_of_an_absent_file_is_a_fault(disk):
    with pytest.raises(DiskFault, match="logs/none"):
        disk.file_size("logs/none")


def test_a_disk_says_how_much_room_is_left(disk):
    assert disk.free_bytes() > 0


# Real files only


def test_few_descriptors_serve_many_files(tmp_path):
    disk = RealDisk(tmp_path, open_files_max=3)
    files = [disk.open(f"f{number}") for number in range(10)]
    for number, file in enumerate(files):
        file.append([str(number).encode()])
    assert [file.read(0, 1) for file in files] == [b"%d" % number for number in range(10)]
    assert sum(file.descriptor is not None for file in files) == 3


def test_a_file_whose_descriptor_was_taken_away_flushes_all_the_same(tmp_path):
    disk = RealDisk(tmp_path, open_files_max=1)
    file = disk.open("a")
    file.append([b"x"])
    disk.open("b").append([b"y"])
    file.flush()
    assert file.read(0, 1) == b"x"


def test_a_descriptor_in_use_outlives_the_close(real):
    file = real.open("a")
    file.append([b"abc"])
    descriptor = real._borrow(file)
    file.close()
    assert os.pread(descriptor, 3, 0) == b"abc"
    real._give_back(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pread(descriptor, 3, 0)


def test_readers_in_threads_survive_files_being_taken_turns(tmp_path):
    disk = RealDisk(tmp_path, open_files_max=2)
    files = [disk.open(f"f{number}") for number in range(6)]
    for number, file in enumerate(files):
        file.append([bytes([number]) * 100])
    wrong: list[int] = []

    def read_all() -> None:
        for _ in range(200):
            wrong.extend(n for n, file in enumerate(files) if file.read(50, 1, may_block=True) != bytes([n]))

    threads = [threading.Thread(target=read_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_full_disk_leaves_the_file_as_it_was_and_says_what_to_do(real, monkeypatch):
    file = real.open("a")
    file.append([b"abc"])
    write = os.pwrite

    def half_then_full(descriptor, data, position):
        if position > 3:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, bytes(data)[:2], position)

    monkeypatch.setattr(os, "pwrite", half_then_full)
    with pytest.raises(DiskFault, match=r"cannot write a: the disk is full; free some space"):
        file.append([b"defg"])
    monkeypatch.undo()
    assert (file.size, real.read_file("a")) == (3, b"abc")
    file.append([b"d"])
    assert real.read_file("a") == b"abcd"


def test_a_file_system_that_cannot_say_what_is_cached_is_read_plainly(real, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    file = real.open("a")
    file.append([b"abc"])
    monkeypatch.setattr(os, "preadv", refuse)
    assert file.read(1, 2, may_block=False) == b"bc"


def test_any_other_fault_names_the_file(real, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "broken")

    file = real.open("a")
    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(DiskFault, match="cannot read a: the disk reports an error"):
        file.read(0, 1)


def test_what_is_written_again_is_as_it_was(disk, monkeypatch):
    monkeypatch.setattr("zurau.node.disk.REWRITE_BYTES", 3)
    file = disk.open("logs/a")
    file.append([b"0123456789"])
    file.write_again(2)
    file.append([b"x"])
    assert content(disk, "logs/a") == b"0123456789x"
