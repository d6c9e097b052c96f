"""What a broker makes of a log: who wrote what last, for retries, and the metadata that the records say.

A record's value is `producer.sequence`. Read as metadata, the producer is a topic: its first record makes it, every
fourth one deletes it, the next makes another of the same name. A topic's id is the offset of the record that made it.
A snapshot holds all of this for everything below one offset; producers as the broker itself would write them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zurau.ids import Offset, ProducerId
from zurau.partition.producers import Producers
from zurau.records.batch import BatchHeader
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import Voters

#: The ids of the topics that there are, by name, and who votes if that was ever changed.
Topics = dict[int, Offset]
_DELETES_EVERY = 4


@dataclass(frozen=True, slots=True)
class Image:
    """The metadata at one offset. Not changed: a record makes another."""

    topics: tuple[tuple[int, Offset], ...] = ()
    voters: Voters | None = None

    @property
    def ids(self) -> frozenset[tuple[int, Offset]]:
        return frozenset(self.topics)

    def after(self, batch: Batch) -> Image:
        if not has_producer(batch):
            return Image(self.topics, batch.voters or self.voters)
        topics = dict(self.topics)
        name, deletes = command(batch)
        if deletes:
            topics.pop(name, None)
        else:
            topics.setdefault(name, batch.base_offset)
        return Image(tuple(sorted(topics.items())), self.voters)


@dataclass(frozen=True, slots=True)
class Snapshot:
    offset: Offset
    image: Image
    producers: bytes


EMPTY = Snapshot(0, Image(), Producers().snapshot(0))


def has_producer(batch: Batch) -> bool:
    """Changes of voters have none, and what is written in stories need not have one."""
    return b"." in batch.data


def written_by(batch: Batch) -> tuple[int, int]:
    """Producer and sequence."""
    producer, _, sequence = bytes(batch.data).partition(b".")
    return int(producer), int(sequence)


def command(batch: Batch) -> tuple[int, bool]:
    """The topic that a record speaks of, and whether it deletes it."""
    producer, sequence = written_by(batch)
    return producer, sequence % _DELETES_EVERY == 0


def header(value: bytes, base_offset: Offset = -1) -> BatchHeader:
    """As a producer that never repeats itself would write it."""
    producer, _, sequence = value.partition(b".")
    return BatchHeader(base_offset, 0, 0, 2, 0, 0, 0, 0, 0, ProducerId(int(producer)), 0, int(sequence), 1)


def remember(producers: Producers, batches: Iterable[Batch]) -> None:
    for batch in batches:
        if has_producer(batch):
            producers.written(header(bytes(batch.data), batch.base_offset), 0)


def follow(snapshot: Snapshot, batches: Iterable[Batch]) -> Snapshot:
    """The snapshot, with what follows on it."""
    producers, image, offset = Producers(), snapshot.image, snapshot.offset
    producers.restore(snapshot.producers)
    for batch in batches:
        image, offset = image.after(batch), batch.next_offset
        remember(producers, [batch])
    return Snapshot(offset, image, producers.snapshot(offset))
