"""What a journal can say: one type for each thing, and what all of them together amount to.

A frame holds a list of these as msgpack. A release that finds a type it does not know takes the frame as unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from zurau.epochs import NO_EPOCH, EpochMark, Position
from zurau.errors import CorruptData
from zurau.ids import BrokerId, Epoch, Offset, TopicId
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.membership import VoterChange


class LogId(NamedTuple):
    """A log by its topic's id: a topic that is created anew under an old name has other logs."""

    topic_id: TopicId
    partition: int


#: Logs with an offset each, in the form that is quick to write.
LogOffsets = list[tuple[bytes, int, int]]
_Replica = tuple[int, str]


class Started(msgspec.Struct, array_like=True, tag="started"):
    """The broker started for the `count`th time. Logs that were closed before are open again."""

    count: int


class Recovered(msgspec.Struct, array_like=True, tag="recovered"):
    """On this boot of the machine every log was opened and found to be in order, or mended; except some."""

    boot_id: str
    excepted: list[tuple[bytes, int]]


class Flushed(msgspec.Struct, array_like=True, tag="flushed"):
    """Everything below these offsets is safe. As releases said it whose logs had no epoch marks."""

    logs: LogOffsets


class Positions(msgspec.Struct, array_like=True, tag="positions"):
    """Topic id and partition; the epoch and the offset up to which all is flushed; the high watermark."""

    logs: list[tuple[bytes, int, int, int, int]]


class ReplicaSaid(msgspec.Struct, array_like=True, tag="replica"):
    """What a replica has promised, and what of its log is not in the log's own files. Replaces what was said before."""

    topic_id: bytes
    partition: int
    #: The name of its directory, if it is not the broker's own.
    directory: str
    epoch: int
    voted_for: _Replica | None
    #: Offsets at which the voters changed; the first ones, which no record names, at -1.
    voters: list[tuple[int, list[_Replica]]]
    #: Epoch marks that the log's file does not have yet.
    marks: list[tuple[int, int]]


class Closed(msgspec.Struct, array_like=True, tag="closed"):
    """The broker stopped, and left these logs in good order, ending at these offsets."""

    logs: LogOffsets


Record = Started | Recovered | Flushed | Positions | ReplicaSaid | Closed

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])


def encode_records(records: Iterable[Record]) -> bytes:
    return _encoder.encode(list(records))


def decode_records(payload: bytes) -> list[Record]:
    """Raises `CorruptData` for what this release cannot read."""
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a record of the journal cannot be read: {error}") from error


NOWHERE = Position(NO_EPOCH, 0)


class ReplicaFacts(msgspec.Struct):
    """What is known of one log and its replica."""

    flushed: Position = NOWHERE
    high_watermark: Offset = 0
    directory: str = ""
    epoch: Epoch = NO_EPOCH
    voted_for: ReplicaId | None = None
    voters: tuple[VoterChange, ...] = ()
    marks: tuple[EpochMark, ...] = ()

    @property
    def has_promised(self) -> bool:
        return bool(self.directory or self.epoch != NO_EPOCH or self.voters or self.marks)

    def said(self, name: LogId) -> ReplicaSaid:
        return ReplicaSaid(
            *name,
            self.directory,
            self.epoch,
            self.voted_for,
            [(change.offset, [*change.voters]) for change in self.voters],
            [*self.marks],
        )

    def hear(self, said: ReplicaSaid) -> None:
        self.directory, self.epoch = said.directory, said.epoch
        self.voted_for = _replica_id(said.voted_for) if said.voted_for is not None else None
        self.voters = tuple(VoterChange(offset, tuple(map(_replica_id, voters))) for offset, voters in said.voters)
        self.marks = tuple(EpochMark(*mark) for mark in said.marks)


class Known:
    """What the records so far amount to."""

    def __init__(self) -> None:
        self.start_count = 0
        #: On which boot all logs but `unrecovered` were in order; empty while that is not known.
        self.boot_id = ""
        self.unrecovered: set[LogId] = set()
        self.replicas: dict[LogId, ReplicaFacts] = {}
        self.closed: dict[LogId, Offset] = {}

    def facts(self, name: LogId) -> ReplicaFacts:
        found = self.replicas.get(name)
        if found is None:
            found = self.replicas[name] = ReplicaFacts()
        return found

    def apply(self, record: Record) -> None:
        match record:
            case Started(count):
                self.start_count = max(self.start_count, count)
                self.closed = {}
            case Recovered(boot_id, excepted):
                self.boot_id = boot_id
                self.unrecovered = {LogId(TopicId(topic_id), partition) for topic_id, partition in excepted}
            case Flushed(logs):
                for name, offset in _by_log(logs).items():
                    self.facts(name).flushed = Position(NO_EPOCH, offset)
            case Positions(positions):
                for topic_id, partition, epoch, offset, high_watermark in positions:
                    facts = self.facts(LogId(TopicId(topic_id), partition))
                    facts.flushed, facts.high_watermark = Position(epoch, offset), high_watermark
            case ReplicaSaid():
                self.facts(LogId(TopicId(record.topic_id), record.partition)).hear(record)
            case Closed(logs):  # pragma: no branch - there is no other type
                self.closed = _by_log(logs)
                for name, offset in self.closed.items():
                    facts = self.facts(name)
                    facts.flushed = Position(facts.flushed.epoch, offset)

    def forget_logs(self) -> None:
        """Something in between could not be read: it may have taken back what was said before."""
        self.boot_id, self.unrecovered, self.replicas, self.closed = "", set(), {}, {}

    def records(self) -> list[Record]:
        """All of it, said anew."""
        said: list[Record] = [
            Started(self.start_count),
            Recovered(self.boot_id, [(topic_id, partition) for topic_id, partition in sorted(self.unrecovered)]),
            self.positions(self.replicas),
            *(facts.said(name) for name, facts in self.replicas.items() if facts.has_promised),
        ]
        return [*said, Closed(offsets_of(self.closed))] if self.closed else said

    def positions(self, names: Iterable[LogId]) -> Positions:
        replicas = self.replicas
        found = ((name, replicas[name]) for name in names if name in replicas)
        return Positions([(*name, *facts.flushed, facts.high_watermark) for name, facts in found])


def offsets_of(logs: Mapping[LogId, Offset]) -> LogOffsets:
    return [(topic_id, partition, offset) for (topic_id, partition), offset in logs.items()]


def _by_log(logs: LogOffsets) -> dict[LogId, Offset]:
    return {LogId(TopicId(topic_id), partition): offset for topic_id, partition, offset in logs}


def _replica_id(said: _Replica) -> ReplicaId:
    return ReplicaId(BrokerId(said[0]), said[1])
