"""What a journal can say: one type for each thing, and what all of them together amount to.

A frame holds a list of these as msgpack. A release that finds a type it does not know takes the frame as unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from zurau.errors import CorruptData
from zurau.ids import Offset, TopicId


class LogId(NamedTuple):
    """A log by its topic's id: a topic that is created anew under an old name has other logs."""

    topic_id: TopicId
    partition: int


#: Logs with an offset each, in the form that is quick to write.
LogOffsets = list[tuple[bytes, int, int]]


class Started(msgspec.Struct, array_like=True, tag="started"):
    """The broker started for the `count`th time. Logs that were closed before are open again."""

    count: int


class Recovered(msgspec.Struct, array_like=True, tag="recovered"):
    """On this boot of the machine every log was opened and found to be in order, or mended; except some."""

    boot_id: str
    excepted: list[tuple[bytes, int]]


class Flushed(msgspec.Struct, array_like=True, tag="flushed"):
    """Everything below these offsets is safe."""

    logs: LogOffsets


class Closed(msgspec.Struct, array_like=True, tag="closed"):
    """The broker stopped, and left these logs in good order, ending at these offsets."""

    logs: LogOffsets


Record = Started | Recovered | Flushed | Closed

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


class Known:
    """What the records so far amount to."""

    def __init__(self) -> None:
        self.start_count = 0
        #: On which boot all logs but `unrecovered` were in order; empty while that is not known.
        self.boot_id = ""
        self.unrecovered: set[LogId] = set()
        self.flushed: dict[LogId, Offset] = {}
        self.closed: dict[LogId, Offset] = {}

    def apply(self, record: Record) -> None:
        match record:
            case Started(count):
                self.start_count = max(self.start_count, count)
                self.closed = {}
            case Recovered(boot_id, excepted):
                self.boot_id = boot_id
                self.unrecovered = {LogId(TopicId(topic_id), partition) for topic_id, partition in excepted}
            case Flushed(logs):
                self.flushed.update(_by_log(logs))
            case Closed(logs):
                self.closed = _by_log(logs)
                self.flushed.update(self.closed)

    def forget_logs(self) -> None:
        """Something in between could not be read: it may have taken back what was said before."""
        self.boot_id, self.unrecovered, self.flushed, self.closed = "", set(), {}, {}

    def records(self) -> list[Record]:
        """All of it, said anew."""
        said: list[Record] = [
            Started(self.start_count),
            Recovered(self.boot_id, [(topic_id, partition) for topic_id, partition in sorted(self.unrecovered)]),
            Flushed(offsets_of(self.flushed)),
        ]
        return [*said, Closed(offsets_of(self.closed))] if self.closed else said


def offsets_of(logs: Mapping[LogId, Offset]) -> LogOffsets:
    return [(topic_id, partition, offset) for (topic_id, partition), offset in logs.items()]


def _by_log(logs: LogOffsets) -> dict[LogId, Offset]:
    return {LogId(TopicId(topic_id), partition): offset for topic_id, partition, offset in logs}
