"""Rows to Parquet files in a directory or an object store, exactly once, with nothing there that tools would trip over.

A batch is written to `.staging`, then a journal says which files belong where, then they are moved. After a crash Spark
runs the batch again: without a journal it is written anew, with one the moves are finished and nothing is written. The
journal stays until the next batch, since only that one proves that Spark has noted the last one as done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyarrow.fs import FileSelector, FileSystem
from pyspark.sql import DataFrame

from pyspark_zurau.engine.declaration import ParquetTarget
from pyspark_zurau.engine.sinks.staging import discard, move_into_place, pass_over, query_id, stage
from pyspark_zurau.history.listing import STAGING
from pyspark_zurau.history.store import Lake, is_there


@dataclass(frozen=True)
class ParquetBatches:
    target: ParquetTarget
    checkpoint: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        lake = Lake(self.target.path)
        store = lake.open()
        query = query_id(rows.sparkSession, self.checkpoint)[:12]
        label = f"{query}-{batch_id:08d}"
        journal = f"{STAGING}/{label}.json"
        if not is_there(store, journal):
            files = stage(rows, lake, label, self.target.partition_by, self.target.compression)
            _write(store, journal, json.dumps([(file.staged, file.name) for file in files]))
        else:
            pass_over(rows)
        with store.open_input_stream(journal) as opened:
            moves = json.loads(opened.read())
        move_into_place(store, moves)
        discard(store, label)
        for old in store.get_file_info(FileSelector(STAGING)):
            if old.base_name.startswith(f"{query}-") and old.extension == "json" and old.path != journal:
                store.delete_file(old.path)


def _write(lake: FileSystem, file: str, text: str) -> None:
    """All of it or nothing."""
    fresh = f"{file}.fresh"
    with lake.open_output_stream(fresh) as opened:
        opened.write(text.encode())
    lake.move(fresh, file)
