from __future__ import annotations

import pytest

from zurau.log.dump import (
    BatchFound,
    DamageFound,
    OffsetEntryFound,
    RecordFound,
    SegmentFound,
    TimeEntryFound,
    dump_log,
)
from zurau.records.batch import seal

DIRECTORY = "logs/t-0"
LOG_0 = f"{DIRECTORY}/{0:020}.log"


@pytest.fixture
def filled(bench, disk):
    bench.fill(15)
    bench.log.close()
    return disk


def found(disk, kind, **options):
    return [finding for finding in dump_log(disk, DIRECTORY, **options) if isinstance(finding, kind)]


def test_segments_and_batches_are_told_in_order(filled):
    assert [(one.base_offset, one.size_bytes) for one in found(filled, SegmentFound)] == [(0, 1000), (10, 500)]
    assert [(one.position, one.header.base_offset) for one in found(filled, BatchFound)][8:12] == [
        (800, 8), (900, 9), (0, 10), (100, 11),
    ]  # fmt: skip


def test_records_are_told_when_asked_for(filled):
    assert found(filled, RecordFound) == []
    assert [one.record.offset for one in found(filled, RecordFound, records=True)] == list(range(15))


def test_index_entries_are_told_with_their_real_offsets(filled):
    assert [one[1:] for one in found(filled, OffsetEntryFound, indexes=True)] == [
        (3, 300),
        (6, 600),
        (9, 900),
        (13, 300),
    ]
    assert [one[1:] for one in found(filled, TimeEntryFound, indexes=True)][-2:] == [(1013, 13), (1014, 14)]


def test_a_sound_log_has_no_damage(filled):
    assert found(filled, DamageFound, records=True, indexes=True) == []


def test_a_wrong_checksum_is_told_and_the_rest_goes_on(filled):
    filled.flip_bit(LOG_0, 299)
    assert found(filled, DamageFound, records=True) == [
        DamageFound(LOG_0, 200, "the batch does not match its checksum")
    ]
    assert len(found(filled, BatchFound)) == 15


def test_a_torn_batch_is_told(filled):
    filled.open(LOG_0).truncate(970)
    assert found(filled, DamageFound) == [DamageFound(LOG_0, 900, "the batch is cut short: 70 of 100 bytes")]


def test_bytes_that_are_no_batch_end_the_segment_but_not_the_log(filled):
    filled.open(LOG_0).append([bytes(100)])
    (damage,) = found(filled, DamageFound)
    assert (damage.position, len(found(filled, BatchFound))) == (1000, 15)


def test_behind_bytes_that_are_no_batch_the_next_one_is_found(filled):
    filled.flip_bit(LOG_0, 208, bit=7)  # the length of the third batch
    assert [one.position for one in found(filled, DamageFound)] == [200]
    assert len(found(filled, BatchFound)) == 14


def test_offsets_that_go_back_are_told(filled):
    filled.open(LOG_0).append([filled.read_file(LOG_0)[:100]])
    assert [one.text for one in found(filled, DamageFound)] == ["offset 0 after offset 9"]


def test_batches_of_another_version_are_told(filled):
    filled.flip_bit(LOG_0, 16)
    assert [one.text for one in found(filled, DamageFound)] == ["the batch is of version 3"]


def test_damaged_indexes_are_told(filled):
    path = f"{DIRECTORY}/{0:020}.index"
    filled.open(path).append([bytes(12)])
    assert [(one.path, one.position) for one in found(filled, DamageFound, indexes=True)] == [(path, 24), (path, 32)]


def test_records_that_cannot_be_read_are_told(filled):
    content = bytearray(filled.read_file(LOG_0)[:100])
    content[61:] = b"\xff" * 39
    seal(content)
    filled.replace_file(LOG_0, bytes(content))
    assert [one.position for one in found(filled, DamageFound, records=True)] == [0]


def test_an_absent_directory_has_nothing_in_it(disk):
    assert list(dump_log(disk, "nowhere")) == []
