"""The bytes of a simulated file: what a program sees of it, and what would survive a power failure."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class FlushUnderWay:
    """What a flush that has begun will make safe: the bytes there were, as far as they stay in place meanwhile."""

    upto_bytes: int
    #: The file was cut since it began; whether that cut is safe the flush does not say.
    was_cut: bool = False


@dataclass(eq=False, slots=True)
class Content:
    """The bytes of a file, as seen and as safe. Names point at it."""

    seen: bytearray = field(default_factory=bytearray)
    #: So much of `seen` is safe: the file was never shorter since the last flush.
    safe_bytes: int = 0
    #: What was safe before the file was cut below that; None if that did not happen since the last flush.
    before_cut: bytes | None = None
    is_cached: bool = True
    #: Where the disk can no longer read it.
    unreadable: range = range(0)
    #: Bytes that the disk has changed. They are never in memory: whoever wants them reads them from the disk.
    changed: list[int] = field(default_factory=list)
    flushes: list[FlushUnderWay] = field(default_factory=list)
    #: From where to where bytes were dropped by a flush that failed: seen until a crash, and never safe.
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def begin_flush(self) -> FlushUnderWay:
        begun = FlushUnderWay(len(self.seen))
        self.flushes.append(begun)
        return begun

    def flush(self, begun: FlushUnderWay | None = None) -> None:
        upto_bytes = len(self.seen)
        if begun is not None:
            if begun in self.flushes:
                self.flushes.remove(begun)
            upto_bytes = min(begun.upto_bytes, upto_bytes)
        self.safe_bytes = max(self.safe_bytes, upto_bytes)
        if begun is None or not begun.was_cut:
            self.before_cut = None

    def flush_failed(self) -> None:
        if self.safe_bytes < len(self.seen):
            self.dropped.append((self.safe_bytes, len(self.seen)))

    def write_again(self, position: int) -> None:
        for start, end in self.dropped:
            if end > position:
                self.safe_bytes = min(self.safe_bytes, max(start, position))  # until the next flush
        self.dropped = [(start, min(end, position)) for start, end in self.dropped if start < position]

    def is_in_memory(self, position: int, length: int) -> bool:
        return self.is_cached and not any(position <= one < position + length for one in self.changed)

    def truncate(self, size: int) -> None:
        self.changed = [one for one in self.changed if one < size]
        self.dropped = [(start, min(end, size)) for start, end in self.dropped if start < size]
        if size < self.safe_bytes:
            if self.before_cut is None:
                self.before_cut = bytes(memoryview(self.seen)[: self.safe_bytes])
            self.safe_bytes = size
        for begun in self.flushes:
            begun.upto_bytes = min(begun.upto_bytes, size)
            begun.was_cut = True
        del self.seen[size:]
        self.seen += bytes(size - len(self.seen))

    def crash(self, chance: random.Random) -> None:
        """Keep what is safe and an arbitrary beginning of what came after."""
        self.flushes.clear()
        if self.before_cut is None and self.safe_bytes == len(self.seen):
            self._drop(self.seen)
            return
        if self.before_cut is not None and chance.random() < 0.5:
            survived = bytearray(self.before_cut)  # the file was cut shorter, but that never got to the disk
        else:
            # Nothing is the most likely beginning: file systems write appended bytes out late, and all together.
            kept = chance.choice([self.safe_bytes, chance.randint(self.safe_bytes, len(self.seen))])
            survived = self.seen[:kept]
            if chance.random() < 0.25:
                survived += bytes(chance.randint(0, len(self.seen) - kept))
            self._drop(survived)
        self.seen = survived
        self.safe_bytes, self.before_cut = len(survived), None

    def _drop(self, survived: bytearray) -> None:
        for start, end in self.dropped:
            gone = survived[start:end]
            survived[start : start + len(gone)] = bytes(len(gone))
        self.dropped = []
