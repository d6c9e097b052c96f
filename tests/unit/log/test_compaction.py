from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import Abandoned, CorruptData, DiskFault
from zurau.log import compaction
from zurau.records.batch import HEADER_BYTES, check_crc, iter_batches, parse_header, seal, stamp
from zurau.records.builder import NewRecord, build_batch, encode_record, pack_batch
from zurau.records.compression import Compression
from zurau.records.record import iter_records

DAY_MS = 86_400_000


@pytest.fixture
def bench(make_bench):
    return make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, segment_bytes=400)


def put(bench, *pairs, **facts):
    return bench.append(*(NewRecord(key, value, timestamp=1000) for key, value in pairs), **facts)


def close_segment(bench):
    """Roll and flush, so that everything so far can be compacted."""
    put(bench, (b"filler", bytes(400)))
    put(bench, (b"filler", b""))
    bench.flush()


def contents(bench):
    return [(record.offset, record.key, record.value) for record in bench.records() if record.key != b"filler"]


def test_only_the_last_record_of_each_key_stays(bench):
    for number in range(5):
        put(bench, (b"a", b"%d" % number), (b"b", b"%d" % number))
    close_segment(bench)
    assert bench.compact()
    assert contents(bench) == [(8, b"a", b"4"), (9, b"b", b"4")]


def test_the_segment_that_is_written_to_is_left_alone_but_counts_as_later(bench):
    put(bench, (b"a", b"1"))
    close_segment(bench)
    put(bench, (b"a", b"2"))
    bench.flush()
    bench.compact()
    assert contents(bench) == [(0, b"a", b"1"), (3, b"a", b"2")]


def test_nothing_at_or_above_the_bound_is_compacted(bench):
    for number in range(3):
        put(bench, (b"a", b"%d" % number))
        close_segment(bench)
    assert bench.log.plan_compaction(10_000, 0) is None


def test_without_a_lag_records_from_the_future_are_compacted_too(bench):
    for value in (b"1", b"2"):
        bench.append(NewRecord(b"a", value, timestamp=10_000 + DAY_MS))
    close_segment(bench)
    assert bench.compact(now_ms=10_000)
    assert contents(bench) == [(1, b"a", b"2")]


def test_what_is_not_flushed_is_not_compacted(bench):
    put(bench, (b"a", b"1"))
    put(bench, (b"filler", bytes(400)))
    put(bench, (b"a", b"2"))
    assert bench.log.plan_compaction(10_000, 3) is None


def test_records_without_a_key_go(bench):
    put(bench, (None, b"x"), (b"a", b"1"))
    close_segment(bench)
    bench.compact()
    assert contents(bench) == [(1, b"a", b"1")]


def test_batches_keep_bounds_codec_and_sequence(bench):
    for value in (b"1", b"2"):
        put(bench, (b"a", value), (b"b", value), compression=Compression.ZSTD, producer_id=5, base_sequence=10)
    put(bench, (b"b", b"3"))
    close_segment(bench)
    bench.compact()
    header = next(iter(bench.log.headers(2)))
    assert (header.base_offset, header.last_offset, header.record_count) == (2, 3, 1)
    assert (header.compression, header.producer_id, header.base_sequence) == (Compression.ZSTD, 5, 10)


def test_a_batch_of_which_all_stays_is_copied_as_it_is(bench):
    batch = put(bench, (b"a", b"1"), (b"b", b"1"), compression=Compression.GZIP)
    close_segment(bench)
    bench.compact()
    assert bench.log.read(0, 1, 2) == batch


def test_the_last_batch_of_a_producer_stays_even_if_empty(bench):
    put(bench, (b"a", b"1"), producer_id=1, base_sequence=0, producer_epoch=0)
    put(bench, (b"a", b"2"), producer_id=1, base_sequence=1, producer_epoch=0)
    put(bench, (b"a", b"3"))
    close_segment(bench)
    bench.compact()
    empty, *_ = bench.log.headers(0)
    assert (empty.base_offset, empty.base_sequence, empty.record_count) == (1, 1, 0)
    assert check_crc(bench.log.read(0, 1, 5), empty)


def test_batches_of_transactions_stay_and_replace_nothing(bench):
    put(bench, (b"a", b"1"))
    put(bench, (b"a", b"perhaps aborted"), is_transactional=True, producer_id=3)
    put(bench, (b"a", b"2"))
    close_segment(bench)
    bench.compact()
    assert [value for _, _, value in contents(bench)] == [b"perhaps aborted", b"2"]


# Tombstones


def test_a_tombstone_stays_for_its_time_and_then_goes(bench):
    put(bench, (b"a", b"1"))
    put(bench, (b"a", None))
    close_segment(bench)
    bench.compact(now_ms=10_000)
    assert contents(bench) == [(1, b"a", None)]
    assert next(iter(bench.log.headers(0))).delete_horizon_ms == 10_000 + DAY_MS
    assert not bench.compact(now_ms=10_000 + DAY_MS - 1)
    assert bench.compact(now_ms=10_000 + DAY_MS)
    assert contents(bench) == []


def test_the_time_of_a_tombstone_is_not_put_off_by_later_compactions(bench):
    put(bench, (b"a", None))
    close_segment(bench)
    bench.compact(now_ms=10_000)
    close_segment(bench)
    bench.compact(now_ms=20_000)
    assert next(iter(bench.log.headers(0))).delete_horizon_ms == 10_000 + DAY_MS


def test_records_keep_their_timestamps_beside_a_tombstone(bench):
    bench.append(NewRecord(b"a", None, timestamp=1000), NewRecord(b"b", b"1", timestamp=1234))
    close_segment(bench)
    bench.compact()
    assert [record.timestamp for record in bench.records()[:2]] == [1000, 1234]


def test_a_value_after_the_tombstone_replaces_it(bench):
    put(bench, (b"a", None))
    put(bench, (b"a", b"again"))
    close_segment(bench)
    bench.compact()
    assert contents(bench) == [(1, b"a", b"again")]


# When


def test_a_log_is_compacted_when_enough_of_it_is_new(make_bench):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.5, segment_bytes=400)
    for key in (b"a", b"b", b"c"):
        put(bench, (key, bytes(200)))
        close_segment(bench)
    assert bench.compact()
    assert not bench.compact()
    put(bench, (b"d", b""))
    close_segment(bench)
    assert bench.log.plan_compaction(10_000, bench.log.end_offset) is None
    for _ in range(3):
        close_segment(bench)
    assert bench.compact()


def test_young_records_wait(make_bench):
    bench = make_bench(
        cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, segment_bytes=400, min_compaction_lag_ms=500
    )
    put(bench, (b"a", b"1"))
    close_segment(bench)
    assert not bench.compact(now_ms=1499)
    assert bench.compact(now_ms=1500)


def test_old_records_do_not_wait_even_in_the_segment_that_is_written_to(make_bench):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    put(bench, (b"a", b"1"), (b"a", b"2"))
    bench.flush()
    assert bench.log.plan_compaction(1500, 2) is None
    assert bench.compact(now_ms=1501)
    assert contents(bench) == [(1, b"a", b"2")]


def test_a_topic_that_is_not_compacted_is_left_alone(make_bench):
    bench = make_bench()
    bench.fill(25)
    bench.flush()
    assert bench.log.plan_compaction(10_000, 25) is None


def test_one_compaction_at_a_time(bench):
    close_segment(bench)
    job = bench.log.plan_compaction(10_000, 2)
    assert job is not None
    assert bench.log.plan_compaction(10_000, 2) is None


def test_it_is_known_after_a_clean_restart_what_was_compacted(bench):
    put(bench, (b"a", b"1"))
    close_segment(bench)
    bench.compact()
    bench.log.close()
    bench.open()
    assert not bench.compact()


# How


def test_small_neighbours_become_one_segment(bench):
    for number in range(6):
        put(bench, (b"a", b"%d" % number))
        close_segment(bench)
    bench.compact()
    bench.remove()
    before = len(bench.names(".log"))
    close_segment(bench)
    bench.compact()
    bench.remove()
    assert len(bench.names(".log")) < before
    assert contents(bench) == [(15, b"a", b"5")]


def test_recovery_does_not_take_a_compacted_segment_for_one_that_lost_its_end(bench, disk):
    for number in range(3):
        put(bench, (b"a", b"%d" % number))
        close_segment(bench)
    bench.compact()
    for name in bench.names(".index"):
        disk.remove(f"logs/t-0/{name}")  # with what proves that a segment was flushed
    assert (bench.open(clean=False).end_offset, contents(bench)) == (9, [(6, b"a", b"2")])


def test_a_log_that_loses_everything_keeps_its_start(bench):
    put(bench, (None, b"x"))
    put(bench, (None, bytes(400)))
    put(bench, (b"a", b"1"))
    bench.flush()
    bench.compact()
    bench.log.close()
    assert (bench.open().start_offset, contents(bench)) == (0, [(2, b"a", b"1")])


def test_more_keys_than_fit_in_memory_take_several_rounds(bench, monkeypatch):
    monkeypatch.setattr(compaction, "KEYS_MAX", 2)
    for number in range(8):
        put(bench, (b"%d" % (number % 4), b"%d" % number))
    close_segment(bench)
    rounds = 0
    while bench.compact():
        rounds += 1
    assert contents(bench) == [(number, b"%d" % (number % 4), b"%d" % number) for number in range(4, 8)]
    assert rounds > 2


def test_damage_stops_the_compaction_and_changes_nothing(bench, disk):
    put(bench, (b"a", b"1"))
    close_segment(bench)
    disk.flip_bit(f"logs/t-0/{0:020}.log", 65)
    job = bench.log.plan_compaction(10_000, 3)
    with pytest.raises(CorruptData, match="is damaged at 0"):
        job.run()
    bench.log.finish_compaction(job)
    assert not bench.names(".cleaned", ".swap")


def test_a_full_disk_stops_the_compaction_and_changes_nothing(bench, disk):
    put(bench, (b"a", b"1"), (b"b", b"1"))
    close_segment(bench)
    before = contents(bench)
    disk.capacity_bytes = disk.used_bytes + 50
    job = bench.log.plan_compaction(10_000, bench.log.end_offset)
    with pytest.raises(DiskFault):
        job.run()
    bench.log.finish_compaction(job)
    assert (contents(bench), bench.names(".cleaned", ".swap")) == (before, [])


def test_a_result_that_comes_too_late_is_thrown_away(make_bench):
    bench = make_bench(
        cleanup_policy=("compact", "delete"), min_cleanable_dirty_ratio=0.0, segment_bytes=400, retention_ms=100
    )
    put(bench, (b"a", b"1"))
    close_segment(bench)
    job = bench.log.plan_compaction(1000, 3)
    job.run()
    bench.log.expire(5000, 3)
    bench.log.finish_compaction(job)
    assert (contents(bench), bench.names(".cleaned", ".swap")) == ([], [])


def test_what_a_crash_left_of_a_compaction_is_not_taken_for_the_next_one(bench, disk):
    put(bench, (b"a", b"1"), (b"a", b"2"))
    close_segment(bench)
    disk.open(f"logs/t-0/{0:020}.log.cleaned").append([b"junk"])
    bench.open(clean=False)
    job = bench.log.plan_compaction(10_000, bench.log.end_offset)
    commit = job._commit
    job._commit = lambda compacted: (bench.remove(), commit(compacted))
    job.run()
    bench.log.finish_compaction(job)
    assert contents(bench) == [(1, b"a", b"2")]
    assert bench.names(".cleaned", ".swap") == []


def compact_until_power_goes(bench, disk, monkeypatch, steps: int) -> None:
    """The power goes after some renames, all of which are on disk by then."""
    count = 0
    rename = disk.rename

    def stop_after_some(old: str, new: str) -> None:
        nonlocal count
        count += 1
        if count > steps:
            raise DiskFault("the power goes here")
        rename(old, new)
        disk.flush_directory(bench.log.directory)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "rename", stop_after_some)
        with pytest.raises(DiskFault):
            bench.compact()
    disk.crash()
    bench.open(clean=False)


@pytest.mark.parametrize("steps", range(12))
def test_after_a_crash_at_any_rename_records_are_found_by_their_time(make_bench, disk, monkeypatch, steps):
    settings = {"cleanup_policy": ("compact",), "min_cleanable_dirty_ratio": 0.0}
    bench = make_bench(**settings, segment_bytes=400, index_interval_bytes=0)
    bench.append(NewRecord(b"b", b"only its empty batch stays", timestamp=1000), producer_id=5, base_sequence=0)
    for key, timestamp in ((b"a", 5000), (b"b", 1000)):
        bench.append(NewRecord(key, bytes(20), timestamp=timestamp))
    close_segment(bench)
    compact_until_power_goes(bench, disk, monkeypatch, steps)
    assert bench.log.find_by_timestamp(4000, bench.log.end_offset) == (1, 5000)
    assert bench.log.find_max_timestamp(bench.log.end_offset) == (1, 5000)


@pytest.mark.parametrize("steps", range(12))
def test_a_crash_at_any_rename_loses_nothing(bench, disk, monkeypatch, steps):
    for number in range(4):
        put(bench, (b"a", b"%d" % number), (b"b", b"%d" % number))
        close_segment(bench)
    compact_until_power_goes(bench, disk, monkeypatch, steps)
    assert {key: value for _, key, value in contents(bench)} == {b"a": b"3", b"b": b"3"}
    assert parse_header(bench.log.read(bench.log.end_offset - 1, 1, bench.log.end_offset)).magic == 2


@pytest.mark.parametrize("steps", range(12))
def test_a_crash_at_any_rename_loses_nothing_where_nothing_was_written_behind(make_bench, disk, monkeypatch, steps):
    settings = {"cleanup_policy": ("compact",), "min_cleanable_dirty_ratio": 0.0, "max_compaction_lag_ms": 1}
    bench = make_bench(**settings, segment_bytes=200)
    for number in range(9):
        put(bench, (b"a", b"%d" % number), (b"b", b"%d" % number))
    bench.flush()
    bench.log.settings = replace(bench.log.settings, segment_bytes=10_000)  # so that they are merged
    compact_until_power_goes(bench, disk, monkeypatch, steps)
    assert not bench.log.damage
    assert {key: value for _, key, value in contents(bench)} == {b"a": b"8", b"b": b"8"}
    assert bench.log.end_offset == 18


def put_raw(bench, batch: bytearray) -> bytes:
    """Write what no producer may send any more, but could."""
    seal(batch)
    bench.log.append(batch, stamp(batch, bench.log.end_offset, 0))
    return bytes(batch)


def bad_batches() -> dict[str, bytearray]:
    garbage = build_batch([NewRecord(b"a", None, timestamp=1000)])
    garbage[HEADER_BYTES:] = b"\xff" * (len(garbage) - HEADER_BYTES)
    payload = bytearray()
    encode_record(payload, 0, 2**63 - 1, b"a", None)
    late = pack_batch(parse_header(build_batch([NewRecord(b"a", None, timestamp=1000)])), payload)
    early = build_batch([NewRecord(b"a", None, timestamp=-(2**63))])
    unpackable = build_batch([NewRecord(b"a", None, timestamp=1000)])
    unpackable[22] = Compression.ZSTD
    return {"garbage": garbage, "end of time": late, "beginning of time": early, "codec": unpackable}


@pytest.mark.parametrize("kind", bad_batches())
def test_a_batch_that_cannot_be_read_is_copied_as_it_is_and_the_others_are_compacted(bench, kind):
    put(bench, (b"a", b"1"), (b"b", b"1"))
    stored = put_raw(bench, bad_batches()[kind])
    put(bench, (b"b", b"2"))
    close_segment(bench)
    assert bench.compact()
    assert bench.log.read(2, 1, 3) == stored
    before, after = iter_records(bench.log.read(0, 1, 2)), iter_records(bench.log.read(3, 1, 4))
    assert [(record.key, record.value) for record in (*before, *after)] == [(b"a", b"1"), (b"b", b"2")]


def test_tombstones_may_be_told_to_stay_for_ever(make_bench):
    bench = make_bench(
        cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, segment_bytes=400, delete_retention_ms=2**63 - 1
    )
    put(bench, (b"a", None))
    close_segment(bench)
    assert bench.compact()
    assert contents(bench) == [(0, b"a", None)]


def test_a_batch_of_more_records_than_keys_can_be_learned_stays_as_it_is(bench, monkeypatch):
    monkeypatch.setattr(compaction, "KEYS_MAX", 2)
    put(bench, (b"a", b"1"))
    batch = put(bench, (b"a", b"2"), (b"b", None), (b"c", b"2"))
    put(bench, (b"b", b"3"))
    for _ in range(3):
        close_segment(bench)
        bench.compact(now_ms=100 * DAY_MS)
    assert bench.log.read(1, 1, 4) == batch


def test_a_compaction_that_is_abandoned_ends_and_changes_nothing(bench):
    for number in range(5):
        put(bench, (b"a", b"%d" % number))
    close_segment(bench)
    before = bench.read_all()
    job = bench.log.plan_compaction(10_000, bench.log.end_offset)
    job.abandon()
    with pytest.raises(Abandoned):
        job.run()
    bench.log.finish_compaction(job)
    bench.remove()
    assert bench.read_all() == before
    assert bench.names(".cleaned", ".swap") == []
    assert bench.compact()


def test_a_read_goes_on_behind_segments_that_compaction_emptied(bench):
    for number in range(40):
        put(bench, (b"key", b"%d" % number))
    close_segment(bench)
    bench.compact()
    read = bench.log.read(0, 1 << 20, bench.log.end_offset, may_block=True)
    assert any(header.record_count for header, _ in iter_batches(read))


def test_a_tombstone_stays_behind_a_batch_that_may_hold_its_record(bench, monkeypatch):
    monkeypatch.setattr(compaction, "KEYS_MAX", 1)
    put(bench, (b"a", b"1"), (b"b", b"1"))  # too many to be learned: it stays as it is
    put(bench, (b"a", None))
    close_segment(bench)
    bench.compact(now_ms=10_000)
    put(bench, (b"c", b"1"))
    close_segment(bench)
    bench.compact(now_ms=10_000 + 2 * DAY_MS)
    assert (2, b"a", None) in contents(bench)
