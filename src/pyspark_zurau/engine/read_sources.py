"""`[sources.NAME]`: which topics, how their values are read, and where those go that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark_zurau.engine.client_config import read_client_config
from pyspark_zurau.engine.ddl import TIMES, DdlColumn, read_ddl
from pyspark_zurau.engine.declaration import FAIL, FORMATS, NULL_VALUES, Defaults, Source, Watermark
from pyspark_zurau.engine.problems import did_you_mean
from pyspark_zurau.engine.regex import group_names
from pyspark_zurau.engine.table import Table
from pyspark_zurau.engine.times import check_time_format
from pyspark_zurau.options.read_options import parse_stream_options
from pyspark_zurau.options.values import Values
from zurau.errors import SettingsError

RECORD = ("key", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
#: What belongs to one format only.
_OWN_KEYS = {"pattern": "regex", "separator": "csv", "schema_file": "avro", "framing": "avro"}


def read_source(name: str, table: Table, defaults: Defaults, file: Path) -> Source:
    form = table.one_of("format", FORMATS)
    pattern, schema, schema_file = table.text("pattern"), table.text("schema"), table.text("schema_file")
    source = Source(
        name=name,
        bootstrap=table.text("bootstrap") or defaults.bootstrap,
        topics=table.texts("topics"),
        topic_pattern=table.text("topic_pattern"),
        starting=table.text("starting", "earliest") or "earliest",
        options={**defaults.options, **read_client_config(table), **table.flat("options")},
        format=form,
        schema=schema,
        pattern=pattern,
        time_format=_read_time_format(table, form, _columns(table, form, schema, pattern)),
        separator=table.text("separator", ",") or ",",
        schema_file=file.parent / schema_file if schema_file else None,
        framing=table.one_of("framing", ("none", "confluent"), "none"),
        null_values=table.one_of("null_values", NULL_VALUES, "keep" if form == "raw" else "dead_letter"),
        record=_read_record(table),
        watermark=read_watermark(table),
        dead_letter=_read_dead_letter(table, form),
        fail_on_dead=table.share("fail_on_dead"),
    )
    _check_keys(table, source)
    _check_options(table, source)
    return source


def reader_options(source: Source) -> dict[str, str]:
    """What the data source is told."""
    options = {"kafka.bootstrap.servers": source.bootstrap, "startingOffsets": source.starting}
    if source.topic_pattern:
        options["subscribePattern"] = source.topic_pattern
    elif source.topics:
        options["subscribe"] = ",".join(source.topics)
    return options | dict(source.options)


def _read_record(table: Table) -> tuple[str, ...]:
    found = table.texts("record")
    for name in found:
        if name not in RECORD:
            table.report("record", f"a record has no {name!r}; it has {', '.join(RECORD)}")
    return tuple(name for name in found if name in RECORD)


def read_watermark(table: Table) -> Watermark | None:
    if "watermark" not in table:
        return None
    inner = table.table("watermark")
    watermark = Watermark(inner.required_text("column", "time"), inner.required_text("delay", "10 seconds"))
    inner.finish()
    return watermark


def _columns(table: Table, form: str, schema: str | None, pattern: str | None) -> list[DdlColumn]:
    """Those that the file tells; groups of a pattern are texts where nothing else is said."""
    try:
        columns = read_ddl(schema) if schema else []
    except SettingsError as error:
        table.report("schema", str(error))
        return []
    try:
        groups = group_names(pattern) if form == "regex" and pattern else {}
    except re.error:
        return columns
    given = {column.name for column in columns}
    for column in columns if groups else ():
        if column.name not in groups:
            table.report("schema", f"the pattern has no group {column.name!r}{did_you_mean(column.name, groups)}")
    return columns + [DdlColumn(name, "STRING", is_required=False) for name in groups if name not in given]


def _read_time_format(table: Table, form: str, columns: list[DdlColumn]) -> dict[str, str] | None:
    """One for all columns that are times, or a table that names columns."""
    found = table.raw("time_format")
    if found is None:
        return None
    if form not in {"json", "csv", "regex"}:
        table.report("time_format", f"is for json, csv and regex; {form} has no times that are texts")
        return None
    times = [column.name for column in columns if column.type in TIMES]
    if isinstance(found, str):
        found = dict.fromkeys(times, found)
        if not times:
            table.report("time_format", "no column is a TIMESTAMP; say so in schema, or name one: {time = 'apache'}")
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        table.report("time_format", "must be a text, or a table of texts like {time = 'apache'}")
        return None
    known = {column.name: column for column in columns}
    for name, form_of_time in found.items():
        if name not in known:
            table.report("time_format", f"there is no column {name!r}{did_you_mean(name, known)}")
        elif known[name].type not in TIMES and (form != "regex" or known[name].type != "STRING"):
            table.report("time_format", f"column {name} is {known[name].type}; a time is a TIMESTAMP or a DATE")
        try:
            check_time_format(form_of_time)
        except SettingsError as error:
            table.report("time_format", str(error))
    return found


def _read_dead_letter(table: Table, form: str) -> str | None:
    found = table.text("dead_letter")
    if form == "raw":
        if found is not None:
            table.report("dead_letter", "a raw source is not parsed, so there is nothing to send there; leave it out")
        return None
    if not found:
        table.report(
            "dead_letter",
            "where values go that cannot be read is not said; name a topic, or write dead_letter = 'fail' to stop at"
            " the first one",
        )
        return FAIL
    return found


def _check_keys(table: Table, source: Source) -> None:
    for key, owner in _OWN_KEYS.items():
        if key in table and source.format != owner:
            table.report(key, f"is for format = '{owner}'; this one is '{source.format}'")
    if source.format in {"json", "csv"} and not source.schema:
        table.report("schema", f"{source.format} needs one, for example schema = 'time TIMESTAMP, service STRING'")
    if source.format in {"text", "avro", "raw"} and source.schema:
        table.report("schema", f"{source.format} has its own columns; leave it out")
    if source.format == "avro":
        _check_schema_file(table, source.schema_file)
    if source.format == "regex":
        _check_pattern(table, source.pattern)
    if source.format == "raw" and source.record:
        table.report("record", "raw has these columns already; leave it out")
    if source.null_values == "dead_letter" and source.format == "raw":
        table.report("null_values", "raw keeps values as they are; leave it out, or use 'skip'")


def _check_schema_file(table: Table, file: Path | None) -> None:
    if file is None:
        table.report("schema_file", "avro needs one, for example schema_file = 'goal.avsc'")
    elif not file.is_file():
        table.report("schema_file", f"there is no file {file}")


def _check_pattern(table: Table, pattern: str | None) -> None:
    example = r"""pattern = '(?<host>\S+) (?<line>.*)'"""
    if not pattern:
        table.report("pattern", f"regex needs one, for example {example}")
        return
    try:
        if not group_names(pattern):
            table.report("pattern", f"has no named groups, so no columns; for example {example}")
    except re.error as error:
        table.report("pattern", f"is not a regular expression: {error}")


def _check_options(table: Table, source: Source) -> None:
    if source.topics and source.topic_pattern:
        table.report("topic_pattern", "excludes topics; keep one of the two")
        return
    if not source.topics and not source.topic_pattern and "assign" not in Values(source.options):
        table.report("topics", "which topics to read is not said; for example topics = ['web-logs']")
        return
    try:
        parse_stream_options(Values(reader_options(source)))
    except SettingsError as error:
        table.report("", str(error))
