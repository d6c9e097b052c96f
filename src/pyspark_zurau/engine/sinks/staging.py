"""Files that executors have written and nobody sees yet: in `.staging` of the directory they are for.

Spark writes the files; the driver only gives them their names and their places. A name carries the query and the batch,
so it is told apart from every other, and says where a file comes from.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pyspark_zurau.history.listing import STAGING
from pyspark_zurau.spark.checkpoint_lock import local_path

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class StagedFile:
    staged: Path
    #: Where it belongs, from the directory of all files.
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
    rows: DataFrame, directory: Path, label: str, partition_by: Sequence[str] = (), compression: str = "zstd"
) -> list[StagedFile]:
    """Write rows as Parquet; what a failed attempt had left is replaced. Files without rows are left out."""
    place = directory / STAGING / label
    # Not Spark's default, an old type that few other tools read.
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = rows.write.mode("overwrite").option("compression", compression)
    writer = writer.partitionBy(*partition_by) if partition_by else writer
    writer.parquet(str(place))
    found = []
    for number, file in enumerate(sorted(place.rglob("*.parquet"))):
        row_count = pq.read_metadata(file).num_rows
        if row_count:
            folder = file.parent.relative_to(place)
            name = str(folder / f"part-{label}-{number:05d}.parquet")
            found.append(StagedFile(file, name, row_count, file.stat().st_size, _partition_values(folder)))
    return found


def move_into_place(files: Sequence[tuple[Path, Path]]) -> None:
    """Each file from where it is to where it belongs; those that were moved before are passed over."""
    for staged, final in files:
        if staged.exists():
            final.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(final)


def discard(directory: Path, label: str) -> None:
    shutil.rmtree(directory / STAGING / label, ignore_errors=True)


def _partition_values(folder: Path) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in folder.parts)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs}
