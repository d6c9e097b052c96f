from __future__ import annotations

import pytest

from zurau.errors import CorruptData, DiskFault
from zurau.log.index import OffsetIndex, TimeIndex

PATH = "logs/a.index"


@pytest.fixture(params=[0, 3, 10])
def index(disk, request) -> OffsetIndex:
    """Ten entries, offsets 5, 15, ... at positions 0, 1000, ...; some of them in the file already."""
    disk.make_directory("logs")
    index = OffsetIndex(disk, PATH)
    for number in range(10):
        index.append(10 * number + 5, 1000 * number)
    index.write_out(request.param)
    return index


def test_an_offset_is_found_at_the_last_entry_before_it(index):
    assert [index.position_before(offset) for offset in (0, 4, 5, 14, 15, 94, 95, 999)] == [
        0, 0, 0, 0, 1000, 8000, 9000, 9000,
    ]  # fmt: skip


def test_a_position_is_rounded_down_to_a_batch(index):
    assert [index.position_at_most(position) for position in (0, 999, 1000, 99_999)] == [0, 0, 1000, 9000]


def test_an_empty_index_points_at_the_beginning(disk):
    index = OffsetIndex(disk, PATH)
    assert (len(index), index.last(), index.position_before(7), index.position_at_most(7)) == (0, None, 0, 0)


def test_the_file_holds_pairs_of_big_endian_numbers(index, disk):
    index.write_out(10)
    assert disk.read_file(PATH)[:16] == b"\0\0\0\x05\0\0\0\0\0\0\0\x0f\0\0\x03\xe8"
    assert (disk.file_size(PATH), len(index.in_memory)) == (80, 0)


@pytest.mark.parametrize("count", [0, 2, 3, 7, 10])
def test_a_truncated_index_ends_where_it_was_cut(index, count):
    index.truncate(count)
    index.append(500, 50_000)
    assert (len(index), index.last()) == (count + 1, (500, 50_000))


def test_entries_that_cannot_be_written_stay_in_memory(index, disk):
    disk.capacity_bytes = disk.used_bytes
    before = len(index.in_memory)
    if before:
        with pytest.raises(DiskFault):
            index.write_out(10)
    assert (len(index.in_memory), len(index), index.position_before(55)) == (before, 10, 5000)


def test_an_index_that_lost_its_end_is_told_on_reading(disk):
    disk.make_directory("logs")
    disk.open(PATH).append([bytes(4)])
    with pytest.raises(CorruptData, match="has no entry 1; remove it"):
        OffsetIndex(disk, PATH, stored_bytes=16).last()


def test_part_of_an_entry_left_by_a_crash_is_written_over(disk):
    disk.make_directory("logs")
    disk.open(PATH).append([b"\0\0\0\x05\0\0\0\0" + b"torn"])
    index = OffsetIndex(disk, PATH, stored_bytes=12)
    index.append(9, 9)
    index.write_out(2)
    assert [tuple(entry) for entry in index.stored()] == [(5, 0), (9, 9)]


def test_times_are_found_at_the_last_earlier_entry(disk):
    index = TimeIndex(disk, PATH)
    for timestamp, offset in ((100, 3), (200, 8), (300, 9)):
        index.append(timestamp, offset)
    assert [index.offset_before(time) for time in (50, 100, 101, 200, 201, 999)] == [0, 0, 3, 3, 8, 9]
