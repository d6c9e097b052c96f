"""What clients sent, what they were told and what they read; and whether it fits together.

Every value is made once, and names its maker and its number. So whatever is told of an offset, by an acknowledgement
or a read, is held against everything that was told before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from zurau.ids import Offset, TopicPartition
from zurau.simulation.brokers.invariants import broken, require
from zurau.simulation.brokers.trace import Trace


class PartitionHistory:
    """One partition of a topic from which nothing goes but by its log's start."""

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        #: What is known to be committed: by an acknowledgement of acks=all, or because somebody read it.
        self.values: dict[Offset, bytes] = {}
        self._offsets: dict[bytes, Offset] = {}
        self.high_watermark: Offset = 0
        #: Below this, records may be gone: the log was asked to start there, or retention may have begun.
        self.may_start_at: Offset = 0
        #: Below this, records are gone for good.
        self.starts_at: Offset = 0
        #: Behind everything that is known to be committed.
        self.end: Offset = 0

    def committed(self, base_offset: Offset, values: Iterable[bytes], how: str) -> None:
        for offset, value in enumerate(values, base_offset):
            known = self.values.setdefault(offset, value)
            if known != value:
                broken(
                    "OneValueAtAnOffset", f"{self.name}: {brief(value)} is {how} at {offset}, where {brief(known)} was"
                )
            elsewhere = self._offsets.setdefault(value, offset)
            if elsewhere != offset:
                broken("NoneTwice", f"{self.name}: {brief(value)} is {how} at {offset}, and was at {elsewhere}")
            self.end = max(self.end, offset + 1)

    def told_high_watermark(self, told: Offset, when_asked: Offset) -> None:
        """`when_asked`: what was known of it when the question was put."""
        seen = f"{self.name}: {told}, and it was {when_asked} before that was asked"
        require(told >= when_asked, "HighWatermarkNeverGoesBack", seen)
        self.high_watermark = max(self.high_watermark, told)

    def require_all(self, found: dict[Offset, bytes], start: Offset) -> None:
        """Everything that is known is in what somebody found who read all there is."""
        for offset in self.lost(found, start):
            seen = f"{self.name}: {brief(self.values[offset])} was at {offset}, found {brief(found.get(offset))}"
            broken("AcknowledgedStays", seen)
        require_order(self.name, found)

    def lost(self, found: dict[Offset, bytes], start: Offset = 0) -> Iterator[Offset]:
        """Where something is known that is not in what somebody found who read everything from `start` on."""
        for offset, value in self.values.items():
            if offset >= start and found.get(offset) != value:
                yield offset


def require_order(name: TopicPartition, found: dict[Offset, bytes]) -> None:
    """Idempotent producers' records, by their numbers."""
    last: dict[bytes, int] = {}
    for offset in sorted(found):
        maker, number = made_by(found[offset])
        if maker.startswith(b"once"):
            before = last.get(maker, -1)
            require(
                number > before, "OrderIsKept", f"{name}: {number} of {maker.decode()} follows {before} at {offset}"
            )
            last[maker] = number


class History:
    def __init__(self, trace: Trace, committed_upto: Callable[[TopicPartition], Offset]) -> None:
        self.trace = trace
        #: What replicas have released by now.
        self._committed_upto = committed_upto
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.counts: Counter[str] = Counter()

    def of(self, name: TopicPartition) -> PartitionHistory:
        known = self.partitions.get(name)
        if known is None:
            known = self.partitions[name] = PartitionHistory(name)
        return known

    def acknowledged(self, name: TopicPartition, base_offset: Offset, values: list[bytes]) -> None:
        self.counts["acknowledged"] += len(values)
        self.trace.note(f"acknowledged {name} {base_offset} {brief(values[0])} and {len(values) - 1} more")
        committed = self._committed_upto(name)
        seen = f"{name}: {brief(values[0])} at {base_offset}, and {committed} is committed"
        require(base_offset + len(values) <= committed, "AcknowledgedIsCommitted", seen)
        self.of(name).committed(base_offset, values, "acknowledged")

    def read(self, name: TopicPartition, records: list[tuple[Offset, bytes]], high_watermark: Offset) -> None:
        self.counts["read"] += len(records)
        if records:
            self.trace.note(f"read {name} {records[0][0]} to {records[-1][0]}, high watermark {high_watermark}")
        known = self.of(name)
        for offset, value in records:
            seen = f"{name}: read offset {offset}, the high watermark is {high_watermark}"
            require(offset < high_watermark, "OnlyWhatIsCommitted", seen)
            known.committed(offset, [value], "read")


def value_of(maker: str, number: int, padding: bytes = b"") -> bytes:
    return b"%s %d %s" % (maker.encode(), number, padding)


def made_by(value: bytes) -> tuple[bytes, int]:
    maker, number, _ = value.split(b" ", 2)
    return maker, int(number)


def brief(value: bytes | None) -> str:
    """Who made it, and its number."""
    return "nothing" if value is None else b" ".join(value.split(b" ", 2)[:2])[:24].decode(errors="replace")
