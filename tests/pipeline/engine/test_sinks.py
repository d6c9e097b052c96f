"""Sinks that have every row exactly once: what happens when Spark runs a batch again, and to rows with a key."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.declaration import DeltaTarget, IcebergTarget, ParquetTarget, PostgresTarget
from pyspark_zurau.engine.sinks.parquet import ParquetBatches
from zurau.errors import SettingsError

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id INT, name STRING, version INT"
CHANGES = SCHEMA + ", gone BOOLEAN"


@pytest.fixture
def checkpoint(tmp_path, unique):
    """What Spark leaves in a checkpoint before the first batch."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": unique("query")}))
    return str(tmp_path / "checkpoint")


@pytest.fixture
def frame(spark):
    return lambda *rows, schema=SCHEMA: spark.createDataFrame(list(rows), schema)


class Lake:
    """Both kinds of tables in a directory, behind one face."""

    def __init__(self, directory, checkpoint: str) -> None:
        self.directory = directory
        self.write = ParquetBatches(ParquetTarget(str(directory), ("version",), "zstd"), checkpoint)

    def rows(self) -> list[int]:
        return sorted(pq.read_table(self.directory, columns=["id"])["id"].to_pylist())


class DeltaLake(Lake):
    def __init__(self, directory, checkpoint: str, mode: str = "append", **fields) -> None:
        from pyspark_zurau.engine.sinks.delta import DeltaBatches

        usual = {"partition_by": (), "key": (), "latest_by": None, "delete": None}
        self.directory = directory
        self.write = DeltaBatches(DeltaTarget(str(directory), **{**usual, **fields}), mode, checkpoint)

    def table(self):
        from deltalake import DeltaTable

        return DeltaTable(str(self.directory))

    def rows(self) -> list[int]:
        return sorted(row["id"] for row in self.contents())

    def contents(self) -> list[dict]:
        return sorted(self.table().to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


class IcebergLake(Lake):
    def __init__(self, directory, checkpoint: str, mode: str = "append", **fields) -> None:
        from pyspark_zurau.engine.sinks.iceberg import IcebergBatches

        usual = {"path": str(directory), "catalog": None, "partition_by": (), "key": (), "latest_by": None}
        self.directory = directory
        self.target = IcebergTarget(**{"table": "shop.orders", **usual, **fields})
        self.write = IcebergBatches(self.target, mode, checkpoint)

    def table(self):
        from pyspark_zurau.engine.sinks.iceberg import open_catalog

        return open_catalog(self.target).load_table(self.target.table)

    def contents(self) -> list[dict]:
        return sorted(self.table().scan().to_arrow().to_pylist(), key=lambda row: row["id"])

    def rows(self) -> list[int]:
        return [row["id"] for row in self.contents()]


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def lake(request, tmp_path, checkpoint):
    if request.param == "parquet":
        return Lake(tmp_path / "lake", checkpoint)
    if request.param == "iceberg":
        pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install 'zurau[iceberg]'")
        return IcebergLake(tmp_path / "lake", checkpoint, partition_by=("version",))
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")
    return DeltaLake(tmp_path / "lake", checkpoint, partition_by=("version",))


@pytest.fixture
def delta(tmp_path, checkpoint):
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")
    return lambda mode="append", **fields: DeltaLake(tmp_path / "lake", checkpoint, mode, **fields)


def test_a_batch_that_is_run_again_is_in_a_lake_once(lake, frame):
    lake.write(frame((1, "a", 1), (2, None, None)), 0)
    lake.write(frame((3, "c", 1)), 1)
    lake.write(frame((3, "c", 1)), 1)
    assert lake.rows() == [1, 2, 3]


def is_computed(spark, write) -> bool:
    """Whether Spark had work: it keeps its state only if a batch is computed, and the next one builds on that."""
    spark.sparkContext.setJobGroup("again", "a batch that is run again")
    try:
        write()
        return bool(spark.sparkContext.statusTracker().getJobIdsForGroup("again"))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_batch_that_is_in_a_lake_already_is_computed_again(lake, frame, spark):
    lake.write(frame((1, "a", 1)), 0)
    assert is_computed(spark, lambda: lake.write(frame((1, "a", 1)), 0))
    assert lake.rows() == [1]


def test_another_query_adds_its_own_batches_to_the_same_lake(lake, frame, tmp_path):
    lake.write(frame((1, "a", 1)), 0)
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": "another"}))
    lake.write(frame((2, "b", 1)), 0)
    assert lake.rows() == [1, 2]


def test_a_batch_without_rows_leaves_no_file(lake, frame):
    lake.write(frame((1, "a", 1)), 0)
    lake.write(frame(), 1)
    assert lake.rows() == [1]
    assert len(list(lake.directory.rglob("*.parquet"))) == 1


def test_files_that_were_not_moved_before_the_end_are_moved_afterwards(tmp_path, checkpoint, frame):
    lake = Lake(tmp_path / "lake", checkpoint)
    lake.write(frame((1, "a", 1), (2, "b", 2)), 0)
    (journal,) = (tmp_path / "lake" / ".staging").glob("*.json")
    staged, name = json.loads(journal.read_text())[1]
    (lake.directory / staged).parent.mkdir(parents=True)
    shutil.move(lake.directory / name, lake.directory / staged)
    assert lake.rows() == [1]
    lake.write(frame((9, "not written: the journal knows better", 9)), 0)
    assert lake.rows() == [1, 2]


def test_what_an_attempt_left_before_its_journal_is_written_anew(tmp_path, checkpoint, frame):
    lake = Lake(tmp_path / "lake", checkpoint)
    lake.write(frame((1, "a", 1)), 0)
    (journal,) = (tmp_path / "lake" / ".staging").glob("*.json")
    frame((7, "half", 1)).write.parquet(str(journal.with_name(journal.stem.replace("00000000", "00000001"))))
    lake.write(frame((2, "b", 1)), 1)
    assert lake.rows() == [1, 2]


def test_times_in_a_lake_are_of_a_type_that_every_tool_reads(tmp_path, checkpoint, spark):
    target = ParquetTarget(str(tmp_path / "lake"), (), "zstd")
    ParquetBatches(target, checkpoint)(spark.sql("SELECT timestamp'2026-01-01 00:00:00' AS time"), 0)
    (file,) = (tmp_path / "lake").glob("*.parquet")
    assert "Timestamp" in str(pq.ParquetFile(file).schema.column(0).logical_type)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_any_text_can_name_a_folder_of_a_lake(kind, tmp_path, checkpoint, frame, delta):
    names = ["a b", "c:d/e", "50%", "grün", "x=y"]
    lake = delta(partition_by=("name",)) if kind == "delta" else Lake(tmp_path / "lake", checkpoint)
    if kind == "parquet":
        lake.write = ParquetBatches(ParquetTarget(str(lake.directory), ("name",), "zstd"), checkpoint)
    lake.write(frame(*((number, name, 1) for number, name in enumerate(names))), 0)
    rows = lake.contents() if kind == "delta" else pq.read_table(lake.directory).sort_by("id").to_pylist()
    assert [row["name"] for row in rows] == names


def test_delta_merges_rows_by_their_key(delta, frame):
    lake = delta("update", key=("id",))
    lake.write(frame((1, "a", 1), (2, "b", 1)), 0)
    lake.write(frame((2, "B", 2), (3, "c", 1)), 1)
    lake.write(frame((2, "run again, and not written", 2)), 1)
    assert [(row["id"], row["name"]) for row in lake.contents()] == [(1, "a"), (2, "B"), (3, "c")]


def test_delta_keeps_the_latest_of_each_key_and_deletes_what_is_gone(delta, frame):
    lake = delta(key=("id",), latest_by="version", delete="gone")
    lake.write(frame((1, "a", 1, False), (1, "A", 2, False), (2, "b", 1, False), (3, "x", 1, True), schema=CHANGES), 0)
    lake.write(frame((1, "late", 1, False), (2, "b", 2, True), schema=CHANGES), 1)
    assert lake.contents() == [{"id": 1, "name": "A", "version": 2}]


def test_delta_is_replaced_by_a_complete_result(delta, frame):
    lake = delta("complete")
    lake.write(frame((1, "a", 1), (2, "b", 1)), 0)
    lake.write(frame((3, "c", 1)), 1)
    assert lake.rows() == [3]


def test_rows_with_other_columns_than_the_delta_table_are_refused(delta, frame):
    lake = delta()
    lake.write(frame((1, "a", 1)), 0)
    with pytest.raises(SettingsError, match="has the columns id, name, version, and the rows have id"):
        lake.write(frame((1,), schema="id INT"), 1)


def test_iceberg_merges_rows_by_their_key_and_keeps_files_apart_by_column(tmp_path, checkpoint, frame):
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install 'zurau[iceberg]'")
    lake = IcebergLake(tmp_path / "lake", checkpoint, "update", key=("id",), latest_by="version")
    lake.write(frame((1, "a", 1), (1, "A", 2), (2, "b", 1)), 0)
    lake.write(frame((2, "B", 2), (3, "c", 1)), 1)
    lake.write(frame((2, "again", 9)), 1)
    assert [row["name"] for row in lake.contents()] == ["A", "B", "c"]
    apart = IcebergLake(tmp_path / "lake", checkpoint, table="shop.days", partition_by=("version",))
    apart.write(frame((1, "a", 1), (2, "b", 2)), 0)
    assert [task.file.record_count for task in apart.table().scan(row_filter="version = 2").plan_files()] == [1]


class Database:
    def __init__(self, dsn: str, table: str, checkpoint: str) -> None:
        self.dsn, self.table, self.checkpoint = dsn, table, checkpoint

    def sink(self, mode: str = "append", **fields):
        from pyspark_zurau.engine.sinks.postgres import PostgresBatches

        usual = {"key": (), "latest_by": None, "delete": None, "create": True}
        return PostgresBatches(PostgresTarget(self.dsn, self.table, **{**usual, **fields}), mode, "s", self.checkpoint)

    def ask(self, command: str) -> list[tuple]:
        import psycopg

        with psycopg.connect(self.dsn) as connection:
            answer = connection.execute(command)
            return answer.fetchall() if answer.description else []

    def rows(self, columns: str = "id, name") -> list[tuple]:
        return self.ask(f"SELECT {columns} FROM {self.table} ORDER BY 1")


@pytest.fixture
def database(postgres, unique, checkpoint):
    return Database(postgres, unique("t").replace("-", "_"), checkpoint)


def test_a_batch_that_is_run_again_is_in_postgres_once(database, frame):
    write = database.sink()
    write(frame((1, "a", 1), (2, "", 1)), 0)
    write(frame((3, None, 1)), 1)
    write(frame((3, None, 1)), 1)
    assert database.rows() == [(1, "a"), (2, ""), (3, None)]


def test_a_batch_that_is_in_postgres_already_is_computed_again(database, frame, spark):
    write = database.sink()
    write(frame((1, "a", 1)), 0)
    assert is_computed(spark, lambda: write(frame((1, "a", 1)), 0))


def test_postgres_merges_rows_by_their_key(database, frame):
    write = database.sink("update", key=("id",))
    write(frame((1, "a", 1), (2, "b", 1)), 0)
    write(frame((2, "B", 2), (3, "c", 1)), 1)
    assert database.rows() == [(1, "a"), (2, "B"), (3, "c")]


def test_postgres_keeps_the_latest_of_each_key_and_deletes_what_is_gone(database, frame):
    write = database.sink(key=("id",), latest_by="version", delete="gone")
    write(frame((1, "a", 1, False), (1, "A", 2, False), (2, "b", 1, False), (3, "x", 1, True), schema=CHANGES), 0)
    write(frame((1, "late", 1, False), (2, "b", 2, True), schema=CHANGES), 1)
    assert database.rows() == [(1, "A")]


def test_two_rows_with_one_key_need_to_know_which_one_counts(database, frame):
    with pytest.raises(Exception, match=r"two rows of one batch have the same key \(id\); say which one counts"):
        database.sink(key=("id",))(frame((1, "a", 1), (1, "b", 1)), 0)
    assert database.rows() == []


def test_postgres_is_replaced_by_a_complete_result(database, frame):
    write = database.sink("complete")
    write(frame((1, "a", 1), (2, "b", 1)), 0)
    write(frame((3, "c", 1)), 1)
    assert database.rows() == [(3, "c")]


def test_a_batch_that_fails_in_postgres_leaves_nothing_behind(database, frame):
    database.ask(f"CREATE TABLE {database.table} (id INT, name TEXT CHECK (name <> 'bad'), version INT)")
    write = database.sink()
    with pytest.raises(Exception, match="violates check constraint"):
        write(frame((1, "good", 1), (2, "bad", 1)), 0)
    assert database.rows() == []
    write(frame((1, "good", 1)), 0)
    assert database.rows() == [(1, "good")]


def test_every_type_arrives_in_postgres_as_it_was(database, spark):
    rows = spark.sql(
        """SELECT 1 AS id, true AS truth, 2L AS long, 1.5D AS real, 1.25BD AS exact, 'a "b", c' AS name, X'00FF' AS raw,
        date'2026-01-02' AS day, timestamp'2026-01-02 03:04:05.678 UTC' AS time, array(1, 2) AS list,
        named_struct('x', 1) AS inner_, map('k', 'v') AS map"""
    )
    database.sink()(rows, 0)
    texts = ", ".join(f"{name}::text" for name in rows.columns if name != "time")
    (row,) = database.rows(f"{texts}, (time AT TIME ZONE 'UTC')::text")
    assert row == (
        *("1", "true", "2", "1.5", "1.25", 'a "b", c', "\\x00ff", "2026-01-02"),
        *("[1, 2]", '{"x": 1}', '{"k": "v"}', "2026-01-02 03:04:05.678"),
    )
