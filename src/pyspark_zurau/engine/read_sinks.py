"""`[sinks.NAME]`: whose rows, and where to. Each kind has keys of its own."""

from __future__ import annotations

from collections.abc import Callable

from pyspark_zurau.engine.client_config import read_client_config
from pyspark_zurau.engine.declaration import (
    MODES,
    ConsoleTarget,
    Defaults,
    DeltaTarget,
    IcebergTarget,
    ParquetTarget,
    PostgresTarget,
    Sink,
    Target,
    TopicTarget,
    Trigger,
)
from pyspark_zurau.engine.table import Table
from pyspark_zurau.history.store import S3
from pyspark_zurau.options.kafka_settings import parse_peer, parse_producer_settings
from pyspark_zurau.options.values import Values
from zurau.errors import SettingsError

CODECS = ("zstd", "snappy", "lz4_raw", "gzip", "uncompressed")


def read_sink(name: str, table: Table, defaults: Defaults, trigger: Trigger) -> Sink:
    kind = table.one_of("kind", tuple(_KINDS))
    mode = table.one_of("mode", MODES, "append")
    table.raw("every")
    origin = table.required_text("from", "requests")
    target = _KINDS[kind](table, defaults)
    if mode != "append" and kind == "parquet":
        table.report("mode", f"{mode}: files can only be added; use mode = 'append', or kind = 'delta' with a key")
    if mode == "update" and isinstance(target, DeltaTarget | IcebergTarget | PostgresTarget) and not target.key:
        table.report("key", "update needs to know which columns tell rows apart; for example key = ['service']")
    return Sink(name, origin, kind, mode, trigger, target)


def _read_topic(table: Table, defaults: Defaults) -> Target:
    form = table.one_of("format", ("json", "raw"), "json")
    target = TopicTarget(
        bootstrap=table.text("bootstrap") or defaults.bootstrap,
        topic=table.text("topic"),
        format=form,
        key=table.text("key"),
        options={**defaults.options, **read_client_config(table), **table.flat("options")},
    )
    if form == "json" and not target.topic:
        table.report("topic", "is missing; for example topic = 'alerts'")
    if form == "raw" and target.key:
        table.report("key", "raw rows have their key in the column key; leave it out")
    try:
        values = Values({"kafka.bootstrap.servers": target.bootstrap, **target.options})
        parse_peer(values, client_id="")
        parse_producer_settings(values)
    except SettingsError as error:
        table.report("", str(error))
    return target


def _read_parquet(table: Table, _defaults: Defaults) -> Target:
    return ParquetTarget(
        _read_path(table, S3), table.texts("partition_by"), table.one_of("compression", CODECS, "zstd")
    )


def _read_delta(table: Table, _defaults: Defaults) -> Target:
    target = DeltaTarget(
        path=_read_path(table, S3),
        partition_by=table.texts("partition_by"),
        key=table.texts("key"),
        latest_by=table.text("latest_by"),
        delete=table.text("delete"),
    )
    _check_key(table, target)
    return target


def _read_iceberg(table: Table, _defaults: Defaults) -> Target:
    target = IcebergTarget(
        path=_read_path(table) if "path" in table else None,
        catalog=table.text("catalog"),
        table=table.required_text("table", "shop.orders"),
        partition_by=table.texts("partition_by"),
        key=table.texts("key"),
        latest_by=table.text("latest_by"),
    )
    if (target.path is None) == (target.catalog is None):
        table.report("path", "needs one of path (a directory) and catalog (one that PyIceberg knows)")
    if target.table and "." not in target.table:
        table.report("table", f"{target.table!r} has no namespace; write it as 'shop.{target.table}'")
    _check_key(table, target)
    return target


def _read_postgres(table: Table, _defaults: Defaults) -> Target:
    target = PostgresTarget(
        dsn=table.required_text("dsn", "postgresql://user@localhost/shop"),
        table=table.required_text("table", "orders"),
        key=table.texts("key"),
        latest_by=table.text("latest_by"),
        delete=table.text("delete"),
        create=table.truth("create", default=True),
    )
    _check_key(table, target)
    return target


def _read_console(table: Table, _defaults: Defaults) -> Target:
    return ConsoleTarget(table.whole("rows", 20))


def _read_path(table: Table, *stores: str) -> str:
    path = table.required_text("path", "lake/requests")
    scheme, colon, rest = path.partition("://")
    if not colon or scheme == "file":
        return rest if colon else path
    if scheme not in stores:
        known = "".join(f"{store}://, or " for store in stores)
        hint = "; a catalog leads to object stores" if not stores else ""
        table.report("path", f"{scheme}:// is not written to; use {known}a directory, also of a mounted one{hint}")
    return path


def _check_key(table: Table, target: DeltaTarget | IcebergTarget | PostgresTarget) -> None:
    for key in ("latest_by", "delete"):
        if getattr(target, key, None) and not target.key:
            table.report(key, "needs a key: the columns that tell rows apart, for example key = ['id']")


_KINDS: dict[str, Callable[[Table, Defaults], Target]] = {
    "topic": _read_topic,
    "parquet": _read_parquet,
    "delta": _read_delta,
    "iceberg": _read_iceberg,
    "postgres": _read_postgres,
    "console": _read_console,
}
