"""Rows to a directory of Parquet files, exactly once, with nothing in it that another tool would trip over.

A batch is written to `.staging`, then a journal says which files belong where, then they are moved. After a crash Spark
runs the batch again: without a journal it is written anew, with one the moves are finished and nothing is written. The
journal stays until the next batch, since only that one proves that Spark has noted the last one as done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from pyspark_zurau.engine.declaration import ParquetTarget
from pyspark_zurau.engine.sinks.staging import discard, move_into_place, query_id, stage
from pyspark_zurau.history.listing import STAGING


@dataclass(frozen=True)
class ParquetBatches:
    target: ParquetTarget
    checkpoint: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        directory = Path(self.target.path).absolute()
        query = query_id(rows.sparkSession, self.checkpoint)[:12]
        label = f"{query}-{batch_id:08d}"
        journal = directory / STAGING / f"{label}.json"
        if not journal.exists():
            files = stage(rows, directory, label, self.target.partition_by, self.target.compression)
            moves = [(str(file.staged.relative_to(directory)), file.name) for file in files]
            _write(journal, json.dumps(moves))
        moves = json.loads(journal.read_text(encoding="utf-8"))
        move_into_place([(directory / staged, directory / name) for staged, name in moves])
        discard(directory, label)
        for old in journal.parent.glob(f"{query}-*.json"):
            if old != journal:
                old.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
