"""Records of another broker are stored only if they are the ones that it read."""

from __future__ import annotations

import pytest

from zurau.broker.peers.checking import check_records
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, TopicId
from zurau.records.builder import NewRecord, build_batch
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import Fetched, HighWatermark
from zurau.replica.session.messages import SessionResponse

LEADER = ReplicaId(BrokerId(1), "a")
P0 = PartitionId(TopicId(b"t" * 16), 0)


def stored(offset: int, epoch: int = 4) -> bytes:
    """A batch of two records."""
    records = [NewRecord(None, b"value", timestamp=0)] * 2
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))


def said(*runs: Batch) -> SessionResponse:
    return SessionResponse(1, 1, ((P0, HighWatermark(LEADER, 4, 1, 9)), (P0, Fetched(LEADER, 4, 1, 9, (), runs))))


@pytest.mark.parametrize(
    "run",
    [
        Batch(4, 10, 2, stored(10)),
        Batch(4, 10, 4, stored(10) + stored(12)),
        Batch(4, 10, 12, stored(10) + stored(20)),
        Batch(4, 10, 2, memoryview(bytearray(stored(10)))),
    ],
    ids=["one", "two", "a gap", "a view"],
)
def test_what_is_as_it_was_sent_is_accepted(run):
    check_records(said(run))


@pytest.mark.parametrize(
    "run",
    [
        Batch(4, 10, 2, stored(10).replace(b"value", b"other")),
        Batch(4, 10, 2, stored(10)[:-1]),
        Batch(4, 10, 2, stored(10)[:30]),
        Batch(4, 10, 2, b""),
        Batch(4, 10, 4, stored(10)),
        Batch(4, 9, 3, stored(10)),
        Batch(4, 10, 2, stored(10, epoch=5)),
        Batch(4, 10, 4, stored(10) + stored(12, epoch=5)),
        Batch(4, 10, 4, stored(10) + stored(11)),
        Batch(4, 10, 2, stored(10) + stored(12)),
    ],
    ids=["changed", "short", "header", "nothing", "few", "early", "epoch", "second-epoch", "overlap", "many"],
)
def test_what_is_not_as_it_was_sent_is_refused(run):
    with pytest.raises(ProtocolViolation, match="damaged on their way"):
        check_records(said(Batch(4, 0, 2, stored(0)), run))


@pytest.mark.parametrize("place", range(len(stored(10))))
def test_no_byte_of_a_batch_can_change_unnoticed(place):
    changed = bytearray(stored(10))
    changed[place] ^= 1
    with pytest.raises(ProtocolViolation):
        check_records(said(Batch(4, 10, 2, changed)))
