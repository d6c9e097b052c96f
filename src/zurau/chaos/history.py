"""What clients were told, held against everything that was told before.

Every value is made once, and names its maker and its number (`value_of`), so whatever is said of an offset can be
checked: by a producer that was acknowledged, by a consumer that reads, and by whoever reads everything in the end. The
rules of a partition are those of the simulator.

For a consumer group it is the generation that counts, not the clock on the wall. A member that was cut off may go on
reading for a while when its partitions are somebody else's already; no coordinator can prevent that. What one must
prevent is that two members have a partition in the same generation, and that a commit of an older generation is taken
once a newer one has begun.

Violations are gathered, not raised: load goes on in many threads, and how much was lost is worth knowing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from zurau.ids import Offset, TopicPartition
from zurau.simulation.brokers.history import PartitionHistory, brief, require_order, value_of
from zurau.simulation.brokers.invariants import broken, require
from zurau.simulation.searching import Violation

__all__ = ["History", "Violation", "value_of"]

#: So many are told in words; all are counted.
TOLD_MAX = 100


class History:
    """Use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._partitions: dict[TopicPartition, PartitionHistory] = {}
        #: Values that were acknowledged without an offset.
        self._somewhere: dict[TopicPartition, set[bytes]] = {}
        #: The highest offset of a partition that a group was told is committed.
        self._committed: dict[tuple[str, TopicPartition], Offset] = {}
        self._owners: dict[tuple[str, int, TopicPartition], str] = {}
        self._generations: dict[str, int] = {}
        self.violations: list[Violation] = []
        self.counts: Counter[str] = Counter()

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    # Records

    def acknowledged(self, partition: TopicPartition, base_offset: Offset, values: Sequence[bytes]) -> None:
        """A producer was told that its values are stored, from this offset on."""
        with self._lock:
            self.counts["acknowledged"] += len(values)
            self._committed_records(partition, enumerate(values, base_offset), "acknowledged")

    def acknowledged_somewhere(self, partition: TopicPartition, value: bytes) -> None:
        """A producer was told that its value is stored, and not at which offset."""
        with self._lock:
            self.counts["acknowledged"] += 1
            self._somewhere.setdefault(partition, set()).add(value)

    def read(
        self,
        partition: TopicPartition,
        records: Sequence[tuple[Offset, bytes]],
        high_watermark: Offset | None = None,
    ) -> None:
        """A consumer was given these; and this high watermark, if it is one that tells."""
        with self._lock:
            self.counts["read"] += len(records)
            if high_watermark is not None and records:
                last = records[-1][0]
                seen = f"{partition}: read offset {last}, the high watermark is {high_watermark}"
                self._try(partial(require, last < high_watermark, "OnlyWhatIsCommitted", seen))
            self._committed_records(partition, records, "read")

    def found_all(self, partition: TopicPartition, found: Mapping[Offset, bytes]) -> list[Offset]:
        """Somebody has read everything that there is, after all faults. Returns the offsets of what is lost."""
        with self._lock:
            everything = dict(found)
            self._committed_records(partition, sorted(everything.items()), "found at the end")
            known = self._of(partition)
            lost = list(known.lost(everything))
            missing = self._somewhere.get(partition, set()) - set(everything.values())
            for value in missing:
                self._broken("AcknowledgedStays", f"{partition}: {brief(value)} is nowhere")
            self.counts["lost"] += len(lost) + len(missing)
            for offset in lost:
                seen = f"{brief(known.values[offset])} was at {offset}, found {brief(everything.get(offset))}"
                self._broken("AcknowledgedStays", f"{partition}: {seen}")
            self._try(partial(require_order, partition, everything))
            return lost

    # Groups

    def assigned(self, group: str, generation: int, member: str, partitions: Iterable[TopicPartition]) -> None:
        """The coordinator has told a member which partitions are its own in a generation."""
        with self._lock:
            self._generations[group] = max(generation, self._generations.get(group, generation))
            for partition in partitions:
                owner = self._owners.setdefault((group, generation, partition), member)
                if owner != member:
                    seen = f"{partition} is {member}'s and {owner}'s in generation {generation} of {group}"
                    self._broken("OneOwner", seen)

    def newest_generation(self, group: str) -> int:
        """What to remember before a commit is asked for."""
        with self._lock:
            return self._generations.get(group, -1)

    def committed(
        self, group: str, generation: int, offsets: Mapping[TopicPartition, Offset], newest_when_asked: int
    ) -> None:
        """The coordinator has confirmed a commit; `newest_when_asked`: the generation that had begun by then."""
        with self._lock:
            self.counts["commits"] += 1
            if generation < newest_when_asked:
                seen = f"{group}: a commit of generation {generation} is taken after {newest_when_asked} has begun"
                self._broken("OneOwner", seen)
            for partition, offset in offsets.items():
                known = self._committed.get((group, partition), offset)
                self._committed[group, partition] = max(known, offset)

    def known_commits(self, group: str) -> dict[TopicPartition, Offset]:
        """What to remember before committed offsets are asked for."""
        with self._lock:
            return {partition: offset for (name, partition), offset in self._committed.items() if name == group}

    def found_committed(
        self,
        group: str,
        found: Mapping[TopicPartition, Offset],
        known_when_asked: Mapping[TopicPartition, Offset],
    ) -> None:
        """A member has asked where to go on, in the partitions that it names in `found`."""
        with self._lock:
            for partition, offset in found.items():
                known = known_when_asked.get(partition, -1)
                if offset < known:
                    seen = f"{group} finds {offset} for {partition}, and was told that {known} is committed"
                    self._broken("CommittedOffsetsNeverGoBack", seen)

    # Inside

    def _committed_records(self, partition: TopicPartition, records: Iterable[tuple[Offset, bytes]], how: str) -> None:
        known = self._of(partition)
        for offset, value in records:
            self._try(partial(known.committed, offset, (value,), how))

    def _of(self, partition: TopicPartition) -> PartitionHistory:
        known = self._partitions.get(partition)
        if known is None:
            known = self._partitions[partition] = PartitionHistory(partition)
        return known

    def _broken(self, invariant: str, seen: str) -> None:
        self._try(partial(broken, invariant, seen))

    def _try(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Violation as violation:
            self.counts[violation.invariant] += 1
            if len(self.violations) < TOLD_MAX:
                self.violations.append(violation)
