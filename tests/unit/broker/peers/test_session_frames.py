"""Requests and responses of fetch sessions as frames, and what is refused of them."""

from __future__ import annotations

import pytest

from zurau.broker.peers import layouts
from zurau.broker.peers.decoding import decode_session
from zurau.broker.peers.encoding import encode_session
from zurau.epochs import EpochMark, Position
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    FetchRefused,
    HighWatermark,
    SnapshotPoint,
    Vote,
    VoteAnswer,
)
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.wire.peer.fields import encode_tagged
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

ONE, TWO, THREE = (ReplicaId(BrokerId(number), f"disk-{number}") for number in (1, 2, 3))
P0, P1 = (PartitionId(TopicId(b"t" * 16), number) for number in (0, 1))
BATCH = Batch(4, 100, 2, b"two records")
CHANGE = Batch(4, 102, 1, b"control", (ONE, TWO, THREE))


def arrived(pieces) -> memoryview:
    return memoryview(b"".join(pieces))[4:]


def there_and_back(it):
    return decode_session(arrived(encode_session(it)))


@pytest.mark.parametrize(
    "message",
    [
        Fetch(TWO, 4, 17, Position(3, 99), 98, broker_epoch=7, log_start=5, loaded=6),
        Fetched(ONE, 4, 17, 98, log_start=5),
        Fetched(ONE, 4, 17, 98, (EpochMark(4, 100), EpochMark(5, 103)), (BATCH, CHANGE)),
        Fetched(ONE, 4, 17, 98, diverging=Position(2, 50)),
        Fetched(ONE, 4, 17, 98, snapshot=SnapshotPoint(EpochMark(3, 70), (ONE, THREE))),
        FetchRefused(ONE, 4, 17, None),
        FetchRefused(ONE, 4, 17, ONE),
        HighWatermark(ONE, 4, 17, 99),
        Vote(TWO, 5, THREE, Position(4, 100), is_pre=True),
        VoteAnswer(ONE, 5, is_granted=True, is_pre=False),
        VoteAnswer(ONE, 5, is_granted=False, is_pre=True, leader=THREE),
        BeginEpoch(ONE, 5),
        EndEpoch(ONE, 5, (TWO, THREE)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_message_arrives_as_it_was_sent(message):
    request = SessionRequest(1, 2, ((P0, message), (P1, message)), server_session=3)
    assert there_and_back(request) == request


def test_messages_of_several_kinds_keep_their_order():
    high_watermark, begin = HighWatermark(ONE, 4, 17, 99), BeginEpoch(ONE, 4)
    response = SessionResponse(1, 2, ((P0, high_watermark), (P0, begin), (P1, high_watermark), (P1, begin)))
    assert there_and_back(response) == response


@pytest.mark.parametrize(
    "it",
    [
        SessionRequest(1, 1),
        SessionRequest(1, 2, closed=(P0, P1), server_session=0),
        SessionResponse(1, 1, is_unknown=True),
        SessionResponse((1 << 48) + 9, 1 << 40, closed=(P1,), server_session=1 << 48),
    ],
)
def test_what_a_session_says_beside_messages_arrives_too(it):
    assert there_and_back(it) == it


def test_the_records_of_a_batch_are_neither_copied_when_sent_nor_when_received():
    response = SessionResponse(1, 2, ((P0, Fetched(ONE, 4, 17, 98, (), (BATCH, CHANGE))),))
    pieces = encode_session(response)
    assert pieces[1] is BATCH.data
    frame = arrived(pieces)
    ((_, fetched),) = decode_session(frame).messages
    assert [batch.data.obj is frame.obj for batch in fetched.batches] == [True, True]


def test_a_batch_read_as_a_view_is_sent_like_any_other():
    batch = Batch(4, 100, 2, memoryview(b"xxtwo recordsxx")[2:-2])
    response = SessionResponse(1, 2, ((P0, Fetched(ONE, 4, 17, 98, (), (batch,))),))
    ((_, fetched),) = there_and_back(response).messages
    assert fetched.batches == (BATCH,)


def test_a_replica_is_named_once_however_often_it_speaks():
    def size(count: int) -> int:
        return len(encode_session(SessionResponse(1, 2, ((P0, HighWatermark(ONE, 4, 17, 99)),) * count))[0])

    assert size(101) - size(1) == 100 * layouts.HIGH_WATERMARK_ROW.size


def test_fields_that_a_later_version_adds_are_passed_over():
    request = SessionRequest(1, 2, ((P0, BeginEpoch(ONE, 5)),))
    head = bytes(decode_frame(arrived(encode_session(request)))[1]) + encode_tagged({9: b"new"})
    assert decode_session(arrived(encode_frame(Kind.SESSION_REQUEST, [head]))) == request


def header(replicas: int = 0, closed: int = 0, runs: int = 0) -> bytes:
    return layouts.SESSION.pack(1, 2, -1, 0, replicas, closed, runs)


def fetched_run(marks: int = 0, batches: int = 0, columns: bytes = b"") -> bytes:
    """One `Fetched` of a replica that is in the table."""
    row = layouts.FETCHED_ROW.pack(*P0, 0, 1, 1, 1, 0, marks, batches, 0)
    return layouts.RUN.pack(layouts.FETCHED, 1) + row + columns


REPLICA = layouts.REPLICA.pack(1, 0)


@pytest.mark.parametrize(
    ("head", "data", "reason"),
    [
        (b"", b"", "bytes expected"),
        (header(replicas=1 << 31), b"", "bytes expected"),
        (header(closed=1 << 31), b"", "bytes expected"),
        (header(runs=1 << 31), b"", "bytes expected"),
        (header(runs=1) + layouts.RUN.pack(99, 1), b"", "kind 99"),
        (header(runs=1) + layouts.RUN.pack(layouts.FETCH, 1 << 31), b"", "bytes expected"),
        (header(runs=1) + layouts.RUN.pack(layouts.BEGIN_EPOCH, 1) + bytes(28), b"", "not in the frame's table"),
        (header(), b"records", "7 bytes of records that belong to no batch"),
        (header(replicas=1, runs=1) + REPLICA + fetched_run(marks=1, columns=bytes(8)), b"", "rows count"),
        (header(replicas=1, runs=1) + REPLICA + fetched_run(batches=1, columns=bytes(8)), b"", "rows count"),
        (
            header(replicas=1, runs=1)
            + REPLICA
            + fetched_run(
                batches=1, columns=layouts.FETCHED_COLUMNS.pack(0, 1) + layouts.BATCH.pack(1, 0, 1, 9, False)
            ),
            b"records",
            "a batch of 9 bytes where 7 are left",
        ),
    ],
)
def test_what_is_malformed_is_refused_and_named(head, data, reason):
    with pytest.raises(ProtocolViolation, match=reason):
        decode_session(arrived(encode_frame(Kind.SESSION_RESPONSE, [head], [data])))


def test_a_frame_that_is_no_part_of_a_session_is_refused():
    with pytest.raises(ProtocolViolation, match="kind 2 where sessions talk"):
        decode_session(arrived(encode_frame(Kind.GOODBYE, [header()])))
