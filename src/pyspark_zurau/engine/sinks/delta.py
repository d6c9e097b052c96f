"""Rows to a Delta table, exactly once, through delta-rs: no Java packages are needed.

Executors write the files, as for Parquet; the driver adds them to the table's log in one commit, together with the
query and the batch (Delta's own transaction identifiers). A batch that is in the log is not written again. With a key,
rows are merged instead: delta-rs reads the staged files and rewrites what they change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import SubTreeFileSystem
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_zurau.engine.declaration import DeltaTarget
from pyspark_zurau.engine.sinks.latest import latest_of_each_key
from pyspark_zurau.engine.sinks.staging import StagedFile, discard, move_into_place, pass_over, query_id, stage
from pyspark_zurau.history.store import Lake, is_far
from zurau.errors import SettingsError


@dataclass(frozen=True)
class DeltaBatches:
    target: DeltaTarget
    mode: str
    checkpoint: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        place = self.target.path if is_far(self.target.path) else str(Path(self.target.path).absolute())
        lake = Lake(place)
        store = lake.open()
        query = query_id(rows.sparkSession, self.checkpoint)
        schema = _without(to_arrow_schema(rows.schema, timezone="UTC"), self.target.delete)
        table = _open(place, schema, self.target.partition_by)
        last = table.transaction_version(query)
        if last is not None and last >= batch_id:
            pass_over(rows)
            return
        done = CommitProperties(app_transactions=[Transaction(query, batch_id)])
        label = f"{query[:12]}-{batch_id:08d}"
        if self.mode == "complete":
            self._replace(table, store, stage(rows, lake, label), schema, done)
        elif self.target.key:
            newest = latest_of_each_key(rows, self.target.key, self.target.latest_by)
            self._merge(table, store, stage(newest, lake, label), schema, done)
        else:
            files = stage(rows, lake, label, self.target.partition_by)
            self._append(table, store, files, schema, done)
        discard(store, label)

    def _append(
        self,
        table: DeltaTable,
        store: SubTreeFileSystem,
        files: Sequence[StagedFile],
        schema: pa.Schema,
        done: CommitProperties,
    ) -> None:
        # Files that are not in the log are not in the table, so it does no harm when it ends between these two.
        move_into_place(store, [(file.staged, file.name) for file in files])
        now_ms = int(time.time() * 1000)
        adds: list[AddAction | RemoveAction] = [
            AddAction(file.name, file.size_bytes, file.partition, now_ms, True, json.dumps({"numRecords": file.rows}))
            for file in files
        ]
        table.create_write_transaction(
            adds, "append", schema, list(self.target.partition_by) or None, commit_properties=done
        )

    def _merge(
        self,
        table: DeltaTable,
        store: SubTreeFileSystem,
        files: Sequence[StagedFile],
        schema: pa.Schema,
        done: CommitProperties,
    ) -> None:
        delete, latest_by = self.target.delete, self.target.latest_by
        values = {name: f'source."{name}"' for name in schema.names}
        gone = f'source."{delete}"' if delete else None
        is_newer = f'source."{latest_by}" >= target."{latest_by}"' if latest_by else None
        merger = table.merge(
            _read(store, files, schema, delete),
            " AND ".join(f'target."{name}" = source."{name}"' for name in self.target.key),
            source_alias="source",
            target_alias="target",
            commit_properties=done,
        )
        if gone:
            merger = merger.when_matched_delete(gone)
        merger = merger.when_matched_update(values, is_newer)
        merger.when_not_matched_insert(values, f"NOT coalesce({gone}, false)" if gone else None).execute()

    def _replace(
        self,
        table: DeltaTable,
        store: SubTreeFileSystem,
        files: Sequence[StagedFile],
        schema: pa.Schema,
        done: CommitProperties,
    ) -> None:
        write_deltalake(table, _read(store, files, schema, None), mode="overwrite", commit_properties=done)


def _open(place: str, schema: pa.Schema, partition_by: Sequence[str]) -> DeltaTable:
    """The table, made if it is not there; its columns must be those of the rows."""
    if not DeltaTable.is_deltatable(place):
        if not is_far(place):
            Path(place).mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(place, schema, mode="ignore", partition_by=list(partition_by) or None)
    table = DeltaTable(place)
    has = {field.name for field in table.schema().fields}
    if has != set(schema.names):
        raise SettingsError(
            f"the table {place} has the columns {', '.join(sorted(has))}, and the rows have"
            f" {', '.join(sorted(schema.names))}; select what the table has, or write to another one"
        )
    return table


def _read(
    store: SubTreeFileSystem, files: Sequence[StagedFile], schema: pa.Schema, delete: str | None
) -> pa.RecordBatchReader:
    """The staged rows as a stream, so that they are never all in memory."""
    full = schema.append(pa.field(delete, pa.bool_())) if delete else schema
    if not files:
        return pa.RecordBatchReader.from_batches(full, [])
    staged = ds.dataset([file.staged for file in files], schema=full, format="parquet", filesystem=store)
    return staged.scanner().to_reader()


def _without(schema: pa.Schema, name: str | None) -> pa.Schema:
    return pa.schema([field for field in schema if field.name != name])
