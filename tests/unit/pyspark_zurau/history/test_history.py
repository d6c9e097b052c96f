"""A lake as the past of topics, whatever happens to its files meanwhile."""

from __future__ import annotations

import datetime as dt
import json
import threading

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_zurau.history import history as module
from pyspark_zurau.history.history import History
from pyspark_zurau.lake.compact import compact
from zurau.errors import SettingsError
from zurau.ids import TopicPartition

PARTITION = TopicPartition("orders", 0)
TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64())])


def rows(offsets: range, partition: int = 0, time: dt.datetime = TIME) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([None] * len(offsets), pa.binary()),
            "value": [b"%d" % offset for offset in offsets],
            "headers": pa.array([None] * len(offsets), pa.string()),
            "timestamp": pa.array([time] * len(offsets), pa.timestamp("us", "UTC")),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "offset": pa.array(list(offsets), pa.int64()),
        }
    )


@pytest.fixture
def put(tmp_path):
    """Writes offsets into a file of the lake."""

    def put(
        name: str,
        offsets: range,
        partition: int = 0,
        folder: str = "topic=orders/date=2026-01-01",
        time: dt.datetime = TIME,
    ) -> None:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        hidden = tmp_path / folder / f".{name}"
        pq.write_table(rows(offsets, partition, time), hidden)
        hidden.rename(tmp_path / folder / name)

    return put


@pytest.fixture
def lake(tmp_path):
    return History.at(str(tmp_path))


def offsets_of(lake: History, start: int, end: int) -> list[int]:
    return [offset for batch in lake.read(PARTITION, start, end, SCHEMA) for offset in batch["offset"].to_pylist()]


def test_a_range_is_read_in_order_across_files_and_days(lake, put, monkeypatch):
    monkeypatch.setattr(module, "SLICE_OFFSETS", 7)
    put("b.parquet", range(10, 20), folder="topic=orders/date=2026-01-02")
    put("a.parquet", range(10))
    put("other.parquet", range(50), partition=1)
    put("c.parquet", range(50), folder="topic=payments/date=2026-01-01")
    assert offsets_of(lake, 3, 18) == list(range(3, 18))
    assert lake.extents({"orders"}) == {PARTITION: (0, 20), TopicPartition("orders", 1): (0, 50)}


def test_the_first_record_that_is_not_older_than_a_time_is_found_for_each_partition(lake, put):
    other = TopicPartition("orders", 1)
    put("a.parquet", range(10))
    put("b.parquet", range(10, 20), time=TIME + dt.timedelta(milliseconds=5))
    put("late.parquet", range(20, 30), time=TIME - dt.timedelta(days=1))
    put("other.parquet", range(50), partition=1)
    ms = int(TIME.timestamp() * 1000)
    assert lake.at_times({PARTITION: ms, other: ms}) == {PARTITION: 0, other: 0}
    assert lake.at_times({PARTITION: ms + 1, other: ms}) == {PARTITION: 10, other: 0}
    assert lake.at_times({PARTITION: ms + 6, other: ms + 6}) == {}


def test_a_row_in_two_files_is_read_once(lake, put):
    put("a.parquet", range(10))
    put("b.parquet", range(10, 20))
    put("merged.parquet", range(20))
    assert offsets_of(lake, 0, 20) == list(range(20))


def test_a_batch_that_was_decided_counts_before_its_files_are_in_place(lake, put, tmp_path):
    put("a.parquet", range(10))
    put("part-0.parquet", range(10, 20), folder=".staging/q-1/topic=orders/date=2026-01-01")
    put("part-1.parquet", range(20, 30), folder=".staging/q-2/topic=orders/date=2026-01-01")
    moves = [(".staging/q-1/topic=orders/date=2026-01-01/part-0.parquet", "topic=orders/date=2026-01-01/x.parquet")]
    (tmp_path / ".staging" / "q-1.json").write_text(json.dumps(moves))
    assert offsets_of(lake, 0, 30) == list(range(20))


def test_nothing_is_missed_or_doubled_while_files_are_merged(lake, put, tmp_path):
    done = threading.Event()

    def keep_merging() -> None:
        number = 0
        while not done.is_set():
            number += 1
            put(f"more-{number}.parquet", range(1000 + number, 1001 + number))
            compact(tmp_path)

    for number in range(10):
        put(f"{number}.parquet", range(10 * number, 10 * number + 10))
    merging = threading.Thread(target=keep_merging)
    merging.start()
    try:
        found = [offsets_of(lake, 0, 100) for _ in range(30)]
    finally:
        done.set()
        merging.join()
    assert found == [list(range(100))] * 30


def test_a_lake_that_is_no_archive_is_refused(lake, tmp_path):
    with pytest.raises(SettingsError, match="there is no lake"):
        History.at(str(tmp_path / "nowhere")).extents({"orders"})
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    with pytest.raises(SettingsError, match="is not an archive of topics"):
        lake.extents({"orders"})


def test_a_lake_without_files_has_no_past(lake):
    assert lake.extents({"orders"}) == {}
    assert lake.at_times({PARTITION: 0}) == {}
