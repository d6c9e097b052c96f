"""Reads records: from given partitions, from given offsets, in the order of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from zurau.client.cluster.cluster import Cluster
from zurau.client.consumer.fetcher import Fetched, Fetcher, FetchSettings
from zurau.client.errors import CorruptRecords
from zurau.errors import CorruptData
from zurau.ids import Offset, TopicPartition
from zurau.records.batch import BatchHeader, check_crc
from zurau.records.record import Record, iter_records

if TYPE_CHECKING:
    from zurau.wire.kafka.messages.fetch import AbortedTransaction

#: How long one round of waiting lasts when iterating.
ROUND_S = 1.0
ABORT_MARKER = b"\0\0"


class PartitionRecords(NamedTuple):
    """Records of one partition that arrived together; none when there was nothing to tell but the watermark."""

    partition: TopicPartition
    records: list[Record]
    high_watermark: Offset


class Consumer:
    """Assign partitions, then poll or iterate. Use it in a `with` block."""

    def __init__(self, cluster: Cluster, settings: FetchSettings | None = None) -> None:
        self._fetcher = Fetcher(cluster, settings)

    @property
    def positions(self) -> dict[TopicPartition, Offset]:
        """The offset after the last record that `poll` returned, or passed over, in each partition."""
        return self._fetcher.positions

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Read these partitions from these offsets, and no others."""
        self._fetcher.assign(positions)

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Go on from another offset in a partition that is already assigned."""
        self._fetcher.seek(partition, offset)

    def drop(self, partition: TopicPartition) -> None:
        """Stop reading one partition."""
        self._fetcher.drop(partition)

    def poll(self, timeout_s: float = ROUND_S) -> list[PartitionRecords]:
        """What has arrived, waiting up to `timeout_s`; empty when nothing did.

        Good records before a damaged batch are returned first. Then `CorruptRecords` is raised, each time, until
        somebody seeks to behind the damage.
        """
        return [self._decoded(fetched) for fetched in self._fetcher.poll(timeout_s)]

    def _decoded(self, fetched: Fetched) -> PartitionRecords:
        records: list[Record] = []
        position = fetched.offset
        try:
            for next_offset, decoded in decode(fetched):
                records += decoded
                position = next_offset
        except CorruptRecords as error:
            self._fetcher.fail(fetched.partition, position, error)
        return PartitionRecords(fetched.partition, records, fetched.high_watermark)

    def close(self) -> None:
        self._fetcher.close()

    def __iter__(self) -> Iterator[tuple[TopicPartition, Record]]:
        """Records for ever; waits when there are none."""
        while True:
            for partition, records, _ in self.poll():
                for record in records:
                    yield partition, record

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def decode(fetched: Fetched) -> Iterator[tuple[Offset, list[Record]]]:
    """Of each batch the offset behind it, and its records at or after the offset that was asked for.

    Markers and aborted records are left out. Raises `CorruptRecords` at a batch that is not as it was stored.
    """
    aborted = AbortedProducers(fetched.aborted)
    position = fetched.offset
    for index, (header, batch) in enumerate(fetched.batches):
        try:
            if not check_crc(batch, header):
                raise CorruptData("the checksum does not fit")
            if aborted.has(header, batch) or header.is_control or header.last_offset < fetched.offset:
                records = []
            elif header.base_offset < fetched.offset:
                records = [record for record in iter_records(batch) if record.offset >= fetched.offset]
            else:
                records = list(iter_records(batch))
        except CorruptData as error:
            where = f"{fetched.partition} at offset {position}"
            raise CorruptRecords.at(where, error, _good_offset(fetched, index, position)) from error
        position = max(position, header.next_offset)
        yield position, records


def _good_offset(fetched: Fetched, damaged: int, position: Offset) -> Offset | None:
    """Where to go on behind a damaged batch; None if that cannot be told, for its header may be wrong too."""
    for header, batch in fetched.batches[damaged + 1 :]:
        if header.base_offset > position and check_crc(batch, header):
            return header.base_offset
    header, _ = fetched.batches[damaged]
    return header.next_offset if header.base_offset <= position < header.next_offset else None


class AbortedProducers:
    """Tells batches of aborted transactions, given where each of those begins, while reading forwards."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._current: set[int] = set()

    def has(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._upcoming and self._upcoming[-1].first_offset <= header.last_offset:
            self._current.add(self._upcoming.pop().producer_id)
        if header.producer_id not in self._current:
            return False
        if header.is_control:
            marker = next(iter_records(batch))
            if marker.key is not None and marker.key[2:4] == ABORT_MARKER:
                self._current.discard(header.producer_id)
        return header.is_transactional
