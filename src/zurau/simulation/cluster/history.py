"""What has been committed, record by record, and what follows from it: kept apart from every replica, for checkers.

Everything here is derived from the records in the plainest way there is, and from the first one on: no snapshots.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from zurau.ids import Offset
from zurau.replica.core.items import Batch
from zurau.replica.core.reading import Reading
from zurau.simulation.cluster.checkers import Checker
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.snapshots import Image, command, has_producer, written_by
from zurau.simulation.cluster.storage import StoredLog

Written = dict[int, list[tuple[int, Offset]]]
#: As many as a broker remembers.
_REMEMBERED = 5


class History:
    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.ends: list[Offset] = [0]
        self._images: list[Image] = [Image()]
        #: Topics that a record has deleted.
        self.deleted: set[tuple[int, Offset]] = set()

    @property
    def end(self) -> Offset:
        return self.ends[-1]

    def extend(self, log: StoredLog, upto: Offset) -> None:
        """A replica has released everything below `upto`."""
        if upto <= self.end or log.first_offset > self.end:
            return
        for batch in log.since(self.end):
            if batch.next_offset > upto:
                return
            self._add(batch)

    def _add(self, batch: Batch) -> None:
        before = self._images[-1]
        if has_producer(batch):
            name, deletes = command(batch)
            if deletes and name in dict(before.topics):
                self.deleted.add((name, dict(before.topics)[name]))
        self.batches.append(batch)
        self.ends.append(batch.next_offset)
        self._images.append(before.after(batch))

    def count_at(self, offset: Offset) -> int:
        """How many batches are before an offset."""
        return bisect_left(self.ends, offset)

    def image_at(self, offset: Offset) -> Image:
        return self._images[self.count_at(offset)]

    def before(self, offset: Offset) -> list[Batch]:
        return self.batches[: self.count_at(offset)]


def last_written(batches: Iterable[Batch]) -> Written:
    """What is to be remembered of every producer."""
    written: Written = {}
    for batch in batches:
        if has_producer(batch):
            producer, sequence = written_by(batch)
            written.setdefault(producer, []).append((sequence, batch.base_offset))
    return {producer: each[-_REMEMBERED:] for producer, each in written.items()}


class ReadChecker(Checker):
    """One that sees what consumers are told."""

    def served(self, host: Host, offset: Offset, answer: Reading, batches: tuple[Batch, ...]) -> None:
        raise NotImplementedError
