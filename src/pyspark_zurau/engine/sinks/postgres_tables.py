"""Tables in Postgres: the target, the notes about finished batches, and the place where a batch waits.

Column types are given here once, for making a table; a table that is there already keeps its own, and what is written
to it is read by Postgres from text, so any type that can be read from that text will do.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import psycopg
from psycopg import sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_zurau.engine.declaration import PostgresTarget
from zurau.errors import SettingsError

BATCHES = "zurau_batches"
#: Of the waiting rows: who wrote them.
WRITER = "zurau_writer"
CONNECT_TIMEOUT_S = 10
_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamptz",
    TimestampNTZType: "timestamp",
    ArrayType: "jsonb",
    MapType: "jsonb",
    StructType: "jsonb",
}


def connect(dsn: str) -> psycopg.Connection:
    try:
        return psycopg.connect(dsn, connect_timeout=CONNECT_TIMEOUT_S, application_name="zurau")
    except psycopg.Error as error:
        raise SettingsError(f"Postgres cannot be reached: {' '.join(str(error).split())}") from None


def explain_unreachable(dsn: str) -> str | None:
    try:
        connect(dsn).close()
    except SettingsError as error:
        return str(error)
    return None


def named(table: str) -> sql.Identifier:
    """`table` or `schema.table`."""
    return sql.Identifier(*table.split("."))


def beside(table: str, name: str) -> sql.Identifier:
    """Another table in the same schema."""
    return sql.Identifier(*table.split(".")[:-1], name)


def column_names(schema: StructType, target: PostgresTarget) -> list[str]:
    """Those that are written: the one that says what to delete is not."""
    return [name for name in schema.names if name != target.delete]


def prepare(connection: psycopg.Connection, target: PostgresTarget, schema: StructType, query: str) -> str:
    """Make what is missing, and empty the place where rows wait. Gives its name."""
    waiting = waiting_table(query, schema)
    # Postgres stumbles when two make the same table in the same moment.
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('zurau'))")
    connection.execute(
        sql.SQL(
            "CREATE TABLE IF NOT EXISTS {} (query text PRIMARY KEY, pipeline_sink text NOT NULL,"
            " batch bigint NOT NULL, finished timestamptz NOT NULL DEFAULT now())"
        ).format(beside(target.table, BATCHES))
    )
    if target.create:
        connection.execute(_create_target(target, schema))
    drop_waiting(connection, target, query, but=waiting)
    columns = sql.SQL(", ").join(map(sql.Identifier, column_names(schema, target)))
    place = beside(target.table, waiting)
    flag = sql.SQL(", false AS {}").format(sql.Identifier(target.delete)) if target.delete else sql.SQL("")
    connection.execute(
        sql.SQL("CREATE UNLOGGED TABLE IF NOT EXISTS {} AS SELECT ''::text AS {}, {}{} FROM {} WITH NO DATA").format(
            place, sql.Identifier(WRITER), columns, flag, named(target.table)
        )
    )
    connection.execute(sql.SQL("TRUNCATE {}").format(place))
    return waiting


def waiting_table(query: str, schema: StructType) -> str:
    """A name for each query, and for each set of columns that it has had."""
    return f"{_waiting_prefix(query)}{zlib.crc32(schema.simpleString().encode()):08x}"


def drop_waiting(connection: psycopg.Connection, target: PostgresTarget, query: str, *, but: str = "") -> None:
    """The places where rows of a query waited; all of them, or all but one."""
    *schema, _ = target.table.split(".")
    found = connection.execute(
        "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND starts_with(relname::text, %s) AND relname <> %s"
        " AND relnamespace = coalesce(to_regnamespace(%s), current_schema()::regnamespace)",
        [_waiting_prefix(query), but, schema[0] if schema else None],
    ).fetchall()
    for (name,) in found:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(beside(target.table, name)))


def _waiting_prefix(query: str) -> str:
    return f"zurau_waiting_{query[:12]}_"


def find_misfits(target: PostgresTarget, schema: StructType) -> list[str]:
    """What of the rows the table has no place for; nothing where it is still to be made."""
    try:
        with connect(target.dsn) as connection:
            found = connection.execute(
                "SELECT to_regclass(%s)::oid", [named(target.table).as_string(connection)]
            ).fetchone()
            if found is None or found[0] is None:
                return [] if target.create else [f"there is no table {target.table!r}, and create = false"]
            has = _columns_of(connection, found[0])
            wanted = [
                f"the table {target.table} has no column {name!r}; it has {', '.join(has)}"
                for name in column_names(schema, target)
                if name not in has
            ]
            return wanted + _find_missing_index(connection, found[0], target)
    except SettingsError:
        return []


def _find_missing_index(connection: psycopg.Connection, table: int, target: PostgresTarget) -> list[str]:
    if not target.key:
        return []
    rows = connection.execute(
        "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
        " AND a.attnum = ANY(i.indkey) WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL"
        " GROUP BY i.indexrelid",
        [table],
    ).fetchall()
    if any(set(row[0]) == set(target.key) for row in rows):
        return []
    columns = ", ".join(target.key)
    what = f"the table {target.table} has no unique index on ({columns}), which its key needs"
    return [f"{what}; make one with CREATE UNIQUE INDEX ON {target.table} ({columns})"]


def _columns_of(connection: psycopg.Connection, table: int) -> list[str]:
    found = connection.execute(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum",
        [table],
    ).fetchall()
    return [row[0] for row in found]


def _create_target(target: PostgresTarget, schema: StructType) -> sql.Composed:
    columns: Sequence[sql.Composable] = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.dataType)))
        for field in schema.fields
        if field.name != target.delete
    ]
    if target.key:
        key = sql.SQL(", ").join(map(sql.Identifier, target.key))
        columns = [*columns, sql.SQL("PRIMARY KEY ({})").format(key)]
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(named(target.table), sql.SQL(", ").join(columns))


def _type(kind: DataType) -> str:
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision}, {kind.scale})"
    found = _TYPES.get(type(kind))
    if found is None:
        raise SettingsError(f"Postgres has no type for {kind.simpleString()}; cast the column to another one")
    return found
