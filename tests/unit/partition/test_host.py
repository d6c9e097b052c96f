"""The host of a machine, with the smallest machine there is: one that counts what it was told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import CorruptData, Refused
from zurau.machines.machine import Decision, StateRecord
from zurau.partition.host import MachineHost
from zurau.records.batch import iter_batches
from zurau.wire.kafka.error_codes import ErrorCode

LOG = "t-0/00000000000000000000.log"


class Tally:
    """Counts words. Some commands are about the host rather than the word."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.deadline_ms: int | None = None
        self.is_loaded = False

    def decide(self, ticket, command, now_ms):
        if command == b"how many":
            return Decision(replies=[(ticket, len(self.words))])
        if command == b"no":
            return Decision(replies=[(ticket, Refused(ErrorCode.INVALID_REQUEST))])
        if command == b"later":
            self.deadline_ms, self.waiting = now_ms + 1000, ticket
            return Decision()
        return Decision([StateRecord(b"word", command)], [(ticket, command.upper())])

    def apply(self, record):
        self.words.append(record.value)

    def loaded(self, now_ms):
        self.is_loaded = True

    def next_deadline_ms(self):
        return self.deadline_ms

    def time_passed(self, now_ms):
        self.deadline_ms = None
        return Decision([StateRecord(b"word", b"late")], [(self.waiting, now_ms)])


@pytest.fixture
def host(partition, clock) -> MachineHost:
    host = MachineHost(partition, Tally(), clock)
    host.load()
    return host


def test_a_reply_comes_when_its_record_is_committed(host, clock):
    reply = host.ask(b"one")
    assert host.machine.words == [b"one"]
    assert not reply.is_done
    clock.advance(1)
    assert reply.result() == b"ONE"


def test_a_reply_without_records_waits_for_what_it_rests_on(host, clock):
    host.ask(b"one")
    count = host.ask(b"how many")
    assert not count.is_done
    clock.advance(1)
    assert count.result() == 1
    assert host.ask(b"how many").is_done


def test_a_refusal_is_raised_to_whoever_asked(host):
    with pytest.raises(Refused) as caught:
        host.ask(b"no").result()
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_what_cannot_be_written_is_not_applied_and_not_promised(host, disk):
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(Refused) as caught:
        host.ask(b"one").result()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert host.machine.words == []


def test_what_cannot_be_flushed_is_not_promised(host, clock, disk):
    disk.fail_flushes = True
    reply = host.ask(b"one")
    clock.advance(1)
    with pytest.raises(Refused):
        reply.result()


def test_a_deadline_is_kept_and_its_reply_waits_for_the_commit_too(host, clock):
    reply = host.ask(b"later")
    clock.advance(999)
    assert host.machine.words == []
    clock.advance(1)
    assert host.machine.words == [b"late"]
    assert not reply.is_done
    clock.advance(1)
    assert reply.is_done


def test_a_wall_clock_that_jumps_moves_no_deadline(host, clock):
    host.ask(b"later")
    clock.wall_error_ms = 10_000_000
    clock.advance(999)
    assert host.machine.words == []


def test_whoever_waits_when_the_host_closes_is_told(host, clock):
    waiting = host.ask(b"later")
    host.close(lambda: Refused(ErrorCode.NOT_COORDINATOR))
    with pytest.raises(Refused):
        waiting.result()
    clock.advance(5000)
    assert host.machine.words == []


@pytest.fixture
def reload(open_partition, clock):
    """A second life on the same disk."""

    def reload(*, clean: bool) -> Tally:
        machine = Tally()
        MachineHost(open_partition(clean=clean), machine, clock).load()
        return machine

    return reload


def test_a_machine_is_what_its_log_says(host, clock, reload):
    for word in (b"one", b"two"):
        host.ask(word)
    clock.advance(5)
    host.partition.log.close()
    machine = reload(clean=True)
    assert (machine.words, machine.is_loaded) == ([b"one", b"two"], True)


def test_a_damaged_log_is_not_replayed(host, clock, disk, reload):
    host.ask(b"one")
    clock.advance(5)
    host.partition.log.close()
    disk.flip_bit(LOG, disk.read_file(LOG).index(b"one"))
    with pytest.raises(CorruptData, match=r"t-0 is damaged at offset 0 .* restore its directory"):
        reload(clean=True)


def test_what_one_decision_writes_is_split_into_batches_within_the_topics_limit(host, partition, clock):
    partition.settings_changed(replace(partition.log.settings, max_message_bytes=1000))
    records = [StateRecord(b"word", bytes(300)) for _ in range(7)]
    host._carry_out(Decision(records))
    stored = partition.log.read(0, 1 << 20, partition.log.end_offset, may_block=True)
    headers = [header for header, _ in iter_batches(stored)]
    assert [header.record_count for header in headers] == [2, 2, 2, 1]
    assert len(host.machine.words) == 7


def test_a_record_larger_than_the_limit_has_a_batch_of_its_own(host, partition, clock):
    partition.settings_changed(replace(partition.log.settings, max_message_bytes=1000))
    reply = host.ask(bytes(5000))
    host.ask(b"two")
    clock.advance(1)
    assert len(reply.result()) == 5000
    assert [len(word) for word in host.machine.words] == [5000, 3]
