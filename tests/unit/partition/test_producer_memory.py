"""A bound on producers of all partitions together."""

from __future__ import annotations

import logging

import pytest

from zurau.partition.producer_memory import PRODUCER_BYTES, ProducerMemory
from zurau.partition.producers import Producers
from zurau.records.batch import parse_header
from zurau.records.builder import NewRecord, build_batch

MAX = 100


class Partitions:
    """Some partitions whose producers are counted together."""

    def __init__(self, count: int) -> None:
        self.all = [Producers() for _ in range(count)]
        self.memory = ProducerMemory(MAX * PRODUCER_BYTES, lambda: self.all)
        for producers in self.all:
            producers.tell_of_new(self.memory.added)

    def write(self, partition: int, *producer_ids: int) -> None:
        for producer_id in producer_ids:
            batch = build_batch([NewRecord(None, b"", timestamp=1)], producer_id=producer_id, base_sequence=0)
            self.all[partition].written(parse_header(batch), now_ms=1)

    @property
    def counts(self) -> list[int]:
        return [len(producers) for producers in self.all]


def test_as_many_as_are_allowed_are_kept():
    partitions = Partitions(2)
    partitions.write(0, *range(MAX // 2))
    partitions.write(1, *range(MAX // 2))
    assert partitions.counts == [MAX // 2, MAX // 2]


def test_one_more_makes_the_partition_with_most_forget_those_that_were_silent_longest(caplog):
    partitions = Partitions(3)
    partitions.write(0, *range(20))
    partitions.write(1, *range(MAX - 20))
    with caplog.at_level(logging.WARNING):
        partitions.write(2, 7)
    assert partitions.counts == [20, 76, 1]
    assert 3 not in partitions.all[1]
    assert 4 in partitions.all[1]
    assert "4 producers that were silent longest are forgotten" in caplog.text


def test_many_that_invent_ids_share_what_those_with_few_leave_them():
    partitions = Partitions(12)
    partitions.write(0, 1, 2, 3)
    for producer_id in range(1000):
        for partition in range(1, 12):
            partitions.write(partition, producer_id)
    assert partitions.counts[0] == 3
    assert sum(partitions.counts) <= MAX
    assert min(partitions.counts[1:]) >= 8


def test_the_one_that_wrote_last_is_never_forgotten():
    partitions = Partitions(2 * MAX)
    for partition in range(2 * MAX):
        partitions.write(partition, 1, 2)
        assert 2 in partitions.all[partition]
    assert set(partitions.counts) <= {1, 2}


def test_who_was_forgotten_meanwhile_makes_room(monkeypatch):
    partitions = Partitions(2)
    partitions.write(0, *range(MAX))
    partitions.all[0].expire(older_than_ms=2)
    monkeypatch.setattr(Producers, "keep", lambda *_: pytest.fail("there is room"))
    partitions.memory.added(1)
    partitions.memory.added(MAX - 1)


def test_what_a_start_finds_counts_too():
    partitions = Partitions(1)
    partitions.write(0, *range(MAX))
    restored = Producers()
    restored.restore(partitions.all[0].snapshot(0)())
    partitions.all.append(restored)
    restored.tell_of_new(partitions.memory.added)
    assert sum(partitions.counts) <= MAX
