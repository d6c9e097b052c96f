"""One table from a topic and its archive: each record once, also after kills and while the lake is being merged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_zurau.lake import compact as merging
from zurau.ids import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

#: Of the records that are in the lake only. Those after them are a millisecond younger, and the last ones two.
START_MS = 1_767_225_600_000


#: The topic and its lake are made once: what a test takes from the topic is in the lake.
MADE: list[tuple[str, Path]] = []


@pytest.fixture
def archived(new_topic, produce, run_ready_made, admin, tmp_path):
    """A topic whose head is in the lake only, whose middle is in both, and whose end is in the topic only."""
    if not MADE:
        topic, lake = new_topic(2), tmp_path / "first"
        for part in range(3):
            numbers = [b"%d" % number for number in range(100 * part, 100 * part + 100)]
            for partition in (0, 1):
                produce(topic, *numbers, partition=partition, timestamp_ms=START_MS + part)
            if part < 2:
                run_ready_made("archive", topics=topic, lake=str(lake), batch="60")
        admin.delete_records({TopicPartition(topic, 0): 150, TopicPartition(topic, 1): 20})
        MADE.append((topic, lake))
    ((topic, lake),) = MADE
    return topic, shutil.copytree(lake, tmp_path / "lake")


def kill_archive_while_it_moves(lake: Path) -> None:
    """As it is when it was killed between the journal of its last batch and the moves."""
    (journal,) = (lake / ".staging").glob("*.json")
    for staged, name in json.loads(journal.read_text()):
        (lake / staged).parent.mkdir(parents=True, exist_ok=True)
        (lake / name).rename(lake / staged)


def kill_compaction_before_it_removes(lake: Path) -> None:
    """As it is when it was killed after a merged file got its name: rows are in two files."""
    folder, files = next(merging._folders(lake))
    plan = merging._merge(lake, folder, files[:2])
    (folder / f"{merging.HIDDEN}{plan.merged}").rename(folder / plan.merged)


EVERYTHING = sorted((partition, number, b"%d" % number) for partition in (0, 1) for number in range(300))


def test_a_batch_reads_the_lake_and_goes_on_in_the_topic(archived, read):
    topic, lake = archived
    kill_archive_while_it_moves(lake)
    kill_compaction_before_it_removes(lake)
    rows = read(topic, history=str(lake), includeHeaders="true").collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == EVERYTHING
    assert {(row.topic, row.timestampType, row.headers) for row in rows} == {(topic, 0, None)}


def test_a_stream_begins_in_the_lake_and_survives_retention_under_way(archived, stream, admin):
    topic, lake = archived
    first = stream(topic, history=str(lake), maxOffsetsPerTrigger=70)
    values = first.finish()
    admin.delete_records({TopicPartition(topic, 0): 200})
    again = stream(topic, history=str(lake), maxOffsetsPerTrigger=70)
    assert again.finish() == []
    assert sorted(values) == sorted(value for _, _, value in EVERYTHING)


def test_times_to_begin_and_end_at_are_looked_for_in_both(archived, read):
    topic, lake = archived
    for part in (0, 1, 2):
        rows = read(topic, history=str(lake), startingTimestamp=START_MS + part, endingTimestamp=START_MS + part + 1)
        offsets = sorted((row.partition, row.offset) for row in rows.collect())
        assert offsets == [(partition, 100 * part + number) for partition in (0, 1) for number in range(100)]


def test_a_stream_begins_at_a_time_that_only_the_lake_knows(archived, stream):
    topic, lake = archived
    times = json.dumps({topic: {"0": START_MS + 1, "1": START_MS + 2}})
    values = stream(topic, history=str(lake), startingOffsetsByTimestamp=times).finish()
    assert sorted(values) == sorted(b"%d" % number for number in (*range(100, 300), *range(200, 300)))


def test_records_from_before_the_lake_are_lost_though_it_has_later_ones(archived, read, admin):
    topic, lake = archived
    for file in lake.rglob("*.parquet"):
        table = pq.ParquetFile(file).read()
        pq.write_table(table.filter(pc.field("offset") >= 10), file)
    admin.delete_records({TopicPartition(topic, 1): 200})
    wanted = json.dumps({topic: {"0": 5, "1": 5}})
    with pytest.raises(Exception, match="offsets 5 to 9"):
        read(topic, history=str(lake), startingOffsets=wanted).count()
    assert read(topic, history=str(lake), startingOffsets=wanted, failOnDataLoss="false").count() == 580


def test_a_view_in_the_catalog_is_the_table(archived, spark, broker, unique):
    topic, lake = archived
    table, view = unique("topics").replace("-", "_"), unique("orders").replace("-", "_")
    spark.sql(f"CREATE TABLE {table} (partition INT, offset BIGINT, value BINARY) USING zurau")
    spark.sql(
        f"CREATE VIEW {view} AS SELECT * FROM {table} WITH ('kafka.bootstrap.servers' = '{broker.bootstrap}',"
        f" subscribe = '{topic}', history = '{lake}')"
    )
    rows = spark.sql(f"SELECT * FROM {view}").collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == EVERYTHING


def test_what_neither_topic_nor_lake_has_is_told(archived, read):
    topic, lake = archived
    for file in lake.rglob("*.parquet"):
        file.unlink()
    wanted = json.dumps({topic: {"0": 0, "1": 0}})
    with pytest.raises(Exception, match="Some data may have been missed"):
        read(topic, history=str(lake), startingOffsets=wanted).count()
