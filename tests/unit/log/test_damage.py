from __future__ import annotations

import logging

import pytest

from zurau.errors import CorruptData
from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.node.disk import RealDisk
from zurau.records.batch import iter_batches, stamp
from zurau.records.builder import NewRecord, build_batch

DIRECTORY = "logs/t-0"
LOG_0 = f"{DIRECTORY}/{0:020}.log"
LOG_10 = f"{DIRECTORY}/{10:020}.log"
LOG_20 = f"{DIRECTORY}/{20:020}.log"


def flushed(offset: int, *, kept: bool = False) -> LastKnown:
    return LastKnown(flushed_offset=offset, kept_unflushed=kept)


def closed(offset: int) -> LastKnown:
    return LastKnown(flushed_offset=offset, closed_offset=offset)


def ranges(log: Log) -> list[tuple[int, int]]:
    return [(one.first_offset, one.next_offset) for one in log.damage]


def readable(log: Log) -> list[int]:
    """The offsets that can be read. Every other one must answer with an error."""
    found = []
    for offset in range(log.start_offset, log.end_offset):
        try:
            data = log.read(offset, 1, log.end_offset, may_block=True)
        except CorruptData:
            continue
        first = next(iter_batches(data))[0]
        assert first.base_offset <= offset <= first.last_offset, f"{offset} is passed over in silence"
        found.append(offset)
    return found


def zero(disk, path: str, start: int, stop: int) -> None:
    content = bytearray(disk.read_file(path))
    content[start:stop] = bytes(stop - start)
    disk.replace_file(path, bytes(content))


FLIPS = {
    "offset, upwards": (206, 0),
    "offset, downwards": (207, 1),
    "length": (210, 3),
    "length, far too large": (208, 6),
    "epoch": (212, 5),
    "magic": (216, 1),
    "checksum": (217, 1),
    "last offset delta": (225, 2),
    "payload": (299, 1),
}


@pytest.mark.parametrize(("position", "bit"), FLIPS.values(), ids=FLIPS)
@pytest.mark.parametrize("last_known", [flushed(5), flushed(0, kept=True), None], ids=["flushed", "kept", "unknown"])
def test_one_flipped_bit_costs_one_batch(bench, disk, position, bit, last_known):
    bench.fill(5)
    disk.flip_bit(LOG_0, position, bit)
    log = bench.open(clean=False, last_known=last_known)
    assert (ranges(log), log.end_offset, readable(log)) == ([(2, 3)], 5, [0, 1, 3, 4])


@pytest.mark.parametrize(("position", "bit"), FLIPS.values(), ids=FLIPS)
def test_a_flipped_bit_above_what_was_flushed_is_a_torn_tail(bench, disk, position, bit):
    bench.fill(5)
    disk.flip_bit(LOG_0, position, bit)
    log = bench.open(clean=False, last_known=flushed(2))
    assert (ranges(log), log.end_offset) == ([], 2)


@pytest.mark.parametrize(("position", "bit"), FLIPS.values(), ids=FLIPS)
def test_a_broken_header_in_a_flushed_segment_is_found_by_whoever_reads(make_bench, disk, position, bit):
    bench = make_bench(index_interval_bytes=10_000)
    bench.fill(25)
    disk.flip_bit(LOG_0, position, bit)
    everything = readable(bench.log)
    if bit != 5 and position not in (217, 299):  # epoch, checksum and payload are not looked at on the way
        assert (ranges(bench.log), everything) == ([(2, 3)], [*range(2), *range(3, 25)])


def test_zeroed_pages_are_named_and_passed_over(bench, disk):
    bench.fill(10)
    zero(disk, LOG_0, 250, 650)
    log = bench.open(clean=False, last_known=flushed(10))
    (one,) = log.damage
    assert (one.first_offset, one.next_offset, one.position, one.end_position) == (2, 7, 200, 700)
    assert readable(log) == [0, 1, 7, 8, 9]


def test_two_damaged_places_in_one_file_are_two_ranges(bench, disk):
    bench.fill(10)
    disk.flip_bit(LOG_0, 216)
    zero(disk, LOG_0, 400, 500)
    log = bench.open(clean=False, last_known=flushed(10))
    assert (ranges(log), readable(log)) == ([(2, 3), (4, 5)], [0, 1, 3, 5, 6, 7, 8, 9])


def test_a_batch_in_a_records_value_is_not_taken_for_one_of_the_log(bench, disk):
    inner = build_batch([NewRecord(None, b"inner", timestamp=1)])
    stamp(inner, 9, 0)
    bench.append(NewRecord(None, bytes(inner), timestamp=1))
    bench.fill(3)
    disk.flip_bit(LOG_0, 16)
    log = bench.open(clean=False, last_known=flushed(4))
    assert (ranges(log), readable(log)) == ([(0, 1)], [1, 2, 3])


@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_middle_segment_is_damage_and_the_later_ones_stay(bench, disk, clean):
    bench.fill(25)
    bench.log.close()
    disk.remove(LOG_10)
    log = bench.open(clean=clean, last_known=flushed(25))
    assert (ranges(log), readable(log)) == ([(10, 20)], [*range(10), *range(20, 25)])


@pytest.mark.parametrize("last_known", [flushed(25), closed(25)])
def test_a_missing_last_segment_is_damage_and_its_offsets_are_not_given_out_again(bench, disk, last_known):
    bench.fill(25)
    bench.log.close()
    disk.remove(LOG_20)
    log = bench.open(clean=last_known.closed_offset is not None, last_known=last_known)
    assert (ranges(log), log.end_offset) == ([(20, 25)], 25)
    bench.fill(1)
    assert readable(log) == [*range(20), 25]


def test_a_missing_first_segment_is_damage_after_a_clean_stop(bench, disk):
    bench.fill(25)
    bench.log.close()
    disk.remove(LOG_0)
    log = bench.open(last_known=closed(25))
    assert (log.start_offset, ranges(log), readable(log)) == (0, [(0, 10)], list(range(10, 25)))


def test_a_missing_first_segment_is_damage_after_a_crash_if_it_is_known_where_the_log_starts(bench, disk):
    bench.fill(25)
    bench.log.close()
    bench.open(last_known=closed(25))
    bench.fill(2)
    disk.remove(LOG_0)
    log = bench.open(clean=False, last_known=flushed(27))
    assert (log.start_offset, ranges(log), readable(log)) == (0, [(0, 10)], list(range(10, 27)))


@pytest.mark.parametrize("end", ["closed", "killed", "killed twice", "killed before files went"])
def test_segments_that_expired_are_not_missed(make_bench, end):
    bench = make_bench(retention_bytes=1000)
    bench.fill(25)
    bench.log.close()
    bench.open(last_known=closed(25))
    bench.log.expire(0, 25)
    if end == "closed":
        bench.log.close()
    elif end != "killed before files went":
        bench.remove()
    for _ in range(2 if end == "killed twice" else 1):
        log = bench.open(clean=end == "closed", last_known=flushed(25))
        bench.remove()
        assert (ranges(log), log.start_offset) == ([], 10)
    assert not bench.names(".deleted")


def test_a_log_whose_files_are_all_gone_goes_on_where_it_ended(bench, disk):
    bench.fill(25)
    disk.remove_tree(DIRECTORY)
    log = bench.open(clean=False, last_known=flushed(25))
    assert (log.start_offset, ranges(log), log.end_offset) == (0, [(0, 25)], 25)
    with pytest.raises(CorruptData):
        log.read(0, 100, 25)


def test_that_everything_is_gone_is_known_at_the_next_start_too(bench, disk):
    bench.fill(25)
    disk.remove_tree(DIRECTORY)
    for clean in (False, True):
        log = bench.open(clean=clean, last_known=flushed(25))
        log.close()
    bench.fill(2)
    bench.flush()
    assert ranges(bench.open(clean=False, last_known=flushed(27))) == [(0, 25)]


@pytest.mark.parametrize("kept_bytes", [0, 50, 100, 450])
@pytest.mark.parametrize("clean", [True, False])
def test_a_truncated_file_is_damage_below_what_was_flushed(bench, disk, kept_bytes, clean):
    bench.fill(25)
    bench.log.close()
    disk.open(LOG_20).truncate(kept_bytes)
    log = bench.open(clean=clean, last_known=closed(25) if clean else flushed(25))
    whole = kept_bytes // 100
    assert (ranges(log), log.end_offset) in (
        ([(20 + whole, 25)], 25),
        ([(20 + whole, 21 + whole), (21 + whole, 25)], 25),
    )
    assert readable(log) == list(range(20 + whole))


def test_a_zeroed_log_is_noticed_after_a_clean_stop(bench, disk):
    bench.fill(25)
    bench.log.close()
    zero(disk, LOG_20, 0, 500)
    log = bench.open(last_known=closed(25))
    assert (ranges(log), readable(log), log.end_offset) == ([(20, 25)], list(range(20)), 25)


@pytest.mark.parametrize("last_known", [closed(25), None])
def test_nothing_is_cut_after_a_clean_stop(bench, disk, last_known):
    bench.fill(25)
    bench.log.close()
    disk.open(LOG_20).append([b"\xff" * 70])
    log = bench.open(last_known=last_known)
    assert disk.file_size(LOG_20) == 570
    assert readable(log)[:25] == list(range(25))


def test_a_torn_last_write_is_cut_when_the_machine_did_not_restart(bench, disk, caplog):
    bench.fill(25)
    disk.open(LOG_20).truncate(450)
    log = bench.open(clean=False, last_known=flushed(20, kept=True))
    assert (ranges(log), log.end_offset) == ([], 24)
    assert "50 bytes are cut off" in caplog.text


def test_nothing_else_is_torn_when_the_machine_did_not_restart(bench, disk):
    bench.fill(25)
    disk.open(LOG_10).truncate(950)
    log = bench.open(clean=False, last_known=flushed(0, kept=True))
    assert (ranges(log), log.end_offset) == ([(19, 20)], 25)


def test_garbage_at_the_end_is_kept_when_the_machine_did_not_restart(bench, disk):
    bench.fill(5)
    disk.open(LOG_0).append([b"\xff" * 100])
    log = bench.open(clean=False, last_known=flushed(5, kept=True))
    assert (ranges(log), log.end_offset, disk.file_size(LOG_0)) == ([(5, 6)], 6, 600)


def test_every_damaged_range_is_told_with_its_place_and_what_to_do(bench, disk, caplog):
    bench.fill(5)
    disk.flip_bit(LOG_0, 299)
    bench.open(clean=False, last_known=flushed(5))
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert f"{DIRECTORY}: offset 2 damaged ({LOG_0}, 100 bytes from 200 to 300)" in record.getMessage()
    assert "checksum" in record.getMessage()
    assert "zurau log repair" in record.getMessage()


def test_a_copy_of_a_segment_is_put_aside(bench, disk):
    bench.fill(8)
    content = disk.read_file(LOG_0)
    disk.open(f"{DIRECTORY}/{5:020}.log").append([content[500:]])
    log = bench.open(clean=False, last_known=flushed(8))
    assert (ranges(log), readable(log), bench.names(".aside")) == ([], list(range(8)), [f"{5:020}.log.aside"])


def test_an_offset_that_leaps_does_not_take_later_segments_along(bench, disk):
    bench.fill(25)
    bench.flush()
    disk.flip_bit(LOG_0, 905, 4)  # the last batch of the first segment
    log = bench.open(clean=False, last_known=flushed(25))
    assert (ranges(log), readable(log)) == ([(9, 10)], [*range(9), *range(10, 25)])


def test_a_damaged_segment_can_be_read_by_header_and_by_time(bench, disk):
    bench.fill(25)
    disk.flip_bit(LOG_0, 216)
    log = bench.open(clean=False, last_known=flushed(25))
    assert [header.base_offset for header in log.headers(0)] == [0, 1, *range(3, 25)]
    assert log.find_by_timestamp(1002, 25).offset == 3
    assert log.find_max_timestamp(25).offset == 24


def test_a_damaged_segment_is_left_alone_by_compaction(make_bench, disk):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    for number in range(25):
        bench.append(NewRecord(b"k%d" % (number % 3), bytes(30), timestamp=1000 + number))
    content = disk.read_file(LOG_0)
    disk.flip_bit(LOG_0, 216)
    log = bench.open(clean=False, last_known=flushed(25))
    before = ranges(log)
    bench.compact()
    assert len(disk.read_file(LOG_0)) == len(content)
    assert ranges(bench.log) == before


def test_compaction_finds_damage_and_goes_round_it_the_next_time(make_bench, disk):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    for number in range(45):
        bench.append(NewRecord(b"k", bytes(30), timestamp=1000 + number))
    bench.flush()
    disk.flip_bit(LOG_0, 150)
    job = bench.log.plan_compaction(10_000, 45)
    with pytest.raises(CorruptData):
        job.run()
    bench.log.finish_compaction(job)
    assert len(ranges(bench.log)) == 1
    assert bench.compact()
    assert disk.exists(LOG_0)


def test_damage_goes_with_its_segment(make_bench, disk):
    bench = make_bench(retention_bytes=1000)
    bench.fill(25)
    disk.flip_bit(LOG_0, 216)
    log = bench.open(clean=False, last_known=flushed(25))
    assert ranges(log) == [(2, 3)]
    log.expire(0, 25)
    assert ranges(log) == []


@pytest.mark.parametrize("window", [1, 61, 99, 100, 101, 4096])
@pytest.mark.parametrize("clean", [True, False])
def test_a_batch_may_be_larger_than_any_window(bench, disk, window, clean, monkeypatch):
    monkeypatch.setattr("zurau.log.scan.SCAN_BYTES", window)
    monkeypatch.setattr("zurau.log.batch_file.WALK_BYTES", window)
    monkeypatch.setattr("zurau.log.segment_checks.WALK_BYTES", window)
    batches = bench.fill(3, size=5000) + bench.fill(12) + bench.fill(2, size=70)
    log = bench.open(clean=clean, last_known=flushed(17))
    assert (ranges(log), log.end_offset) == ([], 17)
    assert bench.read_all() == b"".join(batches)


@pytest.mark.parametrize("window", [1, 61, 100, 4096])
def test_damage_is_found_with_any_window(bench, disk, window, monkeypatch):
    monkeypatch.setattr("zurau.log.scan.SCAN_BYTES", window)
    monkeypatch.setattr("zurau.log.batch_file.WALK_BYTES", window)
    bench.fill(2, size=300)
    disk.flip_bit(LOG_0, 16)
    log = bench.open(clean=False, last_known=flushed(2))
    assert (ranges(log), readable(log)) == ([(0, 1)], [1])


def test_only_names_of_twenty_digits_are_segments(tmp_path):
    disk = RealDisk(tmp_path)
    settings = LogSettings()
    log = Log.open(disk, "t-0", settings, now_ms=0, clean=True)
    batch = build_batch([NewRecord(None, b"v", timestamp=1)])
    log.append(batch, stamp(batch, 0, 0))
    log.close()
    (tmp_path / "t-0" / "notes.log").write_text("mine")
    (tmp_path / "t-0" / "lost+found").mkdir(mode=0)
    (tmp_path / "t-0" / f"{7:020}.log").mkdir()
    for clean in (True, False):
        log = Log.open(disk, "t-0", settings, now_ms=0, clean=clean)
        assert (log.end_offset, log.damage) == (1, [])
    assert (tmp_path / "t-0" / "notes.log").read_text() == "mine"


GARBAGE = {"empty": b"", "zeroes": bytes(800), "noise": b"\x07" * 813, "one entry": b"\0\0\0\x01\0\0\0\x64"}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_stray_index_does_no_harm(bench, disk, content, clean, suffix):
    batches = bench.fill(25)
    bench.log.close()
    for base in (0, 10, 20):
        disk.replace_file(f"{DIRECTORY}/{base:020}{suffix}", content)
    bench.open(clean=clean, now_ms=5000, last_known=closed(25) if clean else flushed(25))
    bench.log.expire(5000, 25)
    assert (bench.read_all(100), ranges(bench.log)) == (b"".join(batches), [])
    assert [bench.log.find_by_timestamp(1000 + number, 25).offset for number in range(25)] == list(range(25))


def test_an_empty_index_made_beside_a_log_that_is_written_to_does_no_harm(make_bench, disk):
    bench = make_bench(segment_bytes=1 << 20, index_interval_bytes=0)
    batches = bench.fill(20)
    disk.open(f"{DIRECTORY}/{0:020}.index")
    disk.open(f"{DIRECTORY}/{0:020}.timeindex").append([bytes(100)])
    batches += bench.fill(6000)
    bench.flush()
    assert bench.read_all() == b"".join(batches)
    bench.open(clean=False, last_known=flushed(6020))
    assert (bench.read_all(), ranges(bench.log)) == (b"".join(batches), [])


@pytest.mark.parametrize("entry", [1, 2, 3])
@pytest.mark.parametrize("byte", range(8))
def test_an_index_entry_that_points_elsewhere_hides_nothing(bench, disk, entry, byte):
    bench.fill(25)
    bench.log.close()
    disk.flip_bit(f"{DIRECTORY}/{0:020}.index", entry * 8 - 8 + byte, 1)
    log = bench.open(last_known=closed(25))
    assert (readable(log), ranges(log)) == (list(range(25)), [])
    for offset in range(25):
        data = log.read(offset, 250, 25, may_block=True)
        assert [header.base_offset for header, _ in iter_batches(data)] == list(range(offset, min(offset + 2, 25)))[
            : len(data) // 100
        ]


def test_damage_in_the_middle_is_remembered_over_a_clean_stop(bench, disk):
    bench.fill(25)
    disk.flip_bit(LOG_0, 299)
    bench.open(clean=False, last_known=flushed(25)).close()
    for _ in range(2):
        log = bench.open(clean=True, last_known=closed(25))
        assert (ranges(log), readable(log)) == ([(2, 3)], [0, 1, *range(3, 25)])
        log.close()


def test_damage_that_was_mended_is_forgotten(bench, disk):
    bench.fill(25)
    disk.flip_bit(LOG_0, 299)
    bench.open(clean=False, last_known=flushed(25)).close()
    disk.flip_bit(LOG_0, 299)
    log = bench.open(clean=True, last_known=closed(25))
    assert (ranges(log), readable(log), bench.names("ranges")) == ([], list(range(25)), [])


def test_a_reader_who_finds_damage_finds_it_for_all_later_starts(make_bench, disk):
    bench = make_bench(index_interval_bytes=10_000)
    bench.fill(25)
    bench.flush()
    disk.flip_bit(LOG_0, 216, 1)
    readable(bench.log)
    bench.log.close()
    assert ranges(bench.open(last_known=closed(25))) == [(2, 3)]


def test_a_batch_that_cannot_be_unpacked_is_passed_over_by_a_search_for_a_time(bench, disk):
    bench.fill(25)
    bench.flush()
    content = bytearray(disk.read_file(LOG_0))
    content[361:400] = b"\xff" * 39
    disk.replace_file(LOG_0, bytes(content))
    bench.log.close()
    log = bench.open(last_known=closed(25))
    assert log.find_by_timestamp(1003, 25).offset == 4
    assert ranges(log) == [(3, 4)]


def test_the_latest_record_is_found_though_the_latest_batch_is_damaged(bench, disk):
    bench.fill(5)
    disk.flip_bit(LOG_0, 499)
    log = bench.open(clean=False, last_known=flushed(5))
    bench.fill(1, timestamp=500)
    assert log.find_max_timestamp(log.end_offset).offset == 3


@pytest.mark.parametrize("garbage", [bytes(100), b"\xa5" * 100], ids=["zeros", "noise"])
@pytest.mark.parametrize("position", [0, 300, 1000], ids=["before", "between", "behind"])
def test_bytes_that_hold_no_offsets_are_served_to_nobody(bench, disk, garbage, position):
    bench.fill(25)
    content = disk.read_file(LOG_10)
    disk.replace_file(LOG_10, content[:position] + garbage + content[position:])
    log = bench.open(clean=False, last_known=flushed(25))
    assert readable(log) == list(range(25))
    offset, read = 0, b""
    while offset < 25:
        data = log.read(offset, 1 << 20, 25, may_block=True)
        *_, (last, _) = iter_batches(data)
        offset, read = last.next_offset, read + data
    assert garbage not in read
