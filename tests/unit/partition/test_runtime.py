"""The runtime of a machine, with the smallest machine there is: one that counts what it was told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import CorruptData, Refused
from zurau.machines.machine import Decision, OffsetOf, StateRecord
from zurau.partition.runtime import MachineRuntime
from zurau.partition.snapshots import Snapshot
from zurau.pending import start
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.replica.core.roles import Role
from zurau.simulation.world import make_world
from zurau.wire.kafka.error_codes import ErrorCode

LOG = "t-0/00000000000000000000.log"


class Tally:
    """Counts words. Some commands are about the runtime rather than the word."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.deadline_ms: int | None = None
        self.is_loaded = False

    def decide(self, request_id, command, now_ms):
        if command == b"how many":
            return Decision(replies=[(request_id, len(self.words))])
        if command == b"no":
            return Decision(replies=[(request_id, Refused(ErrorCode.INVALID_REQUEST))])
        if command == b"where":
            return Decision([StateRecord(b"word", b"one"), StateRecord(b"word", b"two")], [(request_id, OffsetOf(1))])
        if command == b"later":
            self.deadline_ms, self.waiting = now_ms + 1000, request_id
            return Decision()
        effects = [command] if command.startswith(b"do ") else []
        return Decision([StateRecord(b"word", command)], [(request_id, command.upper())], effects)

    def apply(self, record, offset):
        self.words.append(record.value)

    def loaded(self, now_ms):
        self.is_loaded = True
        return Decision(effects=[word for word in self.words if word.startswith(b"do ")])

    def next_deadline_ms(self):
        return self.deadline_ms

    def time_passed(self, now_ms):
        self.deadline_ms = None
        return Decision([StateRecord(b"word", b"late")], [(self.waiting, now_ms)])


def elsewhere() -> Refused:
    return Refused(ErrorCode.NOT_COORDINATOR)


@pytest.fixture
def run(clock, disk):
    """Loads a machine on a partition that is led already."""

    def run(partition) -> MachineRuntime:
        runtime = MachineRuntime(partition, Tally, make_world(disk, clock), elsewhere)
        runtime.leadership_established()
        clock.advance(1)
        runtime.loaded.result()
        return runtime

    return run


@pytest.fixture
def runtime(partition, run) -> MachineRuntime:
    return run(partition)


def test_a_reply_comes_when_its_record_is_committed(runtime, clock):
    reply = runtime.submit(b"one")
    assert runtime.machine.words == [b"one"]
    assert not reply.is_done
    clock.advance(1)
    assert reply.result() == b"ONE"


def test_a_reply_without_records_waits_for_what_it_rests_on(runtime, clock):
    runtime.submit(b"one")
    count = runtime.submit(b"how many")
    assert not count.is_done
    clock.advance(1)
    assert count.result() == 1
    assert runtime.submit(b"how many").is_done


def test_a_reply_may_be_the_offset_of_a_record(runtime, clock):
    runtime.submit(b"one")
    where = runtime.submit(b"where")
    clock.advance(10)
    assert where.result() == 2


def test_a_refusal_is_raised_to_whoever_asked(runtime):
    with pytest.raises(Refused) as caught:
        runtime.submit(b"no").result()
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_what_cannot_be_written_is_not_applied_and_not_promised(runtime, disk):
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(Refused) as caught:
        runtime.submit(b"one").result()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert runtime.machine.words == []


def test_what_cannot_be_flushed_is_not_promised(runtime, clock, disk):
    disk.fail_flushes = True
    reply = runtime.submit(b"one")
    clock.advance(1)
    with pytest.raises(Refused):
        reply.result()


def test_a_deadline_is_kept_and_its_reply_waits_for_the_commit_too(runtime, clock):
    reply = runtime.submit(b"later")
    clock.advance(999)
    assert runtime.machine.words == []
    clock.advance(1)
    assert runtime.machine.words == [b"late"]
    assert not reply.is_done
    clock.advance(1)
    assert reply.is_done


def test_an_effect_is_released_when_what_it_rests_on_is_committed(runtime, clock):
    done = []
    runtime.on_effect = done.append
    runtime.submit(b"do it")
    assert done == []
    clock.advance(5)
    assert done == [b"do it"]


def test_an_effect_that_is_not_committed_is_left_to_the_next_leader(runtime, clock):
    done = []
    runtime.on_effect = done.append
    runtime.submit(b"do it")
    runtime.partition.role_changed(Role.FOLLOWER, 2, None)
    clock.advance(5)
    assert done == []


def test_what_the_leader_before_may_not_have_done_is_done_again(clock, disk, partition):
    runtime, done = MachineRuntime(partition, Tally, make_world(disk, clock), elsewhere), []
    runtime.on_effect = done.append
    partition.append_own(build_batch([NewRecord(b"word", b"do it", timestamp=0)]))
    runtime.leadership_established()
    clock.advance(5)
    assert done == [b"do it"]


def test_a_wall_clock_that_jumps_moves_no_deadline(runtime, clock):
    runtime.submit(b"later")
    clock.wall_error_ms = 10_000_000
    clock.advance(999)
    assert runtime.machine.words == []


def test_whoever_waits_when_the_runtime_closes_is_told(runtime, clock):
    waiting = runtime.submit(b"later")
    runtime.close(lambda: Refused(ErrorCode.NOT_COORDINATOR))
    with pytest.raises(Refused):
        waiting.result()
    clock.advance(5000)
    assert runtime.machine.words == []


@pytest.fixture
def reload(open_partition, run):
    """A second life on the same disk."""

    def reload(*, clean: bool) -> Tally:
        return run(open_partition(clean=clean)).machine

    return reload


def test_a_machine_is_what_its_log_says(runtime, clock, reload):
    for word in (b"one", b"two"):
        runtime.submit(word)
    clock.advance(5)
    runtime.partition.log.close()
    machine = reload(clean=True)
    assert (machine.words, machine.is_loaded) == ([b"one", b"two"], True)


def test_a_damaged_log_is_not_replayed(runtime, clock, disk, reload):
    runtime.submit(b"one")
    clock.advance(5)
    runtime.partition.log.close()
    disk.flip_bit(LOG, disk.read_file(LOG).index(b"one"))
    with pytest.raises(CorruptData, match=r"t-0 is damaged at offset 0 .* restore its directory"):
        reload(clean=True)


def test_what_one_decision_writes_is_split_into_batches_within_the_topics_limit(runtime, partition, clock):
    partition.settings_changed(replace(partition.log.settings, max_message_bytes=1000))
    records = [StateRecord(b"word", bytes(300)) for _ in range(7)]
    runtime._carry_out(Decision(records))
    stored = partition.log.read(0, 1 << 20, partition.log.end_offset, may_block=True)
    headers = [header for header, _ in iter_batches(stored)]
    assert [header.record_count for header in headers] == [2, 2, 2, 1]
    assert len(runtime.machine.words) == 7


def test_a_record_larger_than_the_limit_has_a_batch_of_its_own(runtime, partition, clock):
    partition.settings_changed(replace(partition.log.settings, max_message_bytes=1000))
    reply = runtime.submit(bytes(5000))
    runtime.submit(b"two")
    clock.advance(1)
    assert len(reply.result()) == 5000
    assert [len(word) for word in runtime.machine.words] == [5000, 3]


# Leaderships that come and go


def test_a_leadership_that_ends_while_it_loads_makes_no_machine(clock, disk, partition):
    runtime = MachineRuntime(partition, Tally, make_world(disk, clock), elsewhere)
    partition.append_own(build_batch([NewRecord(b"word", b"one", timestamp=0)]))
    runtime.leadership_established()
    runtime.leadership_lost()
    clock.advance(5)
    assert not runtime.is_loaded
    assert not runtime.loaded.is_done


def test_a_snapshot_that_takes_the_place_of_the_log_while_it_is_read_is_read_instead(clock, disk, partition):
    snapshot = Snapshot()
    runtime = MachineRuntime(partition, Tally, make_world(disk, clock), elsewhere, lambda: snapshot)
    for word in (b"one", b"two", b"three"):
        partition.append_own(build_batch([NewRecord(b"word", word * 50_000, timestamp=0)]))
    written = partition.wait_committed(3)
    clock.advance(5)
    written.result()
    moved = start(partition.move_start(2))
    runtime.leadership_established()
    assert not moved.is_done
    assert not runtime.loaded.is_done
    snapshot = Snapshot(2, [StateRecord(b"word", b"one and two")])
    clock.advance(5)
    runtime.loaded.result()
    assert runtime.machine.words == [b"one and two", b"three" * 50_000]


def test_damage_that_is_found_too_late_is_nobodys_business(clock, disk, partition):
    runtime = MachineRuntime(partition, Tally, make_world(disk, clock), elsewhere)
    for word in (b"one", b"two"):
        partition.append_own(build_batch([NewRecord(b"word", word * 50_000, timestamp=0)]))
    clock.advance(5)
    disk.flip_bit(LOG, disk.read_file(LOG).index(b"two"))
    runtime.leadership_established()
    runtime.leadership_lost()
    clock.advance(5)
    assert not runtime.loaded.is_done


def test_a_defect_in_a_machine_is_told_to_whoever_waits_for_it(clock, disk, partition):
    class Defective(Tally):
        def loaded(self, now_ms):
            raise ValueError("a defect")

    runtime = MachineRuntime(partition, Defective, make_world(disk, clock), elsewhere)
    partition.append_own(build_batch([NewRecord(b"word", b"one", timestamp=0)]))
    runtime.leadership_established()
    clock.advance(5)
    with pytest.raises(ValueError, match="a defect"):
        runtime.loaded.result()


def test_who_is_deposed_by_what_it_writes_tells_everybody_once(run, partition, monkeypatch):
    runtime = run(partition)
    written = partition.append_own

    def write_and_resign(batch):
        offset = written(batch)
        partition.role_changed(Role.FOLLOWER, partition.leader_epoch + 1, None)
        return offset

    monkeypatch.setattr(type(partition), "append_own", lambda _, batch: write_and_resign(batch))
    reply = runtime.submit(b"word")
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        reply.result()
    assert runtime.machine.words == []
