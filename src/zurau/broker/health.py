"""What is wrong with this broker right now, as values that tools can read.

Nothing is remembered here: each problem is looked up where it is known, whenever somebody asks. `zurau cluster health`
shows them; they travel as a read-only config of the broker, so that Kafka's own tools show them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from zurau.errors import DiskFault

if TYPE_CHECKING:
    from zurau.broker.broker import Broker

#: A config may have a value of 32767 bytes in old versions of the protocol.
TEXT_BYTES_MAX = 30_000


class Kind(StrEnum):
    DAMAGED = "damaged"
    CLOSED = "closed"
    TAKES_NO_WRITES = "takes-no-writes"
    GROUPS_NOT_SERVED = "groups-not-served"
    DISK_NEARLY_FULL = "disk-nearly-full"
    JOURNAL_DAMAGED = "journal-damaged"
    JOURNAL_NOT_WRITTEN = "journal-not-written"
    UNEXPLAINED = "unexplained"
    UPKEEP_FAILS = "upkeep-fails"
    NO_CONTROLLER = "no-controller"
    BROKER_FENCED = "broker-fenced"
    SLOW = "slow"
    MORE = "more"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: Kind
    #: What is wrong.
    text: str
    #: What to do about it.
    advice: str
    partition: str | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    file: str | None = None
    since_ms: int | None = None


class Health:
    """Asks around. `sources` is where others, such as the watch over the loop, add what they know."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.sources: list[Callable[[], Iterable[Problem]]] = [
            self._damaged,
            self._closed,
            self._takes_no_writes,
            self._groups,
            self._disk,
            self._journal,
            self._unexplained,
            self._upkeep,
            self._controller,
            self._fenced,
        ]
        #: Numbers, by name.
        self.counters: dict[str, Callable[[], float]] = {"upkeep.failures": lambda: broker.troubles.failure_count}
        for name in broker.world.counters.__struct_fields__:
            self.counters[f"node.{name}"] = partial(getattr, broker.world.counters, name)

    def problems(self) -> list[Problem]:
        return [problem for source in self.sources for problem in source()]

    def text(self) -> str:
        """The problems as JSON, as many as fit; the last one says how many do not."""
        problems = self.problems()
        encoded: list[bytes] = []
        size = 0
        for problem in problems:
            one = msgspec.json.encode(problem)
            size += len(one) + 1
            if size > TEXT_BYTES_MAX:
                rest = len(problems) - len(encoded)
                more = Problem(Kind.MORE, f"and {rest} problems more", "see the broker's log")
                encoded.append(msgspec.json.encode(more))
                break
            encoded.append(one)
        return f"[{b','.join(encoded).decode()}]"

    def counters_text(self) -> str:
        return msgspec.json.encode({name: count() for name, count in sorted(self.counters.items())}).decode()

    def _controller(self) -> Iterator[Problem]:
        since_ms = self._broker.heartbeats.unheard_since_ms
        if since_ms is not None:
            yield Problem(
                Kind.NO_CONTROLLER,
                "the controller does not answer this broker: the metadata has no leader, or this broker is cut off "
                "from the majority. It serves no new topics, and leads only as long as its followers are heard",
                "see which brokers run and whether they reach each other; a majority of the voters is needed "
                "(`zurau cluster status`)",
                since_ms=since_ms,
            )

    def _fenced(self) -> Iterator[Problem]:
        """Told by the controller, so that each is told once."""
        broker = self._broker
        if broker.metadata.runtime.is_loaded:
            for other in broker.image.brokers.values():
                if other.is_fenced:
                    held = sum(other.broker_id in partition.replicas for _, partition in broker.image.partitions())
                    yield Problem(
                        Kind.BROKER_FENCED,
                        f"broker {other.broker_id} is not heard of; it has replicas of {held} partitions",
                        "start it again; if it is gone for good, `zurau cluster decommission "
                        f"{other.broker_id}` moves its replicas to others",
                        since_ms=broker.fenced_since_ms.get(other.broker_id),
                    )

    def _damaged(self) -> Iterator[Problem]:
        root = self._broker.world.disk.root
        for name, partition in self._broker.partitions.items():
            for one in partition.log.damage:
                yield Problem(
                    Kind.DAMAGED,
                    f"{one.offsets_text} cannot be read: {one.reason}",
                    "restore its file from a copy, or stop the broker and run `zurau log repair`",
                    str(name),
                    one.first_offset,
                    one.next_offset - 1,
                    str(root / one.file),
                )

    def _closed(self) -> Iterator[Problem]:
        for name, closed in self._broker.placement.closed.items():
            yield Problem(
                Kind.CLOSED,
                f"it could not be opened, {_times(closed.tries)}: {closed.fault}",
                "it is opened as soon as that is mended; no restart is needed",
                str(name),
            )

    def _takes_no_writes(self) -> Iterator[Problem]:
        for name, partition in self._broker.partitions.items():
            if partition.fault is not None:
                advice = "it takes writes as soon as that is mended; no restart is needed"
                if partition.is_broken:
                    advice = "what is committed can be read; see to the disk, then restart the broker"
                yield Problem(Kind.TAKES_NO_WRITES, str(partition.fault), advice, str(name))

    def _groups(self) -> Iterator[Problem]:
        for name, reason in self._broker.groups.not_served.items():
            partition = self._broker.partitions.get(name)
            is_damaged = partition is not None and partition.log.damage  # where, is a problem of its own
            yield Problem(
                Kind.GROUPS_NOT_SERVED,
                f"consumer groups that live here find no coordinator: {'its log is damaged' if is_damaged else reason}",
                "restore its directory from a copy, or stop the broker and run `zurau log repair`",
                str(name),
            )

    def _disk(self) -> Iterator[Problem]:
        disk = self._broker.world.disk
        advice = "free some space, or lower retention.bytes or retention.ms of large topics"
        try:
            free = disk.free_bytes()
        except DiskFault as fault:
            yield Problem(Kind.DISK_NEARLY_FULL, f"how much room is left cannot be told: {fault}", advice)
            return
        if free < self._broker.settings.disk_low_bytes:
            yield Problem(Kind.DISK_NEARLY_FULL, f"{free:,} bytes are left in {disk.root}", advice)

    def _unexplained(self) -> Iterator[Problem]:
        for directory in self._broker.unexplained:
            yield Problem(
                Kind.UNEXPLAINED,
                "no topic explains this data: the record of its topic may have been in what was given up of the "
                "metadata log",
                "its records can be copied into a topic: `zurau log dump DIR --records --format json`; see "
                "docs/reliability.md",
                directory,
            )

    def _journal(self) -> Iterator[Problem]:
        journal = self._broker.journal
        for place in journal.damage:
            yield Problem(
                Kind.JOURNAL_DAMAGED,
                f"{place}; damage at the ends of logs may have been cut off at this start",
                "a new journal was written; see that topics end where you expect. The next clean start ends this",
            )
        if journal.fault is not None:
            yield Problem(
                Kind.JOURNAL_NOT_WRITTEN,
                f"how far logs are flushed cannot be noted: {journal.fault}",
                "records are safe all the same; it is tried again, and no restart is needed",
            )

    def _upkeep(self) -> Iterator[Problem]:
        for trouble in self._broker.troubles:
            yield Problem(
                Kind.UPKEEP_FAILS,
                f"{trouble.job} failed {_times(trouble.count)}: {str(trouble.failure) or repr(trouble.failure)}",
                "it is tried again; until then old data may take more room than it should",
                str(trouble.partition),
            )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
