"""Requests and responses of fetch sessions, as frames. `layouts.py` says how they are made up.

Record batches are handed on as they are: a frame is a list of pieces, the first of which is everything but the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from zurau.broker.peers import layouts
from zurau.ports import Buffer
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.membership import Voters
from zurau.replica.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    FetchRefused,
    HighWatermark,
    Vote,
    VoteAnswer,
)
from zurau.replica.session.messages import Addressed, SessionRequest, SessionResponse
from zurau.wire.peer.frames import Kind, encode_frame


def encode_session(it: SessionRequest | SessionResponse) -> list[Buffer]:
    """The frame with its size, in pieces."""
    replicas, data = _Places(), list[Buffer]()
    runs: list[bytes] = []
    run_count = 0
    for kind, run in groupby(it.messages, key=_type_of):
        code, encode = _ENCODERS[kind]
        messages = list(run)
        runs.append(layouts.RUN.pack(code, len(messages)))
        encode(messages, replicas, runs, data)
        run_count += 1
    is_response = isinstance(it, SessionResponse)
    header = layouts.SESSION.pack(
        it.session,
        it.number,
        -1 if it.server_session is None else it.server_session,
        layouts.IS_UNKNOWN if isinstance(it, SessionResponse) and it.is_unknown else 0,
        len(replicas),
        len(it.closed),
        run_count,
    )
    names = [_name(replica) for replica in replicas]
    closed = [layouts.PARTITION.pack(*partition) for partition in it.closed]
    return encode_frame(
        Kind.SESSION_RESPONSE if is_response else Kind.SESSION_REQUEST, [header, *names, *closed, *runs], data
    )


def _name(replica: ReplicaId) -> bytes:
    directory = replica.directory.encode()
    return layouts.REPLICA.pack(replica.broker, len(directory)) + directory


class _Places(dict[ReplicaId, int]):
    """The table of replicas; whoever is asked for is in it."""

    def __missing__(self, replica: ReplicaId) -> int:
        place = self[replica] = len(self)
        return place

    def or_none(self, replica: ReplicaId | None) -> int:
        return 0 if replica is None else self[replica] + 1

    def counted(self, replicas: Voters) -> bytes:
        return layouts.PLACE.pack(len(replicas)) + self.column(replicas)

    def column(self, replicas: Voters) -> bytes:
        return b"".join([layouts.PLACE.pack(self[replica]) for replica in replicas])


def _type_of(addressed: Addressed) -> type:
    return type(addressed[1])


Run = Sequence[tuple[Any, Any]]
Encoder = Callable[[Run, _Places, list[bytes], list[Buffer]], None]


def _encode_fetches(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    pack = layouts.FETCH_ROW.pack
    head += [
        pack(
            *partition,
            replicas[it.sender],
            it.epoch,
            it.fetch_id,
            *it.position,
            it.high_watermark,
            it.broker_epoch,
            it.log_start,
            it.loaded,
        )
        for partition, it in run
    ]


def _encode_fetched(run: Run, replicas: _Places, head: list[bytes], data: list[Buffer]) -> None:
    pack, pack_mark, pack_batch = layouts.FETCHED_ROW.pack, layouts.MARK.pack, layouts.BATCH.pack
    marks: list[bytes] = []
    batches: list[bytes] = []
    voters: list[bytes] = []
    corrections: list[bytes] = []
    for partition, it in run:
        flags = 0
        marks += [pack_mark(*mark) for mark in it.marks]
        for batch in it.batches:
            records, changed = batch.data, batch.voters
            batches.append(pack_batch(batch.epoch, batch.base_offset, batch.count, len(records), changed is not None))
            data.append(records)
            if changed is not None:
                voters.append(replicas.counted(changed))
        if it.diverging is not None:
            flags |= layouts.DIVERGES
            corrections.append(pack_mark(*it.diverging))
        if it.snapshot is not None:
            flags |= layouts.HAS_SNAPSHOT
            corrections += (pack_mark(*it.snapshot.mark), replicas.counted(it.snapshot.voters))
        head.append(
            pack(
                *partition,
                replicas[it.sender],
                it.epoch,
                it.fetch_id,
                it.high_watermark,
                it.log_start,
                len(it.marks),
                len(it.batches),
                flags,
            )
        )
    head.append(layouts.FETCHED_COLUMNS.pack(len(marks), len(batches)))
    head += marks + batches + voters + corrections


def _encode_refused(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    head += [
        layouts.REFUSED_ROW.pack(*partition, replicas[it.sender], it.epoch, it.fetch_id, replicas.or_none(it.leader))
        for partition, it in run
    ]


def _encode_high_watermarks(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    pack = layouts.HIGH_WATERMARK_ROW.pack
    head += [pack(*partition, replicas[it.sender], it.epoch, it.fetch_id, it.high_watermark) for partition, it in run]


def _encode_votes(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    head += [
        layouts.VOTE_ROW.pack(*partition, replicas[it.sender], it.epoch, replicas[it.voter], *it.position, it.is_pre)
        for partition, it in run
    ]


def _encode_vote_answers(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    head += [
        layouts.VOTE_ANSWER_ROW.pack(
            *partition, replicas[it.sender], it.epoch, it.is_granted, it.is_pre, replicas.or_none(it.leader)
        )
        for partition, it in run
    ]


def _encode_begin_epochs(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    head += [layouts.BEGIN_EPOCH_ROW.pack(*partition, replicas[it.sender], it.epoch) for partition, it in run]


def _encode_end_epochs(run: Run, replicas: _Places, head: list[bytes], _: list[Buffer]) -> None:
    head += [
        layouts.END_EPOCH_ROW.pack(*partition, replicas[it.sender], it.epoch, len(it.successors))
        for partition, it in run
    ]
    head += [replicas.column(it.successors) for _, it in run]


_ENCODERS: dict[type, tuple[int, Encoder]] = {
    Fetch: (layouts.FETCH, _encode_fetches),
    Fetched: (layouts.FETCHED, _encode_fetched),
    FetchRefused: (layouts.REFUSED, _encode_refused),
    HighWatermark: (layouts.HIGH_WATERMARK, _encode_high_watermarks),
    Vote: (layouts.VOTE, _encode_votes),
    VoteAnswer: (layouts.VOTE_ANSWER, _encode_vote_answers),
    BeginEpoch: (layouts.BEGIN_EPOCH, _encode_begin_epochs),
    EndEpoch: (layouts.END_EPOCH, _encode_end_epochs),
}
