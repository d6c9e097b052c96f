"""Rows to a table in Postgres, exactly once.

Every task copies its rows to a table where they wait, in a transaction of its own and under a name of its own. When all
tasks are done the driver moves what they have copied to the target, in one transaction with a note of the batch. What
tasks copied that failed, or ran twice, has other names and is left behind. A batch whose number is noted already is
passed over.
"""

from __future__ import annotations

import io
import json
import logging
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructField, StructType

from pyspark_zurau.engine.declaration import PostgresTarget
from pyspark_zurau.engine.sinks.latest import latest_of_each_key
from pyspark_zurau.engine.sinks.postgres_tables import BATCHES, WRITER, beside, connect, drop_waiting, named, prepare
from pyspark_zurau.engine.sinks.staging import pass_over, query_id
from zurau.errors import SettingsError

logger = logging.getLogger(__name__)

FORMAT = "zurau_postgres"


@dataclass(frozen=True)
class PostgresBatches:
    target: PostgresTarget
    mode: str
    name: str
    checkpoint: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        query = query_id(rows.sparkSession, self.checkpoint)
        with connect(self.target.dsn) as connection:
            waiting = prepare(connection, self.target, rows.schema, query)
            is_written = last_batch(connection, self.target, query) >= batch_id
        if is_written:
            pass_over(rows)
            return
        batch = Batch(self.target, self.mode, self.name, query, batch_id, waiting)
        newest = rows if self.mode == "complete" else latest_of_each_key(rows, self.target.key, self.target.latest_by)
        rows.sparkSession.dataSource.register(PostgresSink)
        as_text = newest.select(*[_as_text(field) for field in newest.schema.fields])
        as_text.write.format(FORMAT).options(batch=batch.to_text()).mode("append").save()


def clean_up(spark: SparkSession, target: PostgresTarget, checkpoint: str) -> None:
    """What a run leaves behind that nobody needs: between runs no rows wait."""
    try:
        query = query_id(spark, checkpoint)
        with connect(target.dsn) as connection:
            drop_waiting(connection, target, query)
    except (OSError, SettingsError, psycopg.Error) as error:
        logger.warning("tables where rows waited are left at %s: %s", target.table, error)


@dataclass(frozen=True, slots=True)
class Batch:
    """All that tasks and the driver need to know; travels as an option."""

    target: PostgresTarget
    mode: str
    sink: str
    query: str
    number: int
    waiting: str

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Batch:
        fields = json.loads(text)
        return Batch(**fields | {"target": PostgresTarget(**fields["target"])})


@dataclass
class Copied(WriterCommitMessage):
    writer: str
    rows: int


class PostgresSink(DataSource):
    """Spark's way to have tasks write and the driver finish; not meant to be used by name."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return PostgresWriter(Batch.from_text(self.options["batch"]), list(schema.names))


class PostgresWriter(DataSourceArrowWriter):
    def __init__(self, batch: Batch, columns: list[str]) -> None:
        self._batch = batch
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        writer, rows = uuid.uuid4().hex, 0
        target = self._batch.target
        command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            beside(target.table, self._batch.waiting),
            sql.SQL(", ").join(map(sql.Identifier, [*self._columns, WRITER])),
        )
        with connect(target.dsn) as connection, connection.cursor() as cursor, cursor.copy(command) as copy:
            for batch in iterator:
                copy.write(_as_csv(batch, writer))
                rows += batch.num_rows
        return Copied(writer, rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        writers = [message.writer for message in messages if isinstance(message, Copied) and message.rows]
        try:
            with connect(self._batch.target.dsn) as connection:
                finish(connection, self._batch, self._columns, writers)
        except psycopg.errors.CardinalityViolation:
            key = ", ".join(self._batch.target.key)
            raise SettingsError(
                f"two rows of one batch have the same key ({key}); say which one counts with latest_by = 'COLUMN'"
            ) from None

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was copied stays behind, and is dropped with the next batch."""


def last_batch(connection: psycopg.Connection, target: PostgresTarget, query: str) -> int:
    found = connection.execute(
        sql.SQL("SELECT batch FROM {} WHERE query = %s").format(beside(target.table, BATCHES)), [query]
    ).fetchone()
    return -1 if found is None else int(found[0])


def finish(connection: psycopg.Connection, batch: Batch, columns: list[str], writers: list[str]) -> None:
    """One transaction: the note of the batch, and its rows."""
    target = batch.target
    noted = connection.execute(
        sql.SQL(
            "INSERT INTO {0} AS known (query, pipeline_sink, batch) VALUES (%s, %s, %s) ON CONFLICT (query)"
            " DO UPDATE SET batch = excluded.batch, finished = now() WHERE known.batch < excluded.batch"
        ).format(beside(target.table, BATCHES)),
        [batch.query, batch.sink, batch.number],
    )
    if not noted.rowcount:
        return
    if batch.mode == "complete":
        connection.execute(sql.SQL("DELETE FROM {}").format(named(target.table)))
    if target.delete and target.key:
        connection.execute(_delete(batch), [writers])
    connection.execute(_insert(batch, columns), [writers])


def _delete(batch: Batch) -> sql.Composed:
    target = batch.target
    assert target.delete is not None
    same = sql.SQL(" AND ").join(sql.SQL("kept.{0} = gone.{0}").format(sql.Identifier(name)) for name in target.key)
    return sql.SQL("DELETE FROM {} AS kept USING {} AS gone WHERE gone.{} = ANY(%s) AND gone.{} AND {}").format(
        named(target.table),
        beside(target.table, batch.waiting),
        sql.Identifier(WRITER),
        sql.Identifier(target.delete),
        same,
    )


def _insert(batch: Batch, columns: list[str]) -> sql.Composed:
    target = batch.target
    written = [name for name in columns if name != target.delete]
    names = sql.SQL(", ").join(map(sql.Identifier, written))
    remains = sql.SQL(" AND {} IS NOT TRUE").format(sql.Identifier(target.delete)) if target.delete else sql.SQL("")
    insert = sql.SQL("INSERT INTO {} AS kept ({}) SELECT {} FROM {} WHERE {} = ANY(%s){}").format(
        named(target.table), names, names, beside(target.table, batch.waiting), sql.Identifier(WRITER), remains
    )
    if not target.key or batch.mode == "complete":
        return insert
    return insert + _on_conflict(target, written)


def _on_conflict(target: PostgresTarget, written: list[str]) -> sql.Composed:
    key = sql.SQL(", ").join(map(sql.Identifier, target.key))
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in written if name not in target.key]
    if not changes:
        return sql.SQL(" ON CONFLICT ({}) DO NOTHING").format(key)
    update = sql.SQL(" ON CONFLICT ({}) DO UPDATE SET {}").format(key, sql.SQL(", ").join(changes))
    if target.latest_by is None:
        return update
    newer = sql.SQL(" WHERE kept.{0} IS NULL OR excluded.{0} >= kept.{0}").format(sql.Identifier(target.latest_by))
    return update + newer


def _as_text(field: StructField) -> Column:
    """What Arrow's CSV has no form for is put into one that Postgres reads."""
    column = F.col(f"`{field.name}`")
    if isinstance(field.dataType, ArrayType | MapType | StructType):
        return F.to_json(column).alias(field.name)
    if isinstance(field.dataType, BinaryType):
        return F.concat(F.lit("\\x"), F.hex(column)).alias(field.name)
    return column


def _as_csv(batch: pa.RecordBatch, writer: str) -> bytes:
    """Texts are quoted and nulls are not, which is how Postgres tells an empty text from none."""
    batch = batch.append_column(WRITER, pa.array([writer] * batch.num_rows, pa.string()))
    buffer = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    pyarrow.csv.write_csv(batch, buffer, options)
    return buffer.getvalue()
