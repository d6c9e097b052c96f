"""Files that executors have written and nobody sees yet: in `.staging` of the lake they are for.

Executors write the files; the driver only gives them their names and their places. A name carries the query and the
batch, so it is told apart from every other, and says where a file comes from. Into a directory Spark writes by itself.
For object stores it would need Java packages, so there Arrow writes, in the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem
from pyspark.sql import DataFrame, SparkSession

from pyspark_zurau.history.listing import STAGING
from pyspark_zurau.history.store import Lake, is_far, is_there
from pyspark_zurau.spark.checkpoint_lock import local_path

_NULL = "__HIVE_DEFAULT_PARTITION__"
#: What tasks tell of the files they have written to an object store.
_WRITTEN = "path STRING, rows BIGINT, size BIGINT"
#: Arrow's names for codecs that Spark calls otherwise.
_CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}


def pass_over(rows: DataFrame) -> None:
    """For a batch that was written before a crash: its rows go nowhere, and are computed all the same. With them Spark
    keeps the state that the next batch builds on, and it refuses to go on without."""
    rows.write.format("noop").mode("append").save()


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Both places are from the root of the lake."""

    staged: str
    #: Where it belongs.
    name: str
    rows: int
    size_bytes: int
    #: Values of the columns that are in the name of its directory.
    partition: Mapping[str, str | None]


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """Spark's name for a query, which it keeps in the checkpoint: another checkpoint is another query."""
    directory = local_path(checkpoint)
    if directory is not None and directory.exists():
        text = (directory / "metadata").read_text(encoding="utf-8")
    else:
        text = spark.read.text(f"{checkpoint}/metadata").collect()[0][0]
    return str(json.loads(text)["id"]).replace("-", "")


def stage(
    rows: DataFrame, lake: Lake, label: str, partition_by: Sequence[str] = (), compression: str = "zstd"
) -> list[StagedFile]:
    """Write rows as Parquet; what a failed attempt had left does not count. Files without rows are left out."""
    write = _write_far if is_far(lake.location) else _write_near
    written = write(rows, lake, f"{STAGING}/{label}", partition_by, compression)
    found = []
    for number, (path, row_count, size_bytes) in enumerate(sorted(written)):
        folder = Path(path).parent.relative_to(f"{STAGING}/{label}")
        name = str(folder / f"part-{label}-{number:05d}.parquet")
        found.append(StagedFile(path, name, row_count, size_bytes, _partition_values(folder)))
    return [file for file in found if file.rows]


def _write_near(
    rows: DataFrame, lake: Lake, place: str, partition_by: Sequence[str], compression: str
) -> list[tuple[str, int, int]]:
    # Not Spark's default, an old type that few other tools read.
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = rows.write.mode("overwrite").option("compression", compression)
    writer = writer.partitionBy(*partition_by) if partition_by else writer
    root = Path(lake.location.removeprefix("file://")).absolute()
    writer.parquet(str(root / place))
    return [
        (str(file.relative_to(root)), pq.read_metadata(file).num_rows, file.stat().st_size)
        for file in (root / place).rglob("*.parquet")
    ]


def _write_far(
    rows: DataFrame, lake: Lake, place: str, partition_by: Sequence[str], compression: str
) -> list[tuple[str, int, int]]:
    write = _writer(lake, place, list(partition_by), compression)
    return [tuple(row) for row in rows.mapInArrow(write, _WRITTEN).collect()]


def _writer(
    lake: Lake, place: str, partition_by: list[str], compression: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Runs in the tasks. Files of an attempt that failed have names that nobody was told."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import itertools
        import uuid

        import pyarrow.dataset as ds  # brings pandas along, which takes its time

        told = iter(batches)
        first = next(told, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], told))
        written: list[tuple[str, int, int]] = []
        parquet = ds.ParquetFileFormat()
        by = pa.schema([first.schema.field(name) for name in partition_by])
        ds.write_dataset(
            reader,
            place,
            filesystem=lake.open(),
            format=parquet,
            file_options=parquet.make_write_options(compression=_CODECS.get(compression, compression)),
            partitioning=ds.partitioning(by, flavor="hive") if partition_by else None,
            basename_template=f"{uuid.uuid4().hex}-{{i}}.parquet",
            existing_data_behavior="overwrite_or_ignore",
            create_dir=False,
            file_visitor=lambda file: written.append((file.path, file.metadata.num_rows, file.size)),
        )
        if written:
            paths, counts, sizes = zip(*written, strict=True)
            yield pa.RecordBatch.from_pydict({"path": list(paths), "rows": list(counts), "size": list(sizes)})

    return write


def move_into_place(lake: SubTreeFileSystem, files: Iterable[tuple[str, str]]) -> None:
    """Each file from where it is to where it belongs; those that were moved before are passed over."""
    for staged, final in files:
        if is_there(lake, staged):
            if isinstance(lake.base_fs, LocalFileSystem):  # elsewhere folders are but names
                lake.create_dir(str(Path(final).parent))
            lake.move(staged, final)


def discard(lake: FileSystem, label: str) -> None:
    if is_there(lake, f"{STAGING}/{label}"):
        lake.delete_dir(f"{STAGING}/{label}")


def _partition_values(folder: Path) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in folder.parts)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}
