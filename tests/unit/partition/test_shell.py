"""What a shell does with what its core says: in order, and what happens when it cannot."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault, FlushFailed, Refused
from zurau.ids import BrokerId
from zurau.partition.flushing import RETRY_FLUSH_MS, UNAWAITED_FLUSH_MS
from zurau.records.batch import stamp
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceStart,
    AlterPartition,
    Append,
    FetchSnapshot,
    ReadAndSend,
    Refuse,
    RestartLog,
    Send,
    StartFlush,
    Truncate,
)
from zurau.replica.core.events import Received, TimePassed
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import BeginEpoch, Fetched, SnapshotPoint
from zurau.wire.kafka.error_codes import ErrorCode

OTHER = ReplicaId(BrokerId(2), "b")


class Outbox:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple] = []
        self.is_throttled = False

    def holds_back(self, *_) -> bool:
        return self.is_throttled

    def __getattr__(self, name):
        return lambda *facts: self.said.append((name, *facts))


@pytest.fixture
def outbox(partition) -> Outbox:
    outbox = partition.shell._outbox = Outbox()
    return outbox


@pytest.fixture
def shell(partition, outbox):
    return partition.shell


@pytest.fixture
def write(partition, batch):
    """Appends a record to the partition that this broker leads."""

    def write(value: bytes = b"a") -> None:
        partition.append_own(bytearray(batch(value)))

    return write


def carry_out(shell, *effects) -> None:
    shell._effects.extend(effects)
    shell._carry_out_all()


def fetched(shell, **facts) -> Fetched:
    return Fetched(shell.core.id, facts.pop("epoch", shell.core.epoch), 1, 0, **facts)


def test_a_broken_invariant_stops_the_replica_and_says_what_to_do(caplog, outbox, partition, shell, write):
    def broken(event, now_ms):
        raise AssertionError("two leaders")

    shell.core.step = broken
    shell.tell(TimePassed())
    assert shell.is_stopped
    assert "two leaders" in caplog.text
    assert "restart the broker" in caplog.text
    assert outbox.said == [("failed", shell.partition)]
    with pytest.raises(Refused) as caught:
        write()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_what_cannot_be_carried_out_stops_the_replica(caplog, clock, disk, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.fail_power_after(0)
    carry_out(shell, Truncate(Position(0, 0)))
    clock.advance(1)
    assert shell.is_stopped
    assert "the power has failed" in caplog.text


def test_a_stopped_shell_hears_nothing(shell):
    shell.stop()
    shell.tell(Received(BeginEpoch(OTHER, 99)))
    assert shell.core.epoch == 0


def test_who_waits_is_told_when_the_replica_stops(batch, clock, partition, shell):
    waiting = partition.wait_committed(partition.append_own(bytearray(batch(b"a"))))
    shell._broke(AssertionError("gone"))
    with pytest.raises(Refused, match="gone"):
        waiting.result()
    assert partition.is_broken


def test_a_truncation_waits_for_the_flush_that_is_under_way(clock, partition, shell, write):
    write()
    shell.flushing.begin()
    carry_out(shell, Truncate(Position(0, 0)), Refuse("behind it"))
    assert (partition.log.end_offset, shell.is_settled) == (1, False)
    clock.advance(5)
    assert (partition.log.end_offset, shell.is_settled) == (0, True)


def test_what_comes_behind_a_truncation_waits_for_it(clock, outbox, shell):
    message = BeginEpoch(shell.core.id, 1)
    carry_out(shell, Truncate(Position(0, 0)), Send(BrokerId(2), message))
    assert outbox.said == []
    clock.advance(1)
    assert outbox.said == [("send", 2, shell.partition, message)]


def test_producers_of_what_was_truncated_are_forgotten(batch, clock, partition, shell):
    partition.append_own(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0).obj)
    partition.producers.written(next(partition.log.headers(0)), 0)
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    assert len(partition.producers) == 1
    carry_out(shell, Truncate(Position(0, 0)))
    clock.advance(1)
    assert len(partition.producers) == 0


def test_a_log_starts_over_behind_a_snapshot(clock, partition, shell):
    carry_out(shell, RestartLog(SnapshotPoint(EpochMark(3, 50), ())))
    clock.advance(1)
    assert (partition.log.start_offset, partition.log.position) == (50, Position(3, 50))


def test_the_start_of_a_log_follows_its_leaders(clock, partition, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    carry_out(shell, AdvanceStart(1))
    clock.advance(1)
    assert partition.log.start_offset == 1


def test_a_start_that_there_is_no_room_to_write_down_is_tried_again(clock, disk, partition, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, AdvanceStart(1))
    clock.advance(10)
    assert (partition.log.start_offset, shell.is_settled, shell.is_stopped) == (0, False, False)
    disk.capacity_bytes += 1000
    clock.advance(2 * RETRY_FLUSH_MS)
    assert (partition.log.start_offset, shell.is_settled) == (1, True)


def test_a_start_is_not_tried_again_when_the_replica_has_stopped(clock, disk, partition, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, AdvanceStart(1))
    clock.advance(10)
    shell.stop()
    disk.capacity_bytes += 1000
    clock.advance(2 * RETRY_FLUSH_MS)
    assert partition.log.start_offset == 0


def stored_batches(batch, *values: bytes) -> list[Batch]:
    """As a leader sends them, from offset 0 on."""
    batches = []
    for offset, value in enumerate(values):
        data = bytearray(batch(value))
        stamp(data, offset, 0)
        batches.append(Batch(0, offset, 1, memoryview(data)))
    return batches


def test_an_append_that_there_is_no_room_for_is_tried_again_and_what_is_behind_it_waits(
    batch, clock, disk, outbox, partition, shell
):
    message = BeginEpoch(shell.core.id, 1)
    first, second, third = stored_batches(batch, b"a", b"b", b"c")
    disk.capacity_bytes = disk.used_bytes + len(first.data)
    carry_out(shell, Append((first, second, third)), Send(BrokerId(2), message))
    clock.advance(3 * RETRY_FLUSH_MS)
    assert (partition.log.end_offset, shell.is_settled, shell.is_stopped) == (1, False, False)
    assert set(outbox.said) == {("cannot_write", shell.partition)}
    assert partition.fault is not None
    disk.capacity_bytes = 1 << 30
    clock.advance(2 * RETRY_FLUSH_MS)
    assert (partition.log.end_offset, shell.is_settled, partition.fault) == (3, True, None)
    assert outbox.said[-1] == ("send", 2, shell.partition, message)


def test_a_change_of_voters_that_there_is_no_room_for_is_noted_when_it_is_written(clock, disk, partition, shell):
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, Append((Batch(0, 0, 1, b"", frozenset({OTHER})),)))
    clock.advance(2 * RETRY_FLUSH_MS)
    assert (partition.log.end_offset, shell.is_stopped) == (0, False)
    disk.capacity_bytes = 1 << 30
    clock.advance(2 * RETRY_FLUSH_MS)
    assert (partition.log.end_offset, shell.is_settled) == (1, True)


def test_an_append_is_not_tried_again_when_the_replica_has_stopped(batch, clock, disk, partition, shell):
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, Append(tuple(stored_batches(batch, b"a"))))
    shell.stop()
    disk.capacity_bytes = 1 << 30
    clock.advance(2 * RETRY_FLUSH_MS)
    assert partition.log.end_offset == 0


def test_an_append_that_breaks_an_invariant_when_it_is_tried_again_stops_the_replica(
    batch, clock, disk, partition, shell
):
    (only,) = stored_batches(batch, b"a")
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, Append((only,)))
    disk.capacity_bytes = 1 << 30
    partition.log.mark(EpochMark(1, 5))  # its place is taken
    clock.advance(2 * RETRY_FLUSH_MS)
    assert shell.is_stopped


def far_away(batch) -> Batch:
    """Further from the beginning than a segment can express: where the log starts has to be written down first."""
    data = bytearray(batch(b"a"))
    stamp(data, 1 << 32, 0)
    return Batch(0, 1 << 32, 1, memoryview(data))


def test_a_flush_that_fails_within_an_append_is_final(batch, disk, monkeypatch, shell):
    monkeypatch.setattr(disk, "flush_directory", _cannot_flush)
    with pytest.raises(FlushFailed):
        carry_out(shell, Append((far_away(batch),)))


def test_a_flush_that_fails_when_an_append_is_tried_again_is_final(batch, clock, disk, monkeypatch, shell):
    disk.capacity_bytes = disk.used_bytes
    carry_out(shell, Append((far_away(batch),)))
    assert not shell.is_stopped
    disk.capacity_bytes = 1 << 30
    monkeypatch.setattr(disk, "flush_directory", _cannot_flush)
    clock.advance(2 * RETRY_FLUSH_MS)
    assert shell.is_stopped


def _cannot_flush(path: str) -> None:
    raise FlushFailed(f"cannot flush the directory {path}")


def test_what_a_follower_wants_is_read_and_sent(clock, outbox, shell, write):
    write(b"wanted")
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    (name, to, partition, message) = outbox.said[0]
    assert (name, to, partition, message.batches[0].count) == ("send", 2, shell.partition, 1)
    assert b"wanted" in bytes(message.batches[0].data)


def test_what_is_held_back_is_not_read(clock, outbox, shell, write):
    write(b"a")
    outbox.is_throttled = True
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    assert outbox.said == []


def test_what_is_not_in_memory_is_read_by_a_worker(clock, disk, outbox, shell, write):
    write()
    disk.forget_cached()
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    assert outbox.said == []
    clock.advance(1)
    assert outbox.said[0][0] == "send"


@pytest.mark.parametrize("epoch", [0, 9])
def test_whoever_reads_late_and_leads_no_more_says_nothing(clock, disk, epoch, outbox, shell, write):
    write()
    disk.forget_cached()
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell, epoch=epoch), 0, 1, 1000))
    clock.advance(1)
    assert outbox.said[0][0] == ("send" if epoch == 0 else "evict")


def test_what_is_not_in_the_log_any_more_has_to_be_asked_for_anew(clock, disk, outbox, shell):
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 7, 8, 1000))
    assert outbox.said == [("evict", shell.partition, 2)]


def test_a_leader_whose_disk_gives_back_something_else_stops(caplog, clock, disk, outbox, partition, shell, write):
    write(b"truth")
    path = "t-0/00000000000000000000.log"
    disk.flip_bit(path, disk.read_file(path).index(b"truth"))
    shell.tell(TimePassed())
    shell._effects.append(ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    shell.tell(TimePassed())
    assert shell.is_stopped
    assert "does not match its checksum" in caplog.text


def test_snapshots_and_proposals_are_the_brokers_business(caplog, outbox, shell):
    point = SnapshotPoint(EpochMark(1, 5), ())
    carry_out(shell, FetchSnapshot(OTHER, point), AlterPartition(None))
    assert [said[0] for said in outbox.said] == ["fetch_snapshot", "alter_partition"]


def test_marks_alone_are_flushed_with_what_is_there(clock, partition, shell):
    carry_out(shell, Append((EpochMark(5, 0),)), StartFlush(99))
    clock.advance(5)
    assert partition.log.epochs.last == 5
    assert not partition.log.needs_flush


def test_what_ends_behind_the_stop_is_not_gone_on_with(clock, outbox, partition, shell):
    carry_out(shell, Truncate(Position(0, 0)), Send(BrokerId(2), BeginEpoch(shell.core.id, 1)))
    shell.stop()
    clock.advance(5)
    assert outbox.said == []


def test_what_was_read_behind_the_stop_is_not_sent(clock, disk, outbox, shell, write):
    write()
    disk.forget_cached()
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    shell.stop()
    clock.advance(1)
    assert outbox.said == []


def test_what_is_gone_when_a_worker_comes_to_read_it_has_to_be_asked_for_anew(clock, disk, outbox, shell, write):
    write()
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.forget_cached()
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    shell.log.advance_start(2)
    clock.advance(1)
    assert outbox.said == [("evict", shell.partition, 2)]


def test_a_leader_whose_disk_cannot_read_stops(caplog, clock, disk, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.forget_cached()
    disk.make_unreadable("t-0/00000000000000000000.log", range(50))
    carry_out(shell, ReadAndSend(BrokerId(2), fetched(shell), 0, 1, 1000))
    clock.advance(1)
    assert shell.is_stopped
    assert "is damaged, and is stopped so that others lead" in caplog.text
    assert "please report this" not in caplog.text


def test_whoever_observes_sees_every_step(shell):
    seen = []
    shell._observer = SimpleNamespace(stepped=lambda *facts: seen.append(facts))
    shell.tell(TimePassed())
    assert seen == [(shell.partition, shell.core, TimePassed(), ())]


def test_a_start_that_is_there_already_holds_nothing_up(outbox, shell):
    message = BeginEpoch(shell.core.id, 1)
    carry_out(shell, AdvanceStart(0), Send(BrokerId(2), message))
    assert outbox.said == [("send", 2, shell.partition, message)]


def test_nothing_is_said_behind_a_stop_that_comes_in_between(outbox, partition, shell):
    partition.on_commit = shell.stop
    carry_out(shell, AdvanceHighWatermark(0), Send(BrokerId(2), BeginEpoch(shell.core.id, 1)))
    assert outbox.said == []


def test_a_start_that_waits_for_its_turn_is_refused_when_the_replica_stops(shell):
    carry_out(shell, Truncate(Position(0, 0)), Refuse("behind it"))
    moved = shell.move_start(0)
    shell.stop()
    for each in (moved, shell.move_start(0)):
        with pytest.raises(DiskFault, match="is stopped"):
            each.result()


def test_a_start_that_is_moved_by_somebody_who_is_told_stands_behind(partition, shell):
    moves = []
    partition.on_commit = lambda: moves.append(shell.move_start(0))
    carry_out(shell, AdvanceHighWatermark(0), Refuse("before it"))
    assert moves[0].is_done


def test_a_start_that_cannot_be_written_down_has_not_moved(clock, disk, shell, write):
    write()
    clock.advance(2 * UNAWAITED_FLUSH_MS)
    disk.capacity_bytes = 0
    moved = shell.move_start(1)
    clock.advance(5)
    with pytest.raises(DiskFault, match="full"):
        moved.result()
    assert (shell.log.start_offset, shell.is_stopped) == (0, False)
