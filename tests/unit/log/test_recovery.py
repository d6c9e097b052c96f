from __future__ import annotations

import pytest

from zurau.epochs import EpochMark
from zurau.errors import DiskFault, FlushFailed
from zurau.log.last_known import LastKnown
from zurau.records.batch import stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"
LOG_0 = f"{DIRECTORY}/{0:020}.log"
LOG_10 = f"{DIRECTORY}/{10:020}.log"
LOG_20 = f"{DIRECTORY}/{20:020}.log"
NOTHING_FLUSHED = LastKnown()


@pytest.mark.parametrize("kept", [0, 1, 60, 61, 99, 100, 101, 455])
def test_a_torn_tail_is_cut_at_the_last_valid_batch(bench, disk, kept):
    batches = bench.fill(5)
    disk.open(LOG_0).truncate(kept)
    bench.open(clean=False)
    assert bench.read_all() == b"".join(batches[: kept // 100])
    assert disk.file_size(LOG_0) == kept // 100 * 100


@pytest.mark.parametrize("garbage", [bytes(500), b"\xff" * 500, b"\0\0\0\0\0\0\0\5\0\0\0\x40" + bytes(70)])
def test_garbage_behind_the_last_batch_is_cut_off(bench, disk, garbage):
    batches = bench.fill(5)
    disk.open(LOG_0).append([garbage])
    assert (bench.open(clean=False).end_offset, bench.read_all()) == (5, b"".join(batches))


def test_a_batch_with_a_wrong_checksum_ends_the_unflushed_part(bench, disk):
    bench.fill(5)
    disk.flip_bit(LOG_0, 299)
    assert bench.open(clean=False, last_known=NOTHING_FLUSHED).end_offset == 2


@pytest.mark.parametrize(("offset", "epoch"), [(2, 5), (5, 4)])
def test_an_old_batch_that_shows_again_is_cut_off(bench, disk, offset, epoch):
    bench.fill(5, epoch=5)
    old = build_batch([NewRecord(None, b"from before a truncation", timestamp=1)])
    stamp(old, offset, epoch)
    disk.open(LOG_0).append([old])
    assert bench.open(clean=False).end_offset == 5


def test_everything_after_a_torn_segment_goes(bench, disk):
    bench.fill(25)
    disk.open(LOG_0).truncate(450)
    bench.open(clean=False)
    bench.remove()
    assert (bench.log.end_offset, bench.names(".log", ".deleted")) == (4, [f"{0:020}.log"])


@pytest.mark.parametrize("kept", [0, 9])
def test_so_does_everything_after_a_segment_that_lost_whole_batches(bench, disk, kept):
    batches = bench.fill(25)
    disk.open(LOG_0).truncate(kept * 100)
    assert bench.open(clean=False).end_offset == kept
    assert bench.read_all() == b"".join(batches[:kept])


def test_flushed_segments_are_not_checked_again(bench, disk):
    bench.fill(25)
    bench.flush()
    disk.flip_bit(LOG_0, 299)
    assert bench.open(clean=False).end_offset == 25


def test_flushed_data_before_the_last_index_entry_is_not_checked_again(make_bench, disk):
    bench = make_bench(segment_bytes=1 << 30, index_interval_bytes=0)
    bench.fill(5000)
    bench.flush()
    bench.fill(10)
    disk.flip_bit(LOG_0, 299)
    assert bench.open(clean=False).end_offset == 5010


def test_the_unflushed_part_of_a_segment_is_checked(make_bench, disk):
    bench = make_bench(segment_bytes=1 << 30, index_interval_bytes=0)
    bench.fill(5000)
    bench.flush()
    bench.fill(10)
    disk.flip_bit(LOG_0, 500_599)
    assert bench.open(clean=False, last_known=NOTHING_FLUSHED).end_offset == 5005


DAMAGES = {
    "missing": lambda disk, path, _: disk.remove(path),
    "torn": lambda disk, path, entry: disk.open(path).append([entry[:5]]),
    "longer": lambda disk, path, entry: disk.open(path).append([entry]),
    "zeroed": lambda disk, path, _: disk.replace_file(path, bytes(disk.file_size(path))),
    "foreign": lambda disk, path, entry: disk.replace_file(path, entry * 3),
}


@pytest.mark.parametrize(("damage", "clean"), [*((name, False) for name in DAMAGES), ("missing", True), ("torn", True)])
def test_indexes_are_made_again_when_they_are_wrong(bench, disk, damage, clean):
    batches = bench.fill(25)
    bench.log.close()
    DAMAGES[damage](disk, f"{DIRECTORY}/{10:020}.index", b"\0\0\0\x63\0\0\0\x63")
    DAMAGES[damage](disk, f"{DIRECTORY}/{10:020}.timeindex", b"\0" * 7 + b"\x01\0\0\0\x63")
    bench.open(clean=clean)
    assert bench.read_all(100) == b"".join(batches)
    assert [bench.log.find_by_timestamp(1000 + number, 25).offset for number in range(25)] == list(range(25))


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_index_of_the_last_segment_is_noticed(bench, disk, clean):
    batches = bench.fill(29)
    bench.log.close()
    disk.replace_file(f"{DIRECTORY}/{20:020}.index", b"\0\0\0\x02\0\0\1\1")
    bench.open(clean=clean)
    assert bench.read_all(100) == b"".join(batches)


def test_recovered_segments_have_indexes_again(bench, disk):
    bench.fill(25)
    bench.open(clean=False)
    assert bench.names("index") == [f"{base:020}{suffix}" for base in (0, 10) for suffix in (".index", ".timeindex")]


def test_epochs_are_learned_again_from_the_batches(bench, disk):
    for epoch in (2, 4):
        bench.fill(3, epoch=epoch)
    bench.open(clean=False)
    assert [tuple(entry) for entry in bench.log.epochs.marks] == [(2, 0), (4, 3)]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"0\n5\n1 1\n"])
def test_a_damaged_epoch_file_is_written_anew(bench, disk, content):
    bench.fill(3, epoch=2)
    bench.log.close()
    disk.replace_file(f"{DIRECTORY}/leader-epoch-checkpoint", content)
    assert bench.open(clean=True).epochs.last == 2


def test_epochs_behind_the_end_are_forgotten(bench, disk):
    bench.fill(3, epoch=1)
    bench.log.mark(EpochMark(7, 3))
    bench.flush()
    disk.open(LOG_0).truncate(200)
    assert bench.open(clean=False).epochs.last == 1


def test_a_gap_that_the_leaders_compaction_left_between_two_segments_is_no_damage(make_bench):
    """The follower hears of the next epoch, which begins behind the gap, and then gets the batch that begins it."""
    bench = make_bench(segment_bytes=100)
    bench.fill(2)
    bench.log.mark(EpochMark(3, 4))
    bench.append(NewRecord(None, bytes(32), timestamp=1000), epoch=3)
    bench.flush()
    assert bench.open(clean=False, last_known=LastKnown(5)).damage == []
    assert [record.offset for record in bench.records()] == [0, 1, 4]


def test_files_of_unfinished_business_are_removed(bench, disk):
    bench.fill(5)
    bench.log.close()
    strays = ["x.log.cleaned", f"{0:020}.index.cleaned", f"{7:020}.log.deleted", "state.tmp", f"{9:020}.index"]
    for name in strays:
        disk.open(f"{DIRECTORY}/{name}").append([b"junk"])
    bench.open(clean=False)
    bench.remove()
    assert not {name for name in bench.names() if name.startswith(tuple(strays))}


def test_a_start_asks_for_each_file_of_a_segment_about_once(make_bench, disk, monkeypatch):
    bench = make_bench(segment_bytes=100)
    bench.fill(40)
    bench.flush()
    bench.log.close()
    asked: list[str] = []
    for question in ("exists", "file_size", "is_directory"):
        ask = getattr(disk, question)
        monkeypatch.setattr(disk, question, lambda path, ask=ask: asked.append(path) or ask(path))
    assert len(bench.open()._segments) == 40
    assert len(asked) <= len(bench.names()) + 40 + 10


def test_an_interrupted_swap_is_completed(bench, disk):
    batches = bench.fill(25)
    bench.flush()
    content = disk.read_file(LOG_10)
    disk.open(LOG_10 + ".swap").append([content[:300], content[900:]])
    bench.open(clean=False)
    assert bench.read_all() == b"".join(batches[:13] + batches[19:])
    assert not bench.names(".swap")


def test_an_index_swapped_without_its_log_is_made_again(bench, disk):
    batches = bench.fill(25)
    bench.flush()
    disk.open(f"{DIRECTORY}/{10:020}.index.swap").append([b"\0\0\0\x01\0\0\0\1"])
    bench.open(clean=False)
    assert (bench.read_all(100), bench.names(".swap")) == (b"".join(batches), [])


def test_a_segment_that_was_merged_into_the_one_before_goes(bench, disk):
    batches = bench.fill(25)
    bench.flush()
    disk.open(LOG_0).append([disk.read_file(LOG_10)])
    bench.open(clean=False)
    bench.remove()
    assert (bench.read_all(), bench.names(".log")) == (b"".join(batches), [f"{0:020}.log", f"{20:020}.log"])


@pytest.mark.parametrize("damaged", [b"0\nstart-offset many\n", b"", b"1\nstart-offset 9\ncompacted-offset 0\n"])
def test_a_lost_checkpoint_is_replaced_by_what_the_epochs_say(bench, disk, caplog, damaged):
    bench.fill(25)
    bench.log.advance_start(13)
    bench.log.close()
    disk.replace_file(f"{DIRECTORY}/log-checkpoint", damaged)
    assert bench.open().start_offset == 13
    assert "log-checkpoint" in caplog.text
    assert bench.open(clean=False).start_offset == 13


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("epochs", [b"0\n1\n5 8\n", b"0\n1\n-5 0\n", b"0\n0\n", b"0\n1\n6 25\n"])
def test_no_file_of_epochs_hides_records_of_a_log_whose_start_never_moved(bench, clean, disk, epochs):
    """It has no checksum: one flipped bit makes an 8 of a 0."""
    batches = bench.fill(25, epoch=5)
    bench.log.close()
    disk.replace_file(f"{DIRECTORY}/leader-epoch-checkpoint", epochs)
    assert bench.open(clean=clean).start_offset == 0
    assert bench.read_all(100) == b"".join(batches)
    assert bench.log.epochs.marks[0] == (5, 0)


def test_every_bit_of_a_checkpoint_counts(bench, disk):
    bench.fill(25)
    bench.log.advance_start(13)
    bench.log.close()
    content = disk.read_file(f"{DIRECTORY}/log-checkpoint")
    for bit in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        disk.replace_file(f"{DIRECTORY}/log-checkpoint", bytes(flipped))
        assert (bench.open().start_offset, bench.log.end_offset) == (13, 25)
        bench.log.close()


def test_files_made_by_others_are_left_alone(bench, disk):
    bench.fill(3)
    disk.open(f"{DIRECTORY}/partition.metadata").append([b"version: 0"])
    bench.open(clean=False)
    bench.remove()
    assert "partition.metadata" in bench.names()


@pytest.mark.parametrize("seed", range(10))
def test_what_was_flushed_survives_any_crash(seed, make_bench):
    disk = SimulatedDisk(seed)
    bench = make_bench(disk=disk)
    flushed = bench.fill(17)
    bench.flush()
    lost = bench.fill(13)
    disk.crash()
    bench.open(clean=False)
    assert bench.read_all().startswith(b"".join(flushed))
    assert b"".join(flushed + lost).startswith(bench.read_all())


def test_what_a_failed_flush_dropped_is_written_again_by_the_next_start(bench, disk):
    bench.fill(1)
    bench.flush()
    bench.fill(2)
    disk.fail_flushes = True
    with pytest.raises(FlushFailed):
        bench.flush()
    disk.fail_flushes = False
    bench.open(clean=False)
    stored = bench.read_all()
    assert bench.log.flushed_offset == 3
    disk.crash()
    bench.open(clean=False)
    assert bench.read_all() == stored


def test_what_the_journal_knows_to_be_flushed_needs_no_flush_at_a_start(bench, disk):
    bench.fill(5)
    bench.flush()
    before = disk.flush_count, disk.operation_count
    assert bench.open(clean=False, last_known=LastKnown(flushed_offset=5)).end_offset == 5
    assert (disk.flush_count, disk.operation_count) == before


@pytest.mark.parametrize("last_known", [None, LastKnown(flushed_offset=4)])
def test_what_it_does_not_know_is_flushed_with_its_name(bench, disk, last_known):
    batches = bench.fill(5)
    assert bench.open(clean=False, last_known=last_known).end_offset == 5
    disk.crash()
    bench.open(clean=False)
    assert bench.read_all() == b"".join(batches)


def test_where_a_log_starts_is_not_left_out_when_there_was_no_room_for_it_at_first(bench, disk):
    batch = build_batch([NewRecord(None, b"", timestamp=1)])
    header = stamp(batch, 1 << 40, 0)
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(DiskFault):
        bench.log.append(batch, header)
    disk.capacity_bytes += 1000
    bench.log.append(batch, header)
    assert bench.names("log-checkpoint") == ["log-checkpoint"]
