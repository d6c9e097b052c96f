from __future__ import annotations

import pytest

from zurau.errors import CorruptData, Refused
from zurau.machines.controller.commands import AllocateProducerIds
from zurau.machines.controller.records import ProducerIdsAllocated, decode_record, encode_record
from zurau.machines.machine import StateRecord
from zurau.wire.kafka.error_codes import ErrorCode


def test_blocks_of_producer_ids_never_overlap(cluster):
    assert cluster.ask(AllocateProducerIds(1000)) == (0, 1000)
    assert cluster.ask(AllocateProducerIds(10)) == (1000, 1010)


@pytest.mark.parametrize("count", [0, -1, 2**63])
def test_impossible_blocks_of_producer_ids_are_refused(cluster, count):
    with pytest.raises(Refused) as caught:
        cluster.ask(AllocateProducerIds(count))
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_record_comes_back_as_it_was_written():
    record = ProducerIdsAllocated(next_producer_id=2**40)
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\0", b"\0\x63\0\0", b"\0\6\0\1" + bytes(9), b"\0\6\0\0\1", b"\0\6\0\0" + bytes(20)],
    ids=["null", "empty", "cut", "unknown type", "unknown version", "cut body", "too long"],
)
def test_a_record_that_cannot_be_read_stops_the_replay(value):
    with pytest.raises(CorruptData):
        decode_record(StateRecord(None, value))
