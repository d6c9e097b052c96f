"""Rows to an Iceberg table, exactly once, through PyIceberg: no Java packages are needed.

One commit adds the rows and notes the query and its batch in the table's properties; a batch that is noted is not
written again. Where the table is in a directory, executors write the files, as for Parquet, and the commit takes them
in as they are. Elsewhere (object stores), and where rows replace others, they pass through the driver, which has the
catalog's credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table, Transaction
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_zurau.engine.declaration import IcebergTarget
from pyspark_zurau.engine.sinks.latest import latest_of_each_key
from pyspark_zurau.engine.sinks.staging import discard, move_into_place, pass_over, query_id, stage
from pyspark_zurau.history.store import Lake
from pyspark_zurau.spark.checkpoint_lock import local_path
from zurau.errors import SettingsError

NOTE = "zurau.batch."
#: Copies of the columns that files are divided by: Iceberg wants those in the files, and Spark takes them out.
COPY = "_zurau_by_"


@dataclass(frozen=True)
class IcebergBatches:
    target: IcebergTarget
    mode: str
    checkpoint: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        query = query_id(rows.sparkSession, self.checkpoint)
        schema = to_arrow_schema(rows.schema, timezone="UTC")
        table = open_table(self.target, schema)
        if int(table.properties.get(NOTE + query, -1)) >= batch_id:
            pass_over(rows)
            return
        directory = local_path(table.location())
        label = f"{query[:12]}-{batch_id:08d}"
        with table.transaction() as commit:
            commit.set_properties({NOTE + query: str(batch_id)})
            if self.mode == "complete":
                commit.overwrite(_through_driver(rows, schema))
            elif self.target.key:
                newest = latest_of_each_key(rows, self.target.key, self.target.latest_by)
                commit.upsert(_through_driver(newest, schema), join_cols=list(self.target.key))
            elif directory is None:
                commit.append(_through_driver(rows, schema))
            else:
                self._add_files(commit, rows, directory, label)
        if directory is not None:
            discard(Lake(str(directory)).open(), label)

    def _add_files(self, commit: Transaction, rows: DataFrame, directory: Path, label: str) -> None:
        copies = {COPY + name: F.col(f"`{name}`") for name in self.target.partition_by}
        files = stage(rows.withColumns(copies), Lake(str(directory)), label, list(copies))
        places = {file.staged: f"data/{Path(file.name).name}" for file in files}
        # What is not in a snapshot is not in the table, so it does no harm when it ends between these two.
        move_into_place(Lake(str(directory)).open(), places.items())
        if places:
            # Its name carries the batch, so nobody has added it before.
            commit.add_files([f"file://{directory}/{place}" for place in places.values()], check_duplicate_files=False)


def open_table(target: IcebergTarget, schema: pa.Schema) -> Table:
    """The table, made if it is not there; its columns must be those of the rows."""
    catalog = open_catalog(target)
    try:
        table = catalog.load_table(target.table)
    except NoSuchTableError:
        return _create(catalog, target, schema)
    has = [field.name for field in table.schema().fields]
    if set(has) != set(schema.names):
        raise SettingsError(
            f"the table {target.table} has the columns {', '.join(sorted(has))}, and the rows have"
            f" {', '.join(sorted(schema.names))}; select what the table has, or write to another one"
        )
    return table


def open_catalog(target: IcebergTarget) -> Catalog:
    """One of PyIceberg's own configuration, or one in a file of the warehouse."""
    if target.path is None:
        assert target.catalog is not None
        try:
            return load_catalog(target.catalog)
        except ValueError as error:
            raise SettingsError(
                f"PyIceberg knows no catalog {target.catalog!r} ({error}); describe it in .pyiceberg.yaml, or name a"
                " directory with path"
            ) from None
    directory = Path(target.path).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("zurau", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}")


def _create(catalog: Catalog, target: IcebergTarget, schema: pa.Schema) -> Table:
    catalog.create_namespace_if_not_exists(target.table.rpartition(".")[0])
    table = catalog.create_table(target.table, schema)
    if target.partition_by:
        with table.update_spec() as change:
            for name in target.partition_by:
                change.add_identity(name)
    return table


def _through_driver(rows: DataFrame, schema: pa.Schema) -> pa.Table:
    found: Any = rows.toArrow()
    return found.select(schema.names).cast(schema)
