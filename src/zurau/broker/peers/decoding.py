"""Requests and responses of fetch sessions, from frames. `layouts.py` says how they are made up.

Whatever is wrong with a frame is a `ProtocolViolation`. Only its form is judged: what a message means is judged by the
replica that it is for. The records of a batch are a view of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from zurau.broker.peers import layouts
from zurau.epochs import EpochMark, Position
from zurau.errors import ProtocolViolation
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import Voters
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
from zurau.replica.session.messages import Addressed, SessionRequest, SessionResponse
from zurau.wire.peer.fields import Fields
from zurau.wire.peer.frames import Kind, decode_frame


def decode_session(frame: memoryview) -> SessionRequest | SessionResponse:
    """What is said in a frame without its size."""
    kind, head, data = decode_frame(frame)
    if kind not in (Kind.SESSION_REQUEST, Kind.SESSION_RESPONSE):
        raise ProtocolViolation(f"a frame of kind {kind} where sessions talk")
    fields = Fields(head)
    session, number, server_session, flags, replica_count, closed_count, run_count = fields.take(layouts.SESSION)
    said = _Said(fields, data, replica_count)
    closed = tuple(map(PartitionId._make, fields.rows(layouts.PARTITION, closed_count)))
    messages: list[Addressed] = []
    try:
        for _ in range(run_count):
            code, count = fields.take(layouts.RUN)
            if code not in _DECODERS:
                raise ProtocolViolation(f"messages of kind {code}, which is not known here")
            messages += _DECODERS[code](said, count)
    except IndexError as error:
        raise ProtocolViolation("a replica is named that is not in the frame's table") from error
    if said.data_position != len(data):
        raise ProtocolViolation(f"{len(data) - said.data_position} bytes of records that belong to no batch")
    fields.tagged()
    known_session = None if server_session < 0 else server_session
    if kind == Kind.SESSION_REQUEST:
        return SessionRequest(session, number, tuple(messages), closed, known_session)
    return SessionResponse(session, number, tuple(messages), closed, bool(flags & layouts.IS_UNKNOWN), known_session)


class _Said:
    """What is left of a frame, and the replicas that it names."""

    __slots__ = ("_data", "data_position", "fields", "or_none", "replicas")

    def __init__(self, fields: Fields, data: memoryview, replica_count: int) -> None:
        self.fields = fields
        self._data = data
        self.data_position = 0
        self.replicas: list[ReplicaId] = []
        for _ in range(replica_count):
            broker, length = fields.take(layouts.REPLICA)
            self.replicas.append(ReplicaId(broker, fields.text_of(length)))
        self.or_none: list[ReplicaId | None] = [None, *self.replicas]

    def column(self, count: int) -> Voters:
        replicas = self.replicas
        return tuple([replicas[place] for (place,) in self.fields.rows(layouts.PLACE, count)])

    def voters(self) -> Voters:
        return self.column(*self.fields.take(layouts.PLACE))

    def records(self, length: int) -> memoryview:
        begin, end = self.data_position, self.data_position + length
        if end > len(self._data):
            raise ProtocolViolation(f"a batch of {length} bytes where {len(self._data) - begin} are left of a frame")
        self.data_position = end
        return self._data[begin:end]


def _decode_fetches(said: _Said, count: int) -> Iterator[Addressed]:
    replicas = said.replicas
    for row in said.fields.rows(layouts.FETCH_ROW, count):
        topic, number, sender, epoch, fetch_id, at_epoch, at_offset, high_watermark, broker_epoch, start, loaded = row
        yield (
            PartitionId(topic, number),
            Fetch(
                replicas[sender],
                epoch,
                fetch_id,
                Position(at_epoch, at_offset),
                high_watermark,
                broker_epoch,
                start,
                loaded,
            ),
        )


def _decode_fetched(said: _Said, count: int) -> Iterator[Addressed]:
    fields, replicas = said.fields, said.replicas
    rows = fields.rows(layouts.FETCHED_ROW, count)
    mark_count, batch_count = fields.take(layouts.FETCHED_COLUMNS)
    all_marks = tuple(map(EpochMark._make, fields.rows(layouts.MARK, mark_count)))
    all_batches = _batches(said, batch_count)
    marks_end = batches_end = 0
    for topic, number, sender, epoch, fetch_id, high_watermark, start, marks, batches, flags in rows:
        marks_begin, marks_end = marks_end, marks_end + marks
        batches_begin, batches_end = batches_end, batches_end + batches
        yield (
            PartitionId(topic, number),
            Fetched(
                replicas[sender],
                epoch,
                fetch_id,
                high_watermark,
                all_marks[marks_begin:marks_end],
                all_batches[batches_begin:batches_end],
                Position(*fields.take(layouts.MARK)) if flags & layouts.DIVERGES else None,
                _snapshot(said) if flags & layouts.HAS_SNAPSHOT else None,
                start,
            ),
        )
    if marks_end != mark_count or batches_end != batch_count:
        raise ProtocolViolation("the marks or batches of a frame are not those that its rows count")


def _batches(said: _Said, count: int) -> tuple[Batch, ...]:
    rows = said.fields.rows(layouts.BATCH, count)
    return tuple(
        [
            Batch(epoch, base_offset, offsets, said.records(length), said.voters() if changes_voters else None)
            for epoch, base_offset, offsets, length, changes_voters in rows
        ]
    )


def _snapshot(said: _Said) -> SnapshotPoint:
    return SnapshotPoint(EpochMark(*said.fields.take(layouts.MARK)), said.voters())


def _decode_refused(said: _Said, count: int) -> Iterator[Addressed]:
    for topic, number, sender, epoch, fetch_id, leader in said.fields.rows(layouts.REFUSED_ROW, count):
        yield PartitionId(topic, number), FetchRefused(said.replicas[sender], epoch, fetch_id, said.or_none[leader])


def _decode_high_watermarks(said: _Said, count: int) -> Iterator[Addressed]:
    replicas = said.replicas
    for topic, number, sender, epoch, fetch_id, offset in said.fields.rows(layouts.HIGH_WATERMARK_ROW, count):
        yield PartitionId(topic, number), HighWatermark(replicas[sender], epoch, fetch_id, offset)


def _decode_votes(said: _Said, count: int) -> Iterator[Addressed]:
    for topic, number, sender, epoch, voter, at_epoch, at_offset, is_pre in said.fields.rows(layouts.VOTE_ROW, count):
        position = Position(at_epoch, at_offset)
        yield PartitionId(topic, number), Vote(said.replicas[sender], epoch, said.replicas[voter], position, is_pre)


def _decode_vote_answers(said: _Said, count: int) -> Iterator[Addressed]:
    for topic, number, sender, epoch, is_granted, is_pre, leader in said.fields.rows(layouts.VOTE_ANSWER_ROW, count):
        answer = VoteAnswer(said.replicas[sender], epoch, is_granted, is_pre, said.or_none[leader])
        yield PartitionId(topic, number), answer


def _decode_begin_epochs(said: _Said, count: int) -> Iterator[Addressed]:
    for topic, number, sender, epoch in said.fields.rows(layouts.BEGIN_EPOCH_ROW, count):
        yield PartitionId(topic, number), BeginEpoch(said.replicas[sender], epoch)


def _decode_end_epochs(said: _Said, count: int) -> Iterator[Addressed]:
    for topic, number, sender, epoch, successors in list(said.fields.rows(layouts.END_EPOCH_ROW, count)):
        yield PartitionId(topic, number), EndEpoch(said.replicas[sender], epoch, said.column(successors))


_DECODERS: dict[int, Callable[[_Said, int], Iterator[Addressed]]] = {
    layouts.FETCH: _decode_fetches,
    layouts.FETCHED: _decode_fetched,
    layouts.REFUSED: _decode_refused,
    layouts.HIGH_WATERMARK: _decode_high_watermarks,
    layouts.VOTE: _decode_votes,
    layouts.VOTE_ANSWER: _decode_vote_answers,
    layouts.BEGIN_EPOCH: _decode_begin_epochs,
    layouts.END_EPOCH: _decode_end_epochs,
}
