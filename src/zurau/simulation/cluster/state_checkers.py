"""Invariants of what is made of a log: what consumers read, what producers may repeat, what the metadata says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zurau.ids import Offset
from zurau.replica.effects import Announce, Append, CutEnd, Effect, Release, RestartLog
from zurau.replica.position import Batch
from zurau.replica.reading import Reading
from zurau.simulation.cluster.checkers import Checker
from zurau.simulation.cluster.history import ReadChecker, last_written
from zurau.simulation.cluster.snapshots import has_producer, written_by

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import Host


class HistoryIsKept(Checker):
    """Not an invariant: writes down what is committed, before the others look."""

    watches = (Release,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Release)
        self.cluster.history.extend(host.disk.seen, effect.high_watermark)


class ConsumersReadWhatIsCommitted(ReadChecker):
    """Nobody reads what is not committed, or something else than what is, or is told that an offset that was right is
    out of range."""

    def see(self, host: Host, effect: Effect) -> None:
        """It only watches consumers."""

    def served(self, host: Host, offset: Offset, answer: Reading, batches: tuple[Batch, ...]) -> None:
        expected = offset
        for batch in batches:
            self._is_committed(host, batch, expected)
            expected = batch.next_offset
        if answer is Reading.OUT_OF_RANGE:
            self.require(offset < host.disk.start_offset, lambda: f"{host.id} has no offset {offset}, which was read")

    def _is_committed(self, host: Host, batch: Batch, at: Offset) -> None:
        history = self.cluster.history
        known = batch.next_offset <= history.end
        self.require(known, lambda: f"{host.id} serves {batch}, and {history.end} is committed")
        committed = history.batches[history.count_at(batch.next_offset) - 1]
        # What compaction has removed is not served, and nobody waits for it.
        while at < batch.base_offset and at in self.truth.compacted:
            at = self.truth.compacted[at].next_offset
        same = batch == committed and batch.base_offset <= at < batch.next_offset
        self.require(same, lambda: f"{host.id} serves {batch} at {at}, not {committed}")


class ProducersAreRemembered(Checker):
    """No record of a producer is in a log twice or before its turn; and what a broker remembers of its producers is
    what its log says, with everything that was before the log's start."""

    watches = (Append, CutEnd, RestartLog, Announce)

    def see(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Append):
            for place in range(host.appended_from, len(host.disk.seen.items)):
                item = host.disk.seen.items[place]
                if isinstance(item, Batch) and has_producer(item):
                    self._follows(host, item, place)
        else:
            self._remembers(host)

    def _follows(self, host: Host, batch: Batch, place: int) -> None:
        producer, sequence = written_by(batch)
        before = self._sequence_before(host, producer, place)
        follows = before is None or sequence == before + 1
        self.require(follows, lambda: f"{host.id}: {producer} has {sequence} after {before}, at {batch}")

    def _sequence_before(self, host: Host, producer: int, place: int) -> int | None:
        """What a producer wrote last before an item, in this log or in what was before it."""
        log = host.disk.seen
        for item in reversed(log.items[:place]):
            if isinstance(item, Batch) and has_producer(item) and written_by(item)[0] == producer:
                return written_by(item)[1]
        known = last_written(self.cluster.history.before(log.first_offset)).get(producer)
        return known[-1][0] if known else None

    def _remembers(self, host: Host) -> None:
        disk = host.disk
        before = self.cluster.history.before(disk.start_offset)
        expected = last_written([*before, *disk.seen.since(disk.start_offset)])
        found = {
            int(producer): [(each.first_sequence, each.base_offset) for each in known.batches]
            for producer, known in host.memory.producers.items()
        }
        self.require(found == expected, lambda: f"{host.id} remembers {found}, and its log says {expected}")


class MetadataIsTheSame(Checker):
    """At the same offset every broker has applied the same metadata, whether from records or from a snapshot."""

    watches = (Release, RestartLog, Announce)

    def see(self, host: Host, effect: Effect) -> None:
        history, memory = self.cluster.history, host.memory
        if memory.applied <= history.end:
            said = history.image_at(memory.applied)
            self.require(
                memory.image == said, lambda: f"{host.id} has {memory.image} at {memory.applied}, and that is {said}"
            )


class NothingIsRemovedUnsaid(Checker):
    """A topic's data is removed when a committed record says so, and for no other reason."""

    watches = (Release, RestartLog, Announce)

    def see(self, host: Host, effect: Effect) -> None:
        unsaid = host.folders.removed - self.cluster.history.deleted
        self.require(not unsaid, lambda: f"{host.id} has removed topics {sorted(unsaid)}, and nobody said so")


class SnapshotsReplaceNothingCommitted(Checker):
    """A log that a snapshot takes the place of had nothing committed behind the snapshot's end."""

    watches = (RestartLog,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, RestartLog)
        replaced, start = host.disk.replaced, effect.point.mark.start_offset
        behind = [end for end in self.truth.sums if end > start and replaced.sum_at(end) == self.truth.sums[end]]
        self.require(
            not behind, lambda: f"{host.id} drops what is committed up to {max(behind)} for a log from {start}"
        )


STATE_CHECKERS: tuple[type[Checker], ...] = (
    HistoryIsKept,
    ConsumersReadWhatIsCommitted,
    ProducersAreRemembered,
    MetadataIsTheSame,
    NothingIsRemovedUnsaid,
    SnapshotsReplaceNothingCommitted,
)
