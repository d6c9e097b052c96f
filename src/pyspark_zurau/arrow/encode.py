"""Rows of Arrow become records, without a Python object for each: buffers in, the insides of batches out."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_zurau.arrow.layout import Cells, HeaderCells, Numbers, Packed
from zurau.errors import SettingsError
from zurau.ports import Buffer

try:
    from pyspark_zurau.arrow._encode import choose_partitions, encode
except ImportError:  # nothing could be compiled where this was installed
    from pyspark_zurau.arrow.pure_encode import choose_partitions, encode


def by_topic(rows: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each topic: all of them for the one that was given, else as their `topic` column says."""
    if topic is not None:
        yield topic, rows
        return
    column = rows.column("topic")
    if column.null_count:
        raise SettingsError(
            "a row has no topic: its topic column is null; fill it, or set the option topic for all rows"
        )
    names = pc.unique(column)
    for name in names:
        yield name.as_py(), rows if len(names) == 1 else rows.filter(pc.equal(column, name))


def pack(
    topic: str,
    rows: pa.RecordBatch,
    *,
    partition_count: int,
    fallback: int,
    limit_bytes: int,
    now_ms: int,
    keeps_timestamps: bool = False,
) -> list[Packed]:
    """Rows of one topic as the insides of batches. Those with neither key nor partition go to `fallback`."""
    keys = _cells(rows, "key")
    given = _given_partitions(topic, rows, partition_count)
    partitions = choose_partitions(rows.num_rows, keys, given, partition_count, fallback)
    values = _cells(rows, "value")
    assert values is not None, "the schema was checked"
    moments = _moments(rows, now_ms, keeps_timestamps=keeps_timestamps)
    return encode(rows.num_rows, keys, values, _header_cells(rows), moments, partitions, limit_bytes)


def _moments(rows: pa.RecordBatch, now_ms: int, *, keeps_timestamps: bool) -> Buffer:
    """The timestamp of each row in milliseconds, as int64; now, where a row has none."""
    if not keeps_timestamps:
        column = pa.repeat(pa.scalar(now_ms, pa.int64()), rows.num_rows)
    else:
        microseconds = rows.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        column = pc.fill_null(pc.divide(microseconds, 1000), now_ms)
    data = _bytes(column.buffers()[1]) or b""
    return data[8 * column.offset : 8 * (column.offset + rows.num_rows)]


def _given_partitions(topic: str, rows: pa.RecordBatch, partition_count: int) -> Numbers | None:
    if "partition" not in rows.schema.names:
        return None
    column = rows.column("partition")
    bounds = pc.min_max(column).as_py()
    for number in (bounds["min"], bounds["max"]):
        if number is not None and not 0 <= number < partition_count:
            raise SettingsError(
                f"a row asks for partition {number} of {topic!r}, which has {partition_count}, from 0 on; add some"
                " with `zurau topic`, or leave the partition null and the key decides"
            )
    validity, data = (_bytes(buffer) for buffer in column.buffers())
    return Numbers(validity, data or b"", column.offset)


def _cells(rows: pa.RecordBatch, name: str) -> Cells | None:
    return _cells_of(rows.column(name)) if name in rows.schema.names else None


def _cells_of(column: pa.Array) -> Cells | None:
    if pa.types.is_null(column.type):
        return None
    column = column.cast(pa.binary())
    validity, offsets, data = (_bytes(buffer) for buffer in column.buffers())
    return Cells(validity, offsets or bytes(4), data or b"", column.offset)


def _header_cells(rows: pa.RecordBatch) -> HeaderCells | None:
    if "headers" not in rows.schema.names:
        return None
    column = rows.column("headers")
    pairs = column.values
    if pairs.null_count:
        raise SettingsError("a header is null; leave it out of the list")
    keys, values = _cells_of(pairs.field(0)), _cells_of(pairs.field(1))
    assert keys is not None
    assert values is not None
    validity, offsets = (_bytes(buffer) for buffer in column.buffers()[:2])
    return HeaderCells(validity, offsets or bytes(4), column.offset, _from(keys, pairs), _from(values, pairs))


def _from(cells: Cells, pairs: pa.Array) -> Cells:
    """A struct's fields do not know that the struct itself begins further on."""
    return cells._replace(first=cells.first + pairs.offset)


def _bytes(buffer: pa.Buffer | None) -> Buffer | None:
    return None if buffer is None else memoryview(buffer).cast("B")
