"""What makes a producer's retry harmless (KIP-98).

For each producer id the last five batches are remembered: a batch that comes again is answered with the offset it got
the first time, and a batch that does not follow on the last one is refused. The state is a function of the log: it is
rebuilt from batch headers after a crash, and from a snapshot plus the headers behind it after a clean stop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from fastcrc import crc32

from zurau.errors import CorruptData, Refused
from zurau.ids import NO_PRODUCER_ID, Offset, ProducerId
from zurau.records.batch import BatchHeader
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode

#: As many as a Kafka producer may have in flight, so that any of them can be repeated.
REMEMBERED_BATCHES = 5
#: Producers of one partition. Past that the one that has been silent longest is forgotten, as after its time is over:
#: ids are for clients to choose, and each takes half a kilobyte.
PRODUCERS_MAX = 50_000


class WrittenBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: Offset
    timestamp: int


class Producer:
    """One producer id's recent batches in one partition."""

    __slots__ = ("batches", "epoch", "last_written_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        #: Oldest first. Invariant: all of `epoch`, each following on the one before. A tuple, because it is small, and
        #: there may be many producers.
        self.batches: tuple[WrittenBatch, ...] = ()
        self.last_written_ms = 0


class ProducerSnapshot(msgspec.Struct):
    """The state at one offset, as it is stored."""

    offset: Offset
    producers: dict[ProducerId, tuple[int, int, tuple[WrittenBatch, ...]]]


class Producers:
    """The producer state of one partition."""

    __slots__ = ("_producers", "on_new")

    def __init__(self) -> None:
        self.on_new: Callable[[int], None] = _nobody_counts
        #: Whoever wrote last is last.
        self._producers: OrderedDict[ProducerId, Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: ProducerId) -> bool:
        return producer_id in self._producers

    def tell_of_new(self, on_new: Callable[[int], None]) -> None:
        """Tell somebody how many there are, and then of each that is new. It may forget others at once."""
        self.on_new = on_new
        on_new(len(self))

    def items(self) -> Iterable[tuple[ProducerId, Producer]]:
        return self._producers.items()

    def find_repeated(self, header: BatchHeader) -> WrittenBatch | None:
        """The batch that this one repeats, or None if it is new. Refuses one that does not follow on the last."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            # Nothing is known of this producer (any more), so any sequence is as good as the first.
            return None
        if header.producer_epoch < producer.epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has been replaced by one of epoch {producer.epoch}",
            )
        if header.producer_epoch > producer.epoch:
            _require_sequence(header, 0)
            return None
        last_sequence = following(header.base_sequence, header.last_offset_delta)
        for batch in producer.batches:
            if (batch.first_sequence, batch.last_sequence) == (header.base_sequence, last_sequence):
                return batch
        _require_sequence(header, following(producer.batches[-1].last_sequence, 1))
        return None

    def last_offset_of(self, producer_id: ProducerId) -> Offset:
        """Where its last batch is; -1 if it has none."""
        producer = self._producers.get(producer_id)
        return producer.batches[-1].base_offset if producer is not None else -1

    def written(self, header: BatchHeader, now_ms: int) -> None:
        """A batch is in the log."""
        if header.producer_id == NO_PRODUCER_ID or header.base_sequence < 0:
            return
        producer = known = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        self._producers.move_to_end(header.producer_id)
        producer.last_written_ms = now_ms
        written = WrittenBatch(
            header.base_sequence,
            following(header.base_sequence, header.last_offset_delta),
            header.base_offset,
            header.max_timestamp,
        )
        producer.batches = (*producer.batches[1 - REMEMBERED_BATCHES :], written)
        if known is None:
            self.keep(PRODUCERS_MAX)
            self.on_new(1)

    def keep(self, count: int) -> None:
        """Forget those that have been silent longest, as after their time is over, if there are more."""
        while len(self._producers) > count:
            self._producers.popitem(last=False)

    def expire(self, older_than_ms: int) -> None:
        """Forget producers that have not written since."""
        gone = [pid for pid, producer in self._producers.items() if producer.last_written_ms < older_than_ms]
        for producer_id in gone:
            del self._producers[producer_id]

    def snapshot(self, offset: Offset) -> Callable[[], bytes]:
        """The state of this moment as bytes, true of everything below `offset`. They are made when they are asked for,
        in any thread: of many producers that takes a while."""
        producers = {
            producer_id: (producer.epoch, producer.last_written_ms, producer.batches)
            for producer_id, producer in self._producers.items()
        }

        def encode() -> bytes:
            content = msgspec.json.encode(ProducerSnapshot(offset, producers))
            return b"%08x\n%s" % (crc32.iscsi(content), content)

        return encode

    def restore(self, content: bytes) -> Offset:
        """Take the state of a snapshot; returns the offset from which the log has to be followed.

        Raises `CorruptData` with nothing taken.
        """
        checksum, _, facts = content.partition(b"\n")
        if checksum != b"%08x" % crc32.iscsi(facts):
            raise CorruptData("the snapshot of the producers does not match its checksum")
        try:
            snapshot = msgspec.json.decode(facts, type=ProducerSnapshot)
        except msgspec.DecodeError as error:
            raise CorruptData(f"the snapshot of the producers cannot be read: {error}") from None
        for producer_id, (epoch, last_written_ms, batches) in snapshot.producers.items():
            producer = self._producers[producer_id] = Producer(epoch)
            producer.last_written_ms = last_written_ms
            producer.batches = batches[-REMEMBERED_BATCHES:]
        return snapshot.offset


def _nobody_counts(new: int) -> None:
    """Where no broker is around it."""


def following(sequence: int, steps: int) -> int:
    """The sequence number `steps` further on; they wrap to 0 after 2**31 - 1."""
    return (sequence + steps) & INT32_MAX


def _require_sequence(header: BatchHeader, expected: int) -> None:
    if header.base_sequence != expected:
        raise Refused(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {header.base_sequence} where {expected} follows",
        )
