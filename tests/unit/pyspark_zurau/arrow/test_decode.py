from __future__ import annotations

import datetime as dt

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_zurau.arrow import decode as decoding
from pyspark_zurau.arrow import pure_decode
from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.arrow.decode import ArrowAssembler, check
from zurau.client.errors import CorruptRecords
from zurau.ids import TopicPartition
from zurau.records.batch import parse_header, seal, stamp_append_time
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression

PARTITION = TopicPartition("t", 3)
SCHEMA = to_arrow_schema(topic_schema(with_headers=True), timezone="UTC")


@pytest.fixture(autouse=True, params=["compiled", "plain"])
def decoder(request, monkeypatch):
    """Everything here holds for both decoders."""
    if request.param == "plain":
        monkeypatch.setattr(decoding, "decode", pure_decode.decode)
    else:
        native = pytest.importorskip("pyspark_zurau.arrow._decode", reason="the decoder was not compiled here")
        monkeypatch.setattr(decoding, "decode", native.decode)


def read(*batches: bytearray, start: int = 0, end: int = 1 << 60, schema: pa.Schema = SCHEMA) -> list[pa.RecordBatch]:
    assembler = ArrowAssembler(schema, PARTITION, start, end)
    found = []
    for batch in batches:
        header = parse_header(batch)
        check(PARTITION, header, memoryview(batch))
        found += assembler.add(header, memoryview(batch))
    return found + assembler.finish()


def rows(*batches: bytearray, **arguments) -> list[dict[str, object]]:
    return [row for batch in read(*batches, **arguments) for row in batch.to_pylist()]


def test_a_record_becomes_a_row_with_every_column():
    record = NewRecord(b"k", b"v", (("h", b"x"), ("n", None)), timestamp=1_500)
    assert rows(build_batch([record], base_offset=8)) == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "t",
            "partition": 3,
            "offset": 8,
            "timestamp": dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
        }
    ]


def test_nulls_stay_nulls_and_empty_stays_empty():
    found = rows(build_batch([NewRecord(None, b""), NewRecord(b"", None)]))
    assert [(row["key"], row["value"], row["headers"]) for row in found] == [(None, b"", None), (b"", None, None)]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_read(codec):
    records = [NewRecord(b"k%d" % index, b"v" * index) for index in range(50)]
    assert [row["value"] for row in rows(build_batch(records, compression=codec))] == [r.value for r in records]


def test_records_outside_the_range_are_left_out():
    batch = build_batch([NewRecord(None, b"%d" % index) for index in range(10)], base_offset=100)
    assert [row["offset"] for row in rows(batch, start=103, end=106)] == [103, 104, 105]


def test_batches_with_the_time_of_the_append_are_told_apart():
    stamped = build_batch([NewRecord(None, b"b", timestamp=1)], base_offset=1)
    stamp_append_time(stamped, 9_000)
    found = rows(build_batch([NewRecord(None, b"a", timestamp=1)]), stamped)
    assert [(row["timestampType"], row["timestamp"].timestamp()) for row in found] == [(0, 0.001), (1, 9.0)]


def test_only_the_columns_of_the_schema_are_made():
    schema = pa.schema([("offset", pa.int64()), ("value", pa.binary())])
    assert rows(build_batch([NewRecord(b"k", b"v")], base_offset=4), schema=schema) == [{"offset": 4, "value": b"v"}]


def test_small_batches_are_put_together_and_large_ones_are_cut():
    small = [build_batch([NewRecord(None, b"x" * 100)], base_offset=index) for index in range(20)]
    assert [batch.num_rows for batch in read(*small)] == [20]
    large = build_batch([NewRecord(None, b"x" * 1000)] * 4_000)
    assert [batch.num_rows for batch in read(large)] == [1000] * 4


def test_a_checksum_that_does_not_fit_names_partition_and_offset():
    batch = build_batch([NewRecord(b"k", b"v")], base_offset=77)
    batch[-1] ^= 1
    with pytest.raises(CorruptRecords, match="t-3 at offset 77: the checksum does not fit"):
        read(batch)


def test_a_damaged_record_behind_a_good_checksum_names_its_own_batch():
    good = build_batch([NewRecord(b"k", b"v")], base_offset=5)
    bad = build_batch([NewRecord(b"k", b"v")], base_offset=6)
    bad[-1] = 99
    seal(bad)
    with pytest.raises(CorruptRecords, match="t-3 at offset 6"):
        read(good, bad)


def test_bytes_that_do_not_decompress_name_partition_and_offset():
    batch = build_batch([NewRecord(b"k", b"v" * 500)], base_offset=9, compression=Compression.GZIP)
    batch[75] ^= 0xFF
    seal(batch)
    with pytest.raises(CorruptRecords, match="t-3 at offset 9"):
        read(batch)
