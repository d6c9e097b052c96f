"""The compiled encoder and the plain one give the same bytes, and what they pack is read back as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
native = pytest.importorskip("pyspark_zurau.arrow._encode", reason="the encoder was not compiled here")

from pyspark_zurau.arrow import encode, pure_encode
from zurau.records.builder import build_packed_batch
from zurau.records.partitioner import partition_for_key
from zurau.records.record import iter_records

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FIELD = st.none() | st.binary(max_size=30)
ROW = st.fixed_dictionaries(
    {
        "key": FIELD,
        "value": FIELD,
        "partition": st.none() | st.integers(0, 4),
        "timestamp": st.none() | st.datetimes(min_value=datetime(1969, 12, 31), timezones=st.just(UTC)),
        "headers": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.text(max_size=4), "value": FIELD}), max_size=3),
    }
)
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("headers", HEADERS),
    ]
)
NOW_MS = 1_767_225_600_000


@given(st.lists(ROW, max_size=40), st.integers(1, 300), st.integers(0, 3))
def test_both_encoders_give_the_same_bytes(rows, limit_bytes, skipped):
    table = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(skipped)
    keys, values, headers = encode._cells(table, "key"), encode._cells(table, "value"), encode._header_cells(table)
    given_ones = encode._given_partitions("t", table, 5)
    chosen = native.choose_partitions(table.num_rows, keys, given_ones, 5, 2)
    assert chosen == pure_encode.choose_partitions(table.num_rows, keys, given_ones, 5, 2)
    moments = encode._moments(table, NOW_MS, keeps_timestamps=True)
    arguments = (table.num_rows, keys, values, headers, moments, chosen, limit_bytes)
    assert native.encode(*arguments) == pure_encode.encode(*arguments)


@given(st.lists(ROW, max_size=40), st.integers(1, 300))
def test_what_is_packed_can_be_read_back_in_order(rows, limit_bytes):
    table = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    found = {partition: [] for partition in range(5)}
    for packed in encode.pack(
        "t",
        table,
        partition_count=5,
        fallback=3,
        limit_bytes=limit_bytes,
        now_ms=NOW_MS,
        keeps_timestamps=True,
    ):
        first_ms, largest_ms = packed.timestamps_ms
        batch = build_packed_batch(
            packed.payload, packed.record_count, base_timestamp=first_ms, max_timestamp=largest_ms
        )
        records = list(iter_records(batch))
        assert len(records) == 1 or len(packed.payload) <= limit_bytes
        assert largest_ms == max(record.timestamp for record in records)
        found[packed.partition] += [
            (record.key, record.value, record.timestamp, list(record.headers)) for record in records
        ]
    expected = {partition: [] for partition in range(5)}
    for row in rows:
        headers = [(header["key"], header["value"]) for header in row["headers"] or []]
        expected[_partition(row)].append((row["key"], row["value"], _moment_ms(row), headers))
    assert found == expected


def _moment_ms(row: dict[str, object]) -> int:
    """Cut to milliseconds, towards 1970."""
    if row["timestamp"] is None:
        return NOW_MS
    since_1970 = row["timestamp"] - datetime(1970, 1, 1, tzinfo=UTC)
    whole = abs(since_1970) // timedelta(milliseconds=1)
    return whole if since_1970 > timedelta(0) else -whole


def _partition(row: dict[str, object]) -> int:
    if row["partition"] is not None:
        return row["partition"]
    return 3 if row["key"] is None else partition_for_key(row["key"], 5)
