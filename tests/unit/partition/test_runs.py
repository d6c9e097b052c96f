"""Stored batches in runs, as followers fetch them."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.ids import BrokerId
from zurau.partition.runs import batches_of, split_runs
from zurau.partition.voters import encode_voters
from zurau.records.batch import stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.replica.core.identity import ReplicaId

VOTERS = (ReplicaId(BrokerId(1), "a"), ReplicaId(BrokerId(2), "b"))


def stored(base_offset: int, epoch: int, count: int = 2) -> bytes:
    records = [NewRecord(None, b"x", timestamp=1)] * count
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=epoch))


def change_of_voters(base_offset: int, epoch: int) -> bytes:
    batch = encode_voters(VOTERS, 1)
    stamp(batch, base_offset, epoch)
    return bytes(batch)


def test_batches_of_one_epoch_are_one_run():
    (run,) = split_runs(stored(0, 3) + stored(2, 3))
    assert (run.epoch, run.base_offset, run.count, run.voters) == (3, 0, 4, None)
    assert [header.base_offset for header, _ in batches_of(run)] == [0, 2]


def test_another_epoch_begins_another_run():
    runs = split_runs(stored(0, 3) + stored(2, 3) + stored(4, 5))
    assert [(run.epoch, run.base_offset, run.count) for run in runs] == [(3, 0, 4), (5, 4, 2)]


def test_a_change_of_voters_stands_by_itself():
    runs = split_runs(stored(0, 3) + change_of_voters(2, 3) + stored(3, 3))
    assert [(run.base_offset, run.count, run.voters) for run in runs] == [(0, 2, None), (2, 1, VOTERS), (3, 2, None)]


def test_nothing_is_no_run():
    assert split_runs(b"") == ()


def test_damage_is_not_passed_on():
    damaged = bytearray(stored(0, 3))
    damaged[-1] ^= 1
    with pytest.raises(CorruptData, match="offset 0 does not match its checksum"):
        split_runs(damaged)
