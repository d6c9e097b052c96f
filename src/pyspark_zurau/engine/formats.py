"""How values become columns, for each format, as expressions of Spark.

A format turns the binary column `value` into a struct, tells whether that failed, and why. The reason is worked out for
the dead letters only; everybody else asks just whether there is one, which is cheaper.

A value must be all right as a whole: what is no JSON, what does not fit its column, and what is missing from a column
that is `NOT NULL`, is not passed on with a null in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from pyspark_zurau.engine import avro
from pyspark_zurau.engine.declaration import Source
from pyspark_zurau.engine.regex import group_names, in_java
from pyspark_zurau.engine.times import Times

CORRUPT = "_zurau_corrupt"


@dataclass(frozen=True)
class Parser:
    """`parse` makes a struct that holds the columns, and whatever the other two need."""

    parse: Callable[[Column], Column]
    columns: Callable[[Column], dict[str, Column]]
    is_bad: Callable[[Column, Column], Column]
    #: Why; asked for what is bad only.
    reason: Callable[[Column, Column], Column]
    #: Columns that `parse` leaves as texts, since they are times in a form of their own.
    times: Times | None = None


def parser_for(source: Source) -> Parser:
    schema = _schema(source)
    if not source.time_format:
        return _parser(source, schema)
    fields = [_as_text(field) if field.name in source.time_format else field for field in schema.fields]
    return replace(_parser(source, StructType(fields)), times=Times.of(schema, source.time_format))


def _parser(source: Source, schema: StructType) -> Parser:
    match source.format:
        case "json":
            return _json(schema)
        case "csv":
            return _csv(schema, source.separator)
        case "regex":
            return _regex(source, schema)
        case "avro":
            assert source.schema_file is not None
            return _avro(source)
        case _:
            return _text()


def _schema(source: Source) -> StructType:
    found = StructType.fromDDL(source.schema) if source.schema else StructType([])
    assert isinstance(found, StructType)
    if source.format != "regex":
        return found
    given = {field.name: field for field in found.fields}
    times = dict.fromkeys(source.time_format or {}, TimestampType())
    return StructType(
        [
            given.get(name) or StructField(name, times.get(name, StringType()))
            for name in group_names(source.pattern or "")
        ]
    )


def _text() -> Parser:
    return Parser(
        parse=lambda value: F.struct(value.cast("string").alias("value")),
        columns=lambda parsed: {"value": parsed["value"]},
        is_bad=lambda _parsed, value: ~F.is_valid_utf8(value.cast("string")),
        reason=lambda _parsed, _value: F.lit("the value is not UTF-8 text"),
    )


def _json(schema: StructType) -> Parser:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}

    def reason(parsed: Column, value: Column) -> Column:
        text = F.from_json(value.cast("string"), _as_texts(schema))
        document = F.try_parse_json(value.cast("string"))
        return (
            F.when(document.isNull(), F.lit("the value is not JSON"))
            .when(~F.schema_of_variant(document).startswith("OBJECT"), F.lit("the value is not a JSON object"))
            .when(parsed[CORRUPT].isNotNull(), _misfit(parsed, text, schema, "a value in it is not of its type"))
            .otherwise(_missing(parsed, schema))
        )

    return Parser(
        parse=lambda value: F.from_json(value.cast("string"), _with_corrupt(schema), options),
        columns=lambda parsed: _fields(parsed, schema),
        is_bad=lambda parsed, _value: parsed.isNull() | parsed[CORRUPT].isNotNull() | _lacks(parsed, schema),
        reason=reason,
    )


def _csv(schema: StructType, separator: str) -> Parser:
    # A quote within quotes is doubled, as everybody writes it; Spark expects a backslash, and would keep both.
    usual = {"sep": separator, "escape": '"'}
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **usual}
    wrong_width = f"the value does not have {len(schema.fields)} columns"

    def reason(parsed: Column, value: Column) -> Column:
        text = F.from_csv(value.cast("string"), _as_texts(schema).toDDL(), usual)
        return (
            F.when(_is_blank(value), F.lit("the value is empty"))
            .when(parsed[CORRUPT].isNotNull(), _misfit(parsed, text, schema, wrong_width))
            .otherwise(_missing(parsed, schema))
        )

    return Parser(
        parse=lambda value: F.from_csv(value.cast("string"), _with_corrupt(schema).toDDL(), options),
        columns=lambda parsed: _fields(parsed, schema),
        is_bad=lambda parsed, value: _is_blank(value) | parsed[CORRUPT].isNotNull() | _lacks(parsed, schema),
        reason=reason,
    )


def _regex(source: Source, schema: StructType) -> Parser:
    assert source.pattern is not None
    pattern, groups = in_java(source.pattern), group_names(source.pattern)
    not_texts = [field for field in schema.fields if not isinstance(field.dataType, StringType)]

    def parse(value: Column) -> Column:
        line = value.cast("string")
        # A group that took no part is empty in Spark.
        texts = [
            F.nullif(F.regexp_extract(line, pattern, number), F.lit("")).alias(name) for name, number in groups.items()
        ]
        return F.struct(F.rlike(line, F.lit(pattern)).alias("matches"), *texts)

    def typed(parsed: Column, field: StructField) -> Column:
        text = parsed[field.name]
        return text if isinstance(field.dataType, StringType) else text.try_cast(field.dataType)

    def is_misfit(parsed: Column, field: StructField) -> Column:
        return parsed[field.name].isNotNull() & typed(parsed, field).isNull()

    def reason(parsed: Column, _value: Column) -> Column:
        misfits = [F.when(is_misfit(parsed, field), _not_a(parsed[field.name], field)) for field in not_texts]
        no_match = F.when(~parsed["matches"], F.lit("the value does not match the pattern"))
        return F.coalesce(no_match, *misfits, _missing(parsed, schema))

    return Parser(
        parse=parse,
        columns=lambda parsed: {field.name: typed(parsed, field) for field in schema.fields},
        is_bad=lambda parsed, _value: (
            ~parsed["matches"] | _any([is_misfit(parsed, field) for field in not_texts]) | _lacks(parsed, schema)
        ),
        reason=reason,
    )


def _avro(source: Source) -> Parser:
    assert source.schema_file is not None
    schema = avro.spark_schema(source.schema_file)
    decode = avro.decoder(source.schema_file, schema, confluent=source.framing == "confluent")
    return Parser(
        parse=decode,
        columns=lambda parsed: _fields(parsed["row"], schema),
        is_bad=lambda parsed, _value: parsed["reason"].isNotNull(),
        reason=lambda parsed, _value: parsed["reason"],
    )


def _fields(parsed: Column, schema: StructType) -> dict[str, Column]:
    return {field.name: parsed[field.name] for field in schema.fields}


def _misfit(parsed: Column, text: Column, schema: StructType, otherwise: str) -> Column:
    """Which column it was: the first that has a text and no value of its type."""
    misfits = [
        F.when(text[field.name].isNotNull() & parsed[field.name].isNull(), _not_a(text[field.name], field))
        for field in schema.fields
    ]
    return F.coalesce(*misfits, F.lit(otherwise))


def _not_a(text: Column, field: StructField) -> Column:
    start = F.lit(f"column {field.name}: ")
    return F.concat(start, F.substring(text, 1, 60), F.lit(f" is not {field.dataType.simpleString()}"))


def _missing(parsed: Column, schema: StructType) -> Column:
    """The first column that must not be null, and is."""
    absent = [
        F.when(parsed[field.name].isNull(), F.lit(f"column {field.name} is missing"))
        for field in schema.fields
        if not field.nullable
    ]
    return F.coalesce(*absent) if absent else F.lit(None).cast("string")


def _is_blank(value: Column) -> Column:
    return F.trim(value.cast("string")) == ""


def _lacks(parsed: Column, schema: StructType) -> Column:
    return _any([parsed[field.name].isNull() for field in schema.fields if not field.nullable])


def _any(conditions: list[Column]) -> Column:
    found = F.lit(False)
    for condition in conditions:
        found = found | condition
    return found


def _as_texts(schema: StructType) -> StructType:
    return StructType([StructField(field.name, StringType()) for field in schema.fields])


def _as_text(field: StructField) -> StructField:
    return StructField(field.name, StringType(), field.nullable)


def _with_corrupt(schema: StructType) -> StructType:
    """Nullable throughout: what must be there is looked at afterwards, to give a reason."""
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return StructType([*fields, StructField(CORRUPT, StringType())])
