from __future__ import annotations

import msgspec
import pytest

from zurau.epochs import Position
from zurau.errors import DiskFault
from zurau.ids import TopicId
from zurau.journal import journal as journal_module
from zurau.journal.frames import encode_frame
from zurau.journal.reading import FILE
from zurau.journal.records import Flushed, LogId, Started, encode_records
from zurau.log.last_known import LastKnown

ORDERS = LogId(TopicId(b"orders.........."), 0)
PAYMENTS = LogId(TopicId(b"payments........"), 3)
LONG_MS = 10_000


def test_a_directory_without_a_journal_tells_nothing(read):
    assert read().last_known(ORDERS) is None


def test_each_start_is_counted(begin):
    assert [begin().start_count for _ in range(3)] == [1, 2, 3]


def test_positions_are_known_at_the_next_start(begin, clock, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 10))
    journal.flushed(PAYMENTS, Position(1, 20))
    clock.advance(LONG_MS)
    assert read().last_known(ORDERS) == LastKnown(10, None, kept_unflushed=True)
    assert read().last_known(PAYMENTS) == LastKnown(20, None, kept_unflushed=True)


def test_a_log_that_it_was_never_told_of_was_flushed_nowhere(begin, read):
    begin()
    assert read().last_known(ORDERS).flushed_offset == 0


def test_positions_survive_a_power_failure_and_what_was_not_flushed_may_not(begin, clock, disk, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 10))
    clock.advance(LONG_MS)
    disk.crash()
    assert read().last_known(ORDERS) == LastKnown(10, None, kept_unflushed=False)


def test_what_was_said_in_one_moment_is_written_together(begin, clock, disk):
    journal = begin()
    clock.advance(LONG_MS)
    before = disk.operation_count
    for offset in range(1, 1000):
        journal.flushed(ORDERS, Position(1, offset))
        journal.flushed(PAYMENTS, Position(1, offset))
    clock.advance(LONG_MS)
    assert disk.operation_count == before + 2  # one append, one flush


def test_nothing_is_written_while_no_position_moves(begin, clock, disk):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 10))
    clock.advance(LONG_MS)
    before = disk.operation_count
    journal.flushed(ORDERS, Position(1, 10))
    clock.advance(LONG_MS)
    assert disk.operation_count == before


def test_a_clean_stop_says_where_each_log_ended(begin, read):
    journal = begin()
    journal.close({ORDERS: 12})
    assert read().last_known(ORDERS) == LastKnown(12, 12, kept_unflushed=True)
    assert read().last_known(PAYMENTS).closed_offset is None


def test_a_start_takes_the_clean_stop_back(begin, read):
    begin().close({ORDERS: 12})
    assert begin().last_known(ORDERS).closed_offset == 12, "the start itself still knows"
    assert read().last_known(ORDERS) == LastKnown(12, None, kept_unflushed=True)


def test_a_start_that_did_not_open_every_log_vouches_for_none_on_its_boot(begin, disk, read):
    begin()
    disk.crash()
    read().begin()  # and is killed before all logs were recovered
    assert not read().last_known(ORDERS).kept_unflushed


def test_a_log_that_could_not_be_opened_is_not_vouched_for(clock, disk, read):
    journal = read()
    journal.begin()
    journal.recovered([ORDERS])
    clock.advance(LONG_MS)
    assert not read().last_known(ORDERS).kept_unflushed
    assert read().last_known(PAYMENTS).kept_unflushed


def test_the_file_stays_short_however_long_positions_move(begin, clock, disk, monkeypatch, read):
    monkeypatch.setattr(journal_module, "REWRITE_BYTES", 500)
    journal = begin()
    for offset in range(1, 300):
        journal.flushed(ORDERS, Position(1, offset))
        clock.advance(LONG_MS)
        assert disk.file_size(FILE) < 1000
    assert read().last_known(ORDERS).flushed_offset == 299


def test_a_position_is_lowered_before_a_log_is_cut(begin, clock, disk, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 100))
    lowered = journal.lower(ORDERS, Position(1, 40))
    clock.advance(LONG_MS)
    assert lowered.is_done
    disk.crash()
    assert read().last_known(ORDERS).flushed_offset == 40


def test_a_lowered_position_rises_again(begin, clock, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 100))
    journal.lower(ORDERS, Position(1, 40))
    journal.flushed(ORDERS, Position(1, 41))
    clock.advance(LONG_MS)
    assert read().last_known(ORDERS).flushed_offset == 41


def test_forgotten_logs_leave_the_file(begin, clock, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 100))
    clock.advance(LONG_MS)
    journal.forget([ORDERS])
    journal.close({})
    assert list(read().logs) == []


def test_nothing_is_known_of_a_log_that_comes_back_after_it_was_gone(begin):
    begin().close({ORDERS: 12, PAYMENTS: 3})
    journal = begin()
    journal.forget([ORDERS])
    assert journal.last_known(ORDERS) == LastKnown(0, None, kept_unflushed=True)
    assert journal.last_known(PAYMENTS).closed_offset == 3


# A damaged journal


def test_damage_makes_positions_unknown_and_is_said(begin, caplog, clock, disk, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 100))
    clock.advance(LONG_MS)
    at = disk.file_size(FILE)
    journal.flushed(PAYMENTS, Position(1, 7))
    clock.advance(LONG_MS)
    disk.flip_bit(FILE, at - 1)
    damaged = read()
    assert damaged.last_known(ORDERS).flushed_offset == 0
    assert damaged.last_known(PAYMENTS).flushed_offset == 7, "it was said after the damage"
    assert damaged.damage
    assert "are damaged" in caplog.text


@pytest.mark.parametrize("content", [b"", b"\0" * 50, b"something else"])
def test_a_journal_that_is_not_one_is_said_to_be_damaged(begin, content, disk, read):
    begin()
    disk.replace_file(FILE, content)
    assert read().damage
    assert read().last_known(ORDERS) == LastKnown()


def test_a_torn_end_is_not_damage(begin, clock, disk, read):
    journal = begin()
    journal.flushed(ORDERS, Position(1, 100))
    clock.advance(LONG_MS)
    journal.flushed(ORDERS, Position(1, 200))
    clock.advance(LONG_MS)
    disk.open(FILE).truncate(disk.file_size(FILE) - 3)
    assert read().last_known(ORDERS).flushed_offset == 100
    assert read().damage == []


def test_a_damaged_journal_is_whole_again_after_the_start(begin, disk, read):
    begin().close({ORDERS: 5})
    disk.flip_bit(FILE, 20)
    begin().close({ORDERS: 5})
    assert read().damage == []
    assert read().last_known(ORDERS).closed_offset == 5


def test_any_bit_that_flips_never_makes_a_position_larger(begin, clock, disk, read):
    journal = begin()
    for offset in (10, 300, 70_000):
        journal.flushed(ORDERS, Position(1, offset))
        clock.advance(LONG_MS)
    content = disk.read_file(FILE)
    for position in range(len(content)):
        disk.flip_bit(FILE, position, bit=position % 8)
        assert read().last_known(ORDERS).flushed_offset in {0, 300, 70_000}
        disk.flip_bit(FILE, position, bit=position % 8)


# A disk that refuses


def test_on_a_full_disk_it_is_tried_again_until_there_is_room(begin, caplog, clock, disk, read):
    journal = begin()
    disk.capacity_bytes = disk.used_bytes
    journal.flushed(ORDERS, Position(1, 100))
    clock.advance(LONG_MS)
    assert journal.fault is not None
    assert caplog.text.count("cannot be noted") == 1, "said once, though tried often"
    disk.capacity_bytes = 1 << 40
    clock.advance(LONG_MS)
    assert journal.fault is None
    assert read().last_known(ORDERS).flushed_offset == 100


def test_after_a_failed_flush_the_file_is_written_anew(begin, clock, disk, read):
    journal = begin()
    disk.fail_flushes = True
    journal.flushed(ORDERS, Position(1, 100))
    clock.advance(LONG_MS)
    disk.fail_flushes = False
    clock.advance(LONG_MS)
    disk.crash()
    assert read().last_known(ORDERS).flushed_offset == 100


def test_a_start_that_cannot_be_noted_is_none(disk, read):
    disk.capacity_bytes = 0
    with pytest.raises(DiskFault, match="full"):
        read().begin()


def test_a_log_whose_flush_failed_is_not_vouched_for_though_the_machine_goes_on(begin, clock, read):
    notes = begin().notes_of(ORDERS)
    for _ in range(2):
        notes.flush_failed()
    clock.advance(LONG_MS)
    assert not read().last_known(ORDERS).kept_unflushed
    assert read().last_known(PAYMENTS).kept_unflushed


# Other releases


def test_positions_of_a_release_without_epochs_are_known(disk, read):
    disk.replace_file(FILE, encode_frame(encode_records([Started(3), Flushed([(*ORDERS, 12)])])))
    assert (read().start_count, read().last_known(ORDERS).flushed_offset) == (3, 12)


def test_what_a_later_release_says_is_damage_and_not_guessed_at(disk, read):
    disk.replace_file(FILE, encode_frame(msgspec.msgpack.encode([["invented", 1]])))
    assert "cannot be read" in read().damage[0]
