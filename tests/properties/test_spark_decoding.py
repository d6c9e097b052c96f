"""The compiled decoder and the plain one give the same bytes, or both refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
native = pytest.importorskip("pyspark_zurau.arrow._decode", reason="the decoder was not compiled here")

from pyspark_zurau.arrow import pure_decode
from pyspark_zurau.arrow.layout import HEADERS, KEYS, VALUES, Columns, Part
from zurau.errors import CorruptData
from zurau.records.batch import HEADER_BYTES, parse_header, stamp_append_time
from zurau.records.builder import NewRecord, build_batch

EVERYTHING = KEYS | VALUES | HEADERS
FIELD = st.none() | st.binary(max_size=40)
RECORD = st.builds(
    NewRecord,
    key=FIELD,
    value=FIELD,
    headers=st.lists(st.tuples(st.text(max_size=5), FIELD), max_size=3),
    timestamp=st.integers(-(2**61), 2**61),  # so that differences fit into 64 bits
)
BATCH = st.lists(RECORD, min_size=1, max_size=20)


def part_of(records: list[NewRecord], base_offset: int, *, append_time: int | None = None) -> Part:
    batch = build_batch(records, base_offset=base_offset)
    if append_time is not None:
        stamp_append_time(batch, append_time)
    return Part(parse_header(batch), bytes(batch[HEADER_BYTES:]))


def outcome(decode: Callable[..., Columns], *arguments: object) -> Columns | type[CorruptData]:
    try:
        return decode(*arguments)
    except CorruptData:
        return CorruptData


@given(st.lists(BATCH, max_size=4), st.integers(-5, 90), st.integers(-5, 90), st.integers(0, EVERYTHING))
def test_both_decoders_give_the_same_bytes(batches, start, end, wanted):
    parts = [part_of(records, base_offset=25 * index) for index, records in enumerate(batches)]
    assert native.decode(parts, start, end, wanted) == pure_decode.decode(parts, start, end, wanted)


@given(BATCH, st.integers(-(2**63), 2**63 - 1))
def test_both_decoders_take_the_time_of_the_append(records, append_time):
    parts = [part_of(records, base_offset=0, append_time=append_time)]
    assert native.decode(parts, 0, 99, 0) == pure_decode.decode(parts, 0, 99, 0)


@given(BATCH, st.data())
def test_both_decoders_refuse_the_same_damage(records, data):
    header, payload = part_of(records, base_offset=7)
    broken = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    parts = [Part(header, bytes(broken))]
    assert outcome(native.decode, parts, 0, 99, EVERYTHING) == outcome(pure_decode.decode, parts, 0, 99, EVERYTHING)


@given(BATCH, st.integers(0, 200), st.binary(max_size=200))
def test_both_decoders_refuse_the_same_rubbish(records, count, rubbish):
    header, _ = part_of(records, base_offset=0)
    parts = [Part(type(header)(**{**_fields(header), "record_count": count}), rubbish)]
    assert outcome(native.decode, parts, 0, 99, EVERYTHING) == outcome(pure_decode.decode, parts, 0, 99, EVERYTHING)


def _fields(header: object) -> dict[str, object]:
    return {name: getattr(header, name) for name in header.__struct_fields__}
