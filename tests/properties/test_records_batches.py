"""Batches of anything come back the same; batches of nonsense are refused in an orderly way."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from zurau.errors import CorruptData
from zurau.records.batch import check_crc, parse_header, seal
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression, compress, decompress
from zurau.records.record import iter_records

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.builds(
    NewRecord,
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=200),
    HEADERS,
    timestamp=st.integers(-1, 2**48),
)
CODECS = st.sampled_from(list(Compression))


@given(st.lists(RECORDS, min_size=1, max_size=8), CODECS, st.integers(0, 2**40))
def test_batches_of_anything_come_back_the_same(records, codec, base_offset):
    batch = build_batch(records, compression=codec, base_offset=base_offset)
    assert check_crc(batch, parse_header(batch))
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in iter_records(batch)] == list(map(tuple, records))
    assert [r.offset for r in iter_records(batch)] == list(range(base_offset, base_offset + len(records)))


@given(st.lists(RECORDS, min_size=1, max_size=3), CODECS, st.data())
def test_damaged_batches_are_read_or_refused_but_nothing_else(records, codec, data):
    batch = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(16, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    seal(batch)
    with suppress(CorruptData):
        for record in iter_records(batch, limit_bytes=100_000):
            assert len(record.value or b"") <= 100_000


@given(st.binary(max_size=300), CODECS)
def test_nonsense_is_unpacked_or_refused_but_nothing_else(data, codec):
    with suppress(CorruptData):
        assert len(decompress(data, codec, 10_000)) <= 10_000


@given(st.binary(max_size=5000), CODECS)
def test_what_is_packed_is_unpacked(data, codec):
    assert bytes(decompress(compress(data, codec), codec, max(1, len(data)))) == data
