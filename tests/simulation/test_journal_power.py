"""Power that fails between any two operations of the disk: the journal never says more than is true.

One short life of a broker is lived once to count what it does to its disk, and then again and again, each time with
power failing one operation later. After each failure nothing that was acknowledged is lost, no log is called damaged
(the disk lost nothing that it had promised to keep), and neither is the journal.
"""

from __future__ import annotations

from itertools import product

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.errors import ZurauError
from zurau.journal import frames, journal
from zurau.log.settings import LogSettings
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode

SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100)
#: More than this is seldom done in one life; the last failures come after its end.
OPERATIONS = 420


class Life:
    """One broker that creates a topic, writes to it, stops, starts, and writes again."""

    def __init__(self, seed: int, operations: int) -> None:
        self.acknowledged: list[bytes] = []
        self.broker = SimulatedBroker(seed, SETTINGS, BrokerSettings(offsets_topic_num_partitions=1))
        self.client = SimulatedClient(self.broker)
        self.broker.disk.fail_power_after(operations)

    def live(self) -> None:
        self.client.create_topic("t")
        for number in range(6):
            self.write(b"%d" % number)
        self.broker.stop()
        self.broker.start()
        for number in range(6, 12):
            self.write(b"%d" % number)

    def write(self, value: bytes) -> None:
        """With acks=all; and one record before it for which nobody waits, so that its flush is put off."""
        self.client.produce_later("t", self.client.batch(b"unawaited"), acks=1)
        self.broker.clock.advance(3)

        def answered(answer: Pending) -> None:
            result = answer.result().responses[0].partition_responses[0]
            if result.error_code == ErrorCode.NONE and self.broker.disk.has_power:
                self.acknowledged.append(value)

        self.client.produce_later("t", self.client.batch(value)).then(answered)
        self.broker.clock.advance(10)

    def come_back(self) -> None:
        self.broker.lose_power()
        self.broker.start()
        broker = self.broker.broker
        damage = [one for partition in broker.partitions.values() for one in partition.log.damage]
        assert damage == []
        assert broker.journal.damage == []
        stored = self.client.read("t") if "t" in broker.image.topics else []
        assert [value for value in stored if value in self.acknowledged] == self.acknowledged


def fail_everywhere(seeds: range, step: int = 4) -> None:
    for seed, operations in product(seeds, range(OPERATIONS)):
        if (operations - seed) % step:
            continue
        life = Life(seed, operations)
        try:
            life.live()
        except (ZurauError, TimeoutError):
            assert not life.broker.disk.has_power
        life.come_back()
        life.write(b"after")
        life.broker.disk.fail_power_after(seed % 7)
        life.come_back()


@pytest.fixture(autouse=True)
def _write_at_once(monkeypatch):
    """A journal that is in a hurry comes between more operations."""
    monkeypatch.setattr(journal, "WRITE_AFTER_MS", 0)
    monkeypatch.setattr(journal, "REWRITE_BYTES", 300)


@pytest.mark.parametrize("seed", range(4))
def test_power_may_fail_between_any_two_operations(seed):
    fail_everywhere(range(seed, seed + 1))


def test_one_life_takes_fewer_operations_than_are_tried():
    life = Life(1, 1 << 30)
    begun = life.broker.disk.operation_count
    life.live()
    assert life.broker.disk.operation_count - begun < OPERATIONS
    assert len(life.acknowledged) == 12


# Bugs put in on purpose: what is above must find them


def noted_when_written_instead_of_flushed(monkeypatch) -> None:
    write = Partition._write

    def write_and_note(self, batch, header):
        write(self, batch, header)
        self.shell._notes.flushed(self.log.position)

    monkeypatch.setattr(Partition, "_write", write_and_note)


def an_end_that_is_not_checked(monkeypatch) -> None:
    def believe(content: bytes, position: int) -> bytes | None:
        start = position + frames._HEADER.size
        return content[start : start + int.from_bytes(content[position + 4 : position + 8])]

    monkeypatch.setattr(frames, "_payload_at", believe)


def a_start_that_is_not_noted(monkeypatch) -> None:
    monkeypatch.setattr(journal.Journal, "begin", lambda _: None)


@pytest.mark.parametrize(
    "plant", [noted_when_written_instead_of_flushed, an_end_that_is_not_checked, a_start_that_is_not_noted]
)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    with pytest.raises((AssertionError, ZurauError)):
        fail_everywhere(range(8))
