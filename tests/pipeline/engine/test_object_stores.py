"""Lakes in an object store: a server from PyPI that speaks S3, reached with what is in the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[s3]' flask flask-cors")

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSelector

from pyspark_zurau.engine.declaration import DeltaTarget, IcebergTarget, ParquetTarget
from pyspark_zurau.engine.sinks.parquet import ParquetBatches
from pyspark_zurau.history.history import History
from pyspark_zurau.history.listing import STAGING
from pyspark_zurau.history.store import Lake
from zurau.ids import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id INT, name STRING, version INT"
BUCKET = "lakes"
#: A process of its own: clients that hold Python's lock while they wait would never be answered by a thread.
SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """What the environment of somebody has who may use the store; a bucket is there."""
    from pyarrow.fs import S3FileSystem

    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    keys = {"access_key": "testing", "secret_key": "testing", "region": "us-east-1"}
    S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True, **keys).create_dir(
        BUCKET
    )
    yield {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    server.communicate()


@pytest.fixture
def place(store, monkeypatch, unique) -> str:
    """A place in the store for one lake."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{unique('lake')}"


@pytest.fixture
def checkpoint(tmp_path, unique) -> str:
    """What Spark leaves in a checkpoint before the first batch."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": unique("query")}))
    return str(tmp_path / "checkpoint")


@pytest.fixture
def frame(spark):
    return lambda *rows, schema=SCHEMA: spark.createDataFrame(list(rows), schema)


def parquet_rows(place: str) -> list[dict]:
    lake = ds.dataset("", filesystem=Lake(place).open(), format="parquet", partitioning="hive")
    return sorted(lake.to_table().to_pylist(), key=lambda row: row["id"])


def test_a_batch_that_is_run_again_is_in_parquet_files_of_a_store_once(place, checkpoint, frame):
    write = ParquetBatches(ParquetTarget(place, ("version",), "zstd"), checkpoint)
    write(frame((1, "a", 1), (2, None, None)), 0)
    write(frame((3, "c d/e", 1)), 1)
    write(frame((3, "c d/e", 1)), 1)
    assert [(row["id"], row["name"], row["version"]) for row in parquet_rows(place)] == [
        (1, "a", 1),
        (2, None, None),
        (3, "c d/e", 1),
    ]


def test_files_that_a_killed_driver_did_not_move_are_moved_afterwards(place, checkpoint, frame):
    write = ParquetBatches(ParquetTarget(place, (), "zstd"), checkpoint)
    write(frame((1, "a", 1)), 0)
    lake = Lake(place).open()
    (journal,) = (file.path for file in lake.get_file_info(FileSelector(STAGING)) if file.path.endswith(".json"))
    with lake.open_input_stream(journal) as opened:
        ((staged, name),) = json.loads(opened.read())
    lake.move(name, staged)
    assert ds.dataset("", filesystem=lake, format="parquet").count_rows() == 0
    write(frame((9, "not written: the journal knows better", 9)), 0)
    assert [row["id"] for row in parquet_rows(place)] == [1]


def delta(place: str, checkpoint: str, mode: str = "append", **fields):
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")
    from pyspark_zurau.engine.sinks.delta import DeltaBatches

    usual = {"partition_by": (), "key": (), "latest_by": None, "delete": None}
    return DeltaBatches(DeltaTarget(place, **{**usual, **fields}), mode, checkpoint)


def delta_rows(place: str) -> list[tuple]:
    from deltalake import DeltaTable

    return sorted(tuple(row.values()) for row in DeltaTable(place).to_pyarrow_table().to_pylist())


def test_a_batch_that_is_run_again_is_in_a_delta_table_of_a_store_once(place, checkpoint, frame):
    write = delta(place, checkpoint, partition_by=("name",))
    write(frame((1, "a b", 1), (2, "c", 7)), 0)
    write(frame((3, "c", 1)), 1)
    write(frame((3, "c", 1)), 1)
    assert delta_rows(place) == [(1, "a b", 1), (2, "c", 7), (3, "c", 1)]


def test_rows_are_merged_by_their_key_in_a_delta_table_of_a_store(place, checkpoint, frame):
    write = delta(place, checkpoint, "update", key=("id",), latest_by="version")
    write(frame((1, "a", 1), (2, "b", 1)), 0)
    write(frame((2, "B", 2), (3, "c", 1)), 1)
    write(frame((2, "again", 9)), 1)
    assert delta_rows(place) == [(1, "a", 1), (2, "B", 2), (3, "c", 1)]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_an_archive_in_a_store_is_the_past_of_its_topic(place, kind, new_topic, produce, run_ready_made):
    topic, values = new_topic(2), [b"%d" % number for number in range(50)]
    for partition in (0, 1):
        produce(topic, *values, partition=partition)
    run_ready_made("archive", topics=topic, lake=place, format=kind, batch="60")
    # Spark's own Python processes have the environment with which Spark was started, so this one looks.
    lake, schema = History.at(place), pa.schema([("value", pa.binary()), ("offset", pa.int64())])
    assert lake.extents({topic}) == {TopicPartition(topic, partition): (0, 50) for partition in (0, 1)}
    rows = [row for batch in lake.read(TopicPartition(topic, 1), 5, 45, schema) for row in batch.to_pylist()]
    assert rows == [{"value": values[number], "offset": number} for number in range(5, 45)]


def test_a_batch_that_is_run_again_is_in_an_iceberg_table_of_a_store_once(
    place, store, checkpoint, frame, monkeypatch, tmp_path
):
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install 'zurau[iceberg]'")
    from pyiceberg.utils.config import Config

    from pyspark_zurau.engine.sinks.iceberg import IcebergBatches, open_catalog

    (tmp_path / ".pyiceberg.yaml").write_text(f"""
catalog:
  prod:
    type: sql
    uri: sqlite:///{tmp_path}/catalog.db
    warehouse: {place}
    s3.endpoint: {store["AWS_ENDPOINT_URL"]}
    s3.access-key-id: {store["AWS_ACCESS_KEY_ID"]}
    s3.secret-access-key: {store["AWS_SECRET_ACCESS_KEY"]}
    s3.region: {store["AWS_REGION"]}
""")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    # It was read when PyIceberg was imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    target = IcebergTarget(None, "prod", "shop.orders", ("version",), (), None)
    write = IcebergBatches(target, "append", checkpoint)
    write(frame((1, "a", 1), (2, None, None)), 0)
    write(frame((3, "c", 1)), 1)
    write(frame((3, "c", 1)), 1)
    table = open_catalog(target).load_table(target.table)
    assert table.location().startswith(place)
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2, 3]
