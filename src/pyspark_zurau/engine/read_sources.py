"""`[sources.NAME]`: which topics, how their values are read, and where those go that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark_zurau.engine.client_config import read_client_config
from pyspark_zurau.engine.declaration import FAIL, FORMATS, NULL_VALUES, Source, Usual, Watermark
from pyspark_zurau.engine.regex import group_names
from pyspark_zurau.engine.table import Table
from pyspark_zurau.options import parse_stream_options
from pyspark_zurau.values import Values
from zurau.errors import SettingsError

RECORD = ("key", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
#: What belongs to one format only.
_OWN_KEYS = {"pattern": "regex", "separator": "csv", "schema_file": "avro", "framing": "avro"}


def read_source(name: str, table: Table, usual: Usual, file: Path) -> Source:
    form = table.one_of("format", FORMATS)
    pattern, schema_file = table.text("pattern"), table.text("schema_file")
    source = Source(
        name=name,
        bootstrap=table.text("bootstrap") or usual.bootstrap,
        topics=table.texts("topics"),
        topic_pattern=table.text("topic_pattern"),
        starting=table.text("starting", "earliest") or "earliest",
        options={**usual.options, **read_client_config(table), **table.flat("options")},
        format=form,
        schema=table.text("schema"),
        pattern=pattern,
        separator=table.text("separator", ",") or ",",
        schema_file=file.parent / schema_file if schema_file else None,
        framing=table.one_of("framing", ("none", "confluent"), "none"),
        null_values=table.one_of("null_values", NULL_VALUES, "keep" if form == "raw" else "dead_letter"),
        record=_read_record(table),
        watermark=_read_watermark(table),
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


def _read_watermark(table: Table) -> Watermark | None:
    if "watermark" not in table:
        return None
    inner = table.table("watermark")
    watermark = Watermark(inner.required_text("column", "time"), inner.required_text("delay", "10 seconds"))
    inner.finish()
    return watermark


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
