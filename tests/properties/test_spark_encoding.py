"""The compiled encoder and the plain one give the same bytes, and what they pack is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
native = pytest.importorskip("pyspark_zurau._encode", reason="the encoder was not compiled here")

from pyspark_zurau import encode, pure_encode
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
        "headers": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.text(max_size=4), "value": FIELD}), max_size=3),
    }
)
SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32()), ("headers", HEADERS)])


@given(st.lists(ROW, max_size=40), st.integers(1, 300), st.integers(0, 3))
def test_both_encoders_give_the_same_bytes(rows, limit_bytes, skipped):
    table = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(skipped)
    keys, values, headers = encode._cells(table, "key"), encode._cells(table, "value"), encode._header_cells(table)
    given_ones = encode._given_partitions("t", table, 5)
    chosen = native.choose_partitions(table.num_rows, keys, given_ones, 5, 2)
    assert chosen == pure_encode.choose_partitions(table.num_rows, keys, given_ones, 5, 2)
    arguments = (table.num_rows, keys, values, headers, chosen, limit_bytes)
    assert native.encode(*arguments) == pure_encode.encode(*arguments)


@given(st.lists(ROW, max_size=40), st.integers(1, 300))
def test_what_is_packed_can_be_read_back_in_order(rows, limit_bytes):
    table = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    found = {partition: [] for partition in range(5)}
    for packed in encode.pack("t", table, partition_count=5, fallback=3, limit_bytes=limit_bytes):
        records = list(iter_records(build_packed_batch(packed.payload, packed.record_count, 1)))
        assert len(records) == 1 or len(packed.payload) <= limit_bytes
        found[packed.partition] += [(record.key, record.value, list(record.headers)) for record in records]
    expected = {partition: [] for partition in range(5)}
    for row in rows:
        headers = [(header["key"], header["value"]) for header in row["headers"] or []]
        expected[_partition(row)].append((row["key"], row["value"], headers))
    assert found == expected


def _partition(row: dict[str, object]) -> int:
    if row["partition"] is not None:
        return row["partition"]
    return 3 if row["key"] is None else partition_for_key(row["key"], 5)
