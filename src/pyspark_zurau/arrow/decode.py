"""Batches as a broker stores them become Arrow record batches, about a megabyte at a time.

A batch's records are decompressed and kept as a *part*; when enough of them are together one of the two decoders turns
them into columns, and here those columns become arrays, by reference. Whatever is damaged stops the reading, and the
error says in which partition and at which offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa

from pyspark_zurau.arrow.layout import HEADERS, KEYS, VALUES, Binary, Columns, HeaderLists, Part
from zurau.client.errors import CorruptRecords
from zurau.errors import CorruptData
from zurau.ids import Offset, TopicPartition
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc
from zurau.records.compression import decompress
from zurau.records.record import UNPACKED_BYTES_MAX

logger = logging.getLogger(__name__)

try:
    from pyspark_zurau.arrow._decode import decode
except ImportError:  # nothing could be compiled where this was installed
    from pyspark_zurau.arrow.pure_decode import decode

    logger.warning(
        "decoding is not compiled here, so Spark reads about four times slower; `zurau version` says what to do"
    )

TARGET_BYTES = 1 << 20
CREATE_TIME, APPEND_TIME = 0, 1


def check(partition: TopicPartition, header: BatchHeader, batch: memoryview) -> None:
    """Raises `CorruptRecords` unless this is a batch as its producer made it."""
    if header.magic != MAGIC:
        raise damaged(partition, header.base_offset, f"a batch of version {header.magic}; only {MAGIC} is known")
    if not check_crc(batch, header):
        raise damaged(partition, header.base_offset, "the checksum does not fit")


def damaged(partition: TopicPartition, offset: Offset, what: object) -> CorruptRecords:
    return CorruptRecords.at(f"{partition} at offset {offset}", what)


class ArrowAssembler:
    """Collects batches of one partition, and gives their records from `start` to before `end`."""

    def __init__(self, schema: pa.Schema, partition: TopicPartition, start: Offset, end: Offset) -> None:
        self._schema = schema
        self._partition = partition
        self._start = start
        self._end = end
        self._wanted = sum(
            flag for name, flag in (("key", KEYS), ("value", VALUES), ("headers", HEADERS)) if name in schema.names
        )
        self._topics, self._partitions = _Repeated(partition.topic), _Repeated(partition.partition)
        self._timestamp_types = {kind: _Repeated(kind) for kind in (CREATE_TIME, APPEND_TIME)}
        self._parts: list[Part] = []
        self._bytes = 0

    def add(self, header: BatchHeader, batch: memoryview) -> list[pa.RecordBatch]:
        """Take in one batch that was checked; what is complete by now comes out. Raises `CorruptRecords`."""
        is_other_kind = self._parts and self._parts[0].header.uses_append_time != header.uses_append_time
        complete = self.finish() if is_other_kind else []
        packed = batch[HEADER_BYTES : header.length]
        if header.record_count == 0 and not packed:
            return complete
        try:
            payload = decompress(packed, header.compression, UNPACKED_BYTES_MAX)
        except CorruptData as error:
            raise damaged(self._partition, header.base_offset, error) from error
        self._parts.append(Part(header, payload))
        self._bytes += len(payload)
        return complete + self.finish() if self._bytes >= TARGET_BYTES else complete

    def skip_to(self, start: Offset) -> list[pa.RecordBatch]:
        """Give what is there, and from now on nothing before `start`."""
        complete = self.finish()
        self._start = start
        return complete

    def finish(self) -> list[pa.RecordBatch]:
        """What is left. Raises `CorruptRecords`."""
        if not self._parts:
            return []
        parts, self._parts = self._parts, []
        size_bytes, self._bytes = self._bytes, 0
        kind = APPEND_TIME if parts[0].header.uses_append_time else CREATE_TIME
        whole = self._record_batch(self._decode(parts), kind)
        slices = max(1, round(size_bytes / TARGET_BYTES))
        rows = -(-whole.num_rows // slices)
        return [whole.slice(start, rows) for start in range(0, whole.num_rows, max(rows, 1))]

    def _decode(self, parts: list[Part]) -> Columns:
        try:
            return decode(parts, self._start, self._end, self._wanted)
        except CorruptData as error:
            if len(parts) > 1:  # one by one, to find out which
                for part in parts:
                    self._decode([part])
            raise damaged(self._partition, parts[0].header.base_offset, error) from error

    def _record_batch(self, columns: Columns, timestamp_type: int) -> pa.RecordBatch:
        count = columns.row_count
        make: dict[str, Callable[[pa.DataType], pa.Array]] = {
            "key": lambda kind: _binary_array(kind, count, columns.keys),
            "value": lambda kind: _binary_array(kind, count, columns.values),
            "topic": lambda kind: self._topics.rows(kind, count),
            "partition": lambda kind: self._partitions.rows(kind, count),
            "offset": lambda kind: pa.Array.from_buffers(kind, count, [None, pa.py_buffer(columns.offsets)]),
            "timestamp": lambda kind: pa.Array.from_buffers(kind, count, [None, pa.py_buffer(columns.timestamps_us)]),
            "timestampType": lambda kind: self._timestamp_types[timestamp_type].rows(kind, count),
            "headers": lambda kind: _header_array(kind, count, columns.headers),
        }
        arrays = [make[field.name](field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Repeated:
    """A column with one value in all rows. It is made once, and again only when there are more rows."""

    def __init__(self, value: str | int) -> None:
        self._value = value
        self._most: pa.Array | None = None

    def rows(self, kind: pa.DataType, count: int) -> pa.Array:
        if self._most is None or len(self._most) < count:
            self._most = pa.repeat(pa.scalar(self._value, kind), count)
        return self._most.slice(0, count)


def _binary_array(kind: pa.DataType, count: int, column: Binary | None) -> pa.Array:
    assert column is not None, "it was wanted"
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, count, buffers, column.null_count)


def _header_array(kind: pa.DataType, count: int, column: HeaderLists | None) -> pa.Array:
    assert column is not None, "it was wanted"
    pair = kind.value_type
    fields = [
        _binary_array(pair.field("key").type, column.header_count, column.keys),
        _binary_array(pair.field("value").type, column.header_count, column.values),
    ]
    pairs = pa.StructArray.from_arrays(fields, fields=[pair.field("key"), pair.field("value")])
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    return pa.Array.from_buffers(
        kind, count, [validity, pa.py_buffer(column.offsets)], column.null_count, children=[pairs]
    )
