"""Keeping only the last record of each key.

The part of a log that is new since the last time is read first, to learn the last offset of every key in it. Then all
closed segments up to there are written anew without the records that a later one replaces, small neighbours together
into one, and swapped in. Offsets stay; batches keep their bounds, codec and sequence numbers.

- A *tombstone* (a key with no value) stays for `delete.retention.ms` after the compaction that first saw it, so that
  readers who are behind learn of it. That compaction notes the time in the batch, in the place of the base timestamp,
  as Kafka does (KIP-534); a later one that comes after that time drops the tombstone. The older values of its key are
  gone by then: they went in the compaction that noted the time.
- The last batch of each producer stays, if need be empty: a producer's sequence numbers are learned from it.
- So does the last batch of each segment: a segment that ends before the next one begins has lost its end in a crash,
  and recovery must not take a compacted one for that.
- Batches of transactions stay as they are and replace nothing: which of them were aborted is not known here.
- A segment with damage stays as it is, and nothing is merged across it.
- Batches that cannot be read stay as they are too: an older version or another broker may have taken them. So do those
  with more records than keys can be learned at a time. Nothing is learned from a batch that stays as it is, so its
  tombstones must stay with it. What is behind it keeps its tombstones too: they may be about records in there.
- Memory is bounded by the number of keys that are learned at a time, some 200 bytes each. When there are more, the
  compaction ends where it stopped learning, and the next one goes on from there.

Crash safety: the new files are written beside the old as `.cleaned`, flushed, and renamed to `.swap`, the log last;
that rename is the moment from which recovery completes the swap instead of undoing it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import msgspec

from zurau.errors import Abandoned, CorruptData
from zurau.ids import Offset, ProducerId
from zurau.log.batch_file import Place, SegmentEnd
from zurau.log.files import CLEANED_SUFFIX, SUFFIXES, SWAP_SUFFIX
from zurau.log.segment import NO_TIMESTAMP, Segment
from zurau.log.settings import LogSettings
from zurau.ports import Disk
from zurau.records.batch import DELETE_HORIZON_BIT, HEADER_BYTES, BatchHeader, check_crc, parse_header
from zurau.records.builder import encode_packed, pack_batch
from zurau.records.compression import decompress
from zurau.records.record import UNPACKED_BYTES_MAX, Packed, packed_records
from zurau.settings import INT32_MAX

#: Keys learned at a time: about 100 MB.
KEYS_MAX = 500_000
_DIGEST_BYTES = 16
#: Times beyond are nobody's, and differences between them would not fit into a record.
_TIMESTAMP_MAX = 1 << 62


class CompactionJob:
    """One compaction: made on the loop, run in a worker, concluded on the loop by the log."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segments: Sequence[Segment],
        settings: LogSettings,
        *,
        dirty_from: Offset,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.segments = segments
        self._settings = settings
        self._now_ms = now_ms
        self._last_offsets: dict[bytes, Offset] = {}
        self._last_batches: dict[ProducerId, Offset] = {}
        #: Up to where the log is compacted afterwards. Before the run: from where it is not.
        self.compacted_offset = dirty_from
        #: When the first tombstone that was kept may go, or None if there is none.
        self.horizon_ms: int | None = None
        #: Which segments are replaced by which one. Filled by a run that went well.
        self.results: list[tuple[Sequence[Segment], Segment]] = []
        self._is_abandoned = False
        #: Whether something before the batch that is looked at stays as it is, and may hold records of any key.
        self._hides_keys = False

    def run(self) -> None:
        """The whole work. Blocks; reads only segments that no longer change. Raises `DiskFault` or `CorruptData`."""
        self._learn()
        results = [(group, self._rewrite(group)) for group in self._groups()]
        for _, compacted in results:
            self._commit(compacted)
        self.results = results

    def abandon(self) -> None:
        """End soon, with `Abandoned`: a broker that stops does not wait for the rest. Called by the loop."""
        self._is_abandoned = True

    def left_behind(self) -> list[str]:
        """Files of a run that is not to be concluded. The logs come first: without them the rest means nothing."""
        stems = [segment.stem for segment in self.segments]
        states = (SWAP_SUFFIX, CLEANED_SUFFIX)
        return [stem + suffix + state for suffix in SUFFIXES for state in states for stem in stems]

    def _read(self, segment: Segment, position: int, header: BatchHeader) -> bytes:
        if self._is_abandoned:
            raise Abandoned(f"the compaction of {self._directory} was abandoned")
        batch = segment.batch(Place(header.base_offset, header.last_offset, position, position + header.length))
        if not check_crc(batch, header):
            segment.find_damage()  # the next compaction goes round it
            raise CorruptData(f"{segment.path} is damaged at {position}; run `zurau log check`")
        return batch

    # First pass: what is newest

    def _learn(self) -> None:
        """Find the last offset of each key in what is new, as far as memory allows; and producers' last batches."""
        is_full = False
        for segment in self.segments:
            for position, header in segment.headers():
                if header.producer_id >= 0:
                    self._last_batches[header.producer_id] = header.base_offset
                if header.base_offset < self.compacted_offset or is_full:
                    continue
                content = _Content.read(header, self._read(segment, position, header))
                records = () if content is None else content.records
                if self._last_offsets and len(self._last_offsets) + len(records) > KEYS_MAX:
                    is_full = True
                    continue
                for record in records:
                    if record.key is not None:
                        self._last_offsets[_digest(record.key)] = header.base_offset + record.offset_delta
                self.compacted_offset = header.next_offset
        if not is_full:
            self.compacted_offset = self.segments[-1].end.offset

    # Second pass: what stays

    def _groups(self) -> Iterator[Sequence[Segment]]:
        """Neighbours that fit into one segment, going by their size before."""
        group: list[Segment] = []
        for segment in self.segments:
            if segment.base_offset >= self.compacted_offset:
                break
            if segment.damage:
                # Left alone: its damaged bytes may be all that is left of some records.
                self._hides_keys = True
                if group:
                    yield group
                group = []
                continue
            size = sum(member.size for member in group) + segment.size
            is_far = bool(group) and segment.end.offset - group[0].base_offset > INT32_MAX
            if group and (size > self._settings.segment_bytes or is_far):
                yield group
                group = []
            group.append(segment)
        if group:
            yield group

    def _rewrite(self, group: Sequence[Segment]) -> Segment:
        """One segment, in `.cleaned` files, with what stays of the group."""
        base = group[0].base_offset
        compacted = Segment(
            self._disk, self._directory, SegmentEnd(base, 0), base_offset=base, name_suffix=CLEANED_SUFFIX
        )
        for path in compacted.paths:
            self._disk.remove(path)  # of an earlier run that failed
        file = compacted.file  # there must be one, even if nothing stays
        for segment in group:
            for position, header in segment.headers():
                is_last = segment is group[-1] and position + header.length == segment.size
                batch = self._filter(self._read(segment, position, header), header, is_last=is_last)
                if batch is not None:
                    compacted.append(batch, parse_header(batch), self._settings.index_interval_bytes)
        compacted.index_time()
        file.flush()
        compacted.write_indexes()
        compacted.offset_index.flush()
        compacted.close()
        return compacted

    def _filter(self, batch: bytes, header: BatchHeader, *, is_last: bool) -> bytes | bytearray | None:
        """The batch with what stays of its records, or None if it may go as a whole."""
        content = _Content.read(header, batch)
        if content is None:
            self._hides_keys = self._hides_keys or not header.is_control
            return batch
        records = content.records
        kept = [record for record in records if self._is_kept(record, header)]
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None and header.last_offset < self.compacted_offset and _has_tombstone(kept):
            horizon_ms = min(self._now_ms + self._settings.delete_retention_ms, _TIMESTAMP_MAX)
        elif len(kept) == len(records):
            self._note_horizon(kept, horizon_ms)
            return batch
        if not (kept or is_last or self._last_batches.get(header.producer_id) == header.base_offset):
            return None
        self._note_horizon(kept, horizon_ms)
        return content.rebuild(kept, horizon_ms)

    def _is_kept(self, record: Packed, header: BatchHeader) -> bool:
        if record.key is None:
            return False
        if header.base_offset + record.offset_delta < self._last_offsets.get(_digest(record.key), 0):
            return False
        horizon_ms = header.delete_horizon_ms
        return record.has_value or self._hides_keys or horizon_ms is None or horizon_ms > self._now_ms

    def _note_horizon(self, kept: Sequence[Packed], horizon_ms: int | None) -> None:
        if horizon_ms is not None and not self._hides_keys and _has_tombstone(kept):
            self.horizon_ms = min(horizon_ms, self.horizon_ms if self.horizon_ms is not None else horizon_ms)

    def _commit(self, compacted: Segment) -> None:
        """From here on a crash does not undo it."""
        for path in compacted.paths[1:]:
            if self._disk.exists(path):
                self._disk.rename(path, path.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX)
        self._disk.flush_directory(self._directory)
        self._disk.rename(compacted.path, compacted.path.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX)
        self._disk.flush_directory(self._directory)


class _Content:
    """The records of one batch. Values and headers stay as they are packed: only offsets, times and keys matter."""

    def __init__(self, header: BatchHeader, data: bytes) -> None:
        self._header = header
        self._data = data
        self.records = list(packed_records(header, data))

    @classmethod
    def read(cls, header: BatchHeader, batch: bytes) -> Self | None:
        """None if the batch is to stay as it is."""
        if header.is_control or header.is_transactional or header.record_count > KEYS_MAX:
            return None
        packed = memoryview(batch)[HEADER_BYTES:]
        try:
            content = cls(header, bytes(decompress(packed, header.compression, UNPACKED_BYTES_MAX)) if packed else b"")
        except CorruptData:
            return None
        return content if all(abs(record.timestamp) <= _TIMESTAMP_MAX for record in content.records) else None

    def rebuild(self, kept: Sequence[Packed], horizon_ms: int | None) -> bytearray:
        """A batch of the records that are kept."""
        header, view = self._header, memoryview(self._data)
        base_timestamp = header.base_timestamp if horizon_ms is None else horizon_ms
        payload = bytearray()
        for record in kept:
            rest = view[record.start : record.end]
            encode_packed(payload, record.offset_delta, record.timestamp - base_timestamp, rest)
        max_timestamp = header.max_timestamp
        if not kept or not header.uses_append_time:
            # Of an empty batch there is none, and no index leads to it.
            max_timestamp = max((record.timestamp for record in kept), default=NO_TIMESTAMP)
        facts = msgspec.structs.replace(
            header,
            attributes=header.attributes if horizon_ms is None else header.attributes | DELETE_HORIZON_BIT,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            record_count=len(kept),
        )
        return pack_batch(facts, payload)


def _has_tombstone(records: Sequence[Packed]) -> bool:
    return any(not record.has_value for record in records)


def _digest(key: bytes) -> bytes:
    """Short keys as they are, others by a digest; lengths tell them apart."""
    if len(key) < _DIGEST_BYTES:
        return key
    from hashlib import blake2b  # half a megabyte, which brokers without long keys to compact do without

    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
