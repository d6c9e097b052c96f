"""Reading a machine's records back, from logs that are whole and from logs that are not."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData, ProtocolViolation, ReleaseTooOld
from zurau.machines.machine import StateRecord
from zurau.partition.replay import Replay
from zurau.partition.snapshots import NO_SNAPSHOT, Snapshot
from zurau.pending import start
from zurau.ports import EndlessTurn
from zurau.records.builder import NewRecord, build_batch
from zurau.simulation.world import make_world

LOG = "t-0/00000000000000000000.log"
LONG_MS = 1000


@pytest.fixture
def words() -> list[bytes]:
    return []


@pytest.fixture
def apply(words):
    """A machine to which `?` means nothing, `!` is a violation, and `>` comes from a later release."""

    def apply(record: StateRecord, offset: int) -> None:
        if record.value == b"?":
            raise LookupError("nothing of that name")
        if record.value == b"!":
            raise ProtocolViolation("cannot be")
        if record.value == b">":
            raise ReleaseTooOld("start a later release")
        words.append(record.value)

    return apply


@pytest.fixture
def write(partition, clock):
    def write(*values: bytes) -> None:
        for value in values:
            partition.append_own(build_batch([NewRecord(None, value, timestamp=0)]))
        clock.advance(LONG_MS)

    return write


def test_everything_below_the_offset_is_applied_and_nothing_else(apply, partition, words, write):
    write(b"a", b"b", b"c")
    replay = Replay(partition, apply)
    replay.catch_up(2)
    assert (words, replay.next_offset) == ([b"a", b"b"], 2)


def test_a_record_of_a_later_release_is_not_called_damage(apply, partition, words, write):
    write(b"a", b">")
    with pytest.raises(ReleaseTooOld, match=r"^start a later release$"):
        Replay(partition, apply).catch_up(2)
    assert words == [b"a"]


def test_a_snapshot_comes_first_and_the_log_goes_on_from_there(apply, partition, words, write):
    write(b"a", b"b")
    replay = Replay(partition, apply)
    replay.restore(Snapshot(1, [StateRecord(None, b"state")]))
    replay.catch_up(2)
    assert words == [b"state", b"b"]


def test_an_empty_snapshot_says_nothing(apply, partition):
    replay = Replay(partition, apply)
    replay.restore(NO_SNAPSHOT)
    assert replay.next_offset == 0


def test_a_record_of_a_later_release_is_said_to_be_that_and_not_damage(partition, write):
    def apply(record: StateRecord, offset: int) -> None:
        raise ReleaseTooOld("start a later release")

    write(b"a")
    with pytest.raises(ReleaseTooOld, match=r"^start a later release$"):
        Replay(partition, apply).catch_up(1)


def test_a_snapshot_of_more_than_the_log_holds_is_not_taken(apply, partition):
    with pytest.raises(CorruptData, match=r"its snapshot of offset 7 does not fit; restore its directory"):
        Replay(partition, apply).restore(Snapshot(7, [StateRecord(None, b"state")]))


@pytest.mark.parametrize("turns", [EndlessTurn(), None], ids=["one long turn", "short turns"])
def test_in_turns_what_is_not_in_memory_is_read_by_a_worker(apply, clock, disk, partition, turns, words, write):
    write(b"a", b"b")
    world = make_world(disk, clock)
    disk.forget_cached()
    done = start(Replay(partition, apply).catch_up_in_turns(2, world.workers, turns or world.turns))
    assert words == []
    clock.advance(LONG_MS)
    assert done.result() is None
    assert words == [b"a", b"b"]


def test_where_the_log_ends_early_the_rest_is_a_gap(apply, partition, write):
    write(b"a")
    replay = Replay(partition, apply)
    replay._apply_chunk(b"", 5)
    assert (replay.next_offset, replay.gaps) == (5, [(0, 5)])


def test_a_log_that_begins_later_has_a_gap_before_it(apply, clock, partition, write):
    write(b"a", b"b")
    partition.log.advance_start(1)
    replay = Replay(partition, apply)
    assert (replay.next_offset, replay.gaps) == (1, [(0, 1)])


def test_a_record_that_means_nothing_is_damage_in_a_whole_log(apply, partition, write):
    write(b"a", b"?")
    with pytest.raises(CorruptData, match=r"t-0 is damaged at offset 1 .*nothing of that name"):
        Replay(partition, apply).catch_up(2)


def test_a_record_that_means_nothing_behind_a_gap_is_passed_over_with_a_word(apply, caplog, partition, words, write):
    write(b"lost", b"?", b"b")
    partition.log.advance_start(1)
    Replay(partition, apply).catch_up(3)
    assert words == [b"b"]
    assert "the record at offset 1 means nothing without a lost one" in caplog.text


def test_what_violates_the_machines_rules_is_damage_even_behind_a_gap(apply, partition, write):
    write(b"lost", b"!")
    partition.log.advance_start(1)
    with pytest.raises(CorruptData, match="cannot be"):
        Replay(partition, apply).catch_up(2)


def test_a_flipped_bit_is_damage_with_what_to_do(apply, disk, partition, write):
    write(b"truth")
    disk.flip_bit(LOG, disk.read_file(LOG).index(b"truth"))
    with pytest.raises(CorruptData, match=r"t-0 is damaged at offset 0 .*zurau log repair"):
        Replay(partition, apply).catch_up(1)


def test_a_flipped_bit_in_what_is_in_memory_is_damage_too(apply, clock, disk, partition, write):
    write(b"truth")
    disk.flip_bit(LOG, disk.read_file(LOG).index(b"truth"))
    done = start(Replay(partition, apply).catch_up_in_turns(1, make_world(disk, clock).workers, EndlessTurn()))
    with pytest.raises(CorruptData, match=r"its checksum is wrong.*zurau log repair"):
        done.result()
