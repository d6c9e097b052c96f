"""Batches as other clients write and read them, with every codec, both ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka.record.default_records
import pytest

from zurau.records.batch import check_crc, parse_header
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.records.record import iter_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its own files in a way that Python 3.11 frowns upon
    import kafka.record.default_records

RECORDS = [
    NewRecord(b"key", b"value" * 200, (("header", b"content"), ("null", None)), timestamp=1_700_000_000_000),
    NewRecord(None, b"no key", timestamp=1_700_000_000_100),
    NewRecord(b"no value", None, timestamp=1_699_999_999_900),
]
EXPECTED = [(offset, r.timestamp, r.key, r.value, list(r.headers)) for offset, r in enumerate(RECORDS)]
LIBRARIES = {"kafka-python": kafka.record.default_records, "aiokafka": aiokafka.record.default_records}

Builder = Callable[..., Any]


@pytest.fixture(params=LIBRARIES)
def library(request) -> Any:
    return LIBRARIES[request.param]


def facts(records: Iterator[Any]) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in records]


@pytest.mark.parametrize("codec", list(Compression))
def test_what_they_write_is_read_here(library, codec):
    builder = library.DefaultRecordBatchBuilder(2, int(codec), 0, 9, 1, 5, 1 << 20)
    for offset, record in enumerate(RECORDS):
        builder.append(
            offset, timestamp=record.timestamp, key=record.key, value=record.value, headers=list(record.headers)
        )
    batch = bytes(builder.build())
    header = parse_header(batch)
    assert facts(iter_records(batch)) == EXPECTED
    assert check_crc(batch, header)
    assert (header.compression, header.producer_id, header.base_sequence) == (codec, 9, 5)


@pytest.mark.parametrize("codec", list(Compression))
def test_what_is_written_here_they_read(library, codec):
    batch = build_batch(RECORDS, compression=codec, producer_id=9, producer_epoch=1, base_sequence=5)
    theirs = library.DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    assert facts(iter(theirs)) == EXPECTED
