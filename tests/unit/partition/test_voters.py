"""Changes of voters as control batches."""

from __future__ import annotations

import struct

import pytest

from zurau.errors import CorruptData
from zurau.ids import BrokerId
from zurau.partition.runs import split_runs
from zurau.partition.voters import encode_voters
from zurau.records.builder import NewRecord, build_batch
from zurau.replica.core.identity import ReplicaId

VOTERS = (ReplicaId(BrokerId(1), "a"), ReplicaId(BrokerId(2), "b"))
VOTERS_KEY = struct.pack(">hh", 0, 6)


def control(key: bytes | None, value: bytes) -> bytearray:
    return build_batch([NewRecord(key, value, timestamp=0)], is_control=True)


def test_voters_come_back_as_they_were_written():
    (run,) = split_runs(encode_voters(VOTERS, now_ms=0))
    assert run.voters == VOTERS


@pytest.mark.parametrize("key", [None, struct.pack(">hh", 0, 1)], ids=["no key", "another type"])
def test_other_control_records_change_no_voters(key):
    (run,) = split_runs(control(key, b"a marker"))
    assert run.voters is None


def test_voters_that_cannot_be_read_are_damage_and_not_guessed_at():
    with pytest.raises(CorruptData, match="a record of voters cannot be read"):
        split_runs(control(VOTERS_KEY, b"nobody"))
