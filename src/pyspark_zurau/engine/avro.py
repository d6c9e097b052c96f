"""Avro values, each one datum without a file around it, decoded by fastavro in Spark's Python workers.

Spark's own Avro source is not in its wheel. Columns follow from the schema, by the rules of Spark's Avro source; what
Spark has no type for is refused with its name.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from zurau.errors import SettingsError

_PRIMITIVES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
    "fixed": BinaryType(),
}
_LOGICAL: dict[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
_CONFLUENT_BYTES = 5


def read_schema(file: Path) -> Any:
    """The schema, without logical types that Spark has no type for: those stay what they are underneath."""
    try:
        return _plain(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} is not an Avro schema: {error}") from None


def spark_schema(file: Path) -> StructType:
    found = _type(read_schema(file), {}, file.name)
    if not isinstance(found, StructType):
        raise SettingsError(f"{file}: the schema must be a record, so that it has columns")
    return found


def decoder(file: Path, schema: StructType, *, confluent: bool) -> Callable[[Column], Column]:
    """A function from a binary column to a struct of `row` and `reason`; one of the two is null."""
    try:
        import fastavro
    except ImportError:
        raise SettingsError('reading Avro needs fastavro: pip install "zurau[avro]"') from None
    try:
        fastavro.parse_schema(read_schema(file))
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise SettingsError(f"{file} is not an Avro schema: {error}") from None
    text = json.dumps(read_schema(file))
    result = StructType([StructField("row", schema), StructField("reason", StringType())])
    arrow = to_arrow_type(result, timezone="UTC")

    def decode(values: pa.Array) -> pa.Array:
        decoded = [
            decode_one(text, value.as_buffer(), confluent=confluent) if value.is_valid else None for value in values
        ]
        return pa.array(decoded, type=arrow)

    # What kind of function it is Spark reads off its hints, of which its own stubs know nothing.
    function: Callable[[Column], Column] = arrow_udf(decode, returnType=result)  # type: ignore[call-overload]
    return function


def decode_one(schema: str, value: Any, *, confluent: bool) -> dict[str, Any]:
    import fastavro

    data = memoryview(value)
    if confluent:
        if len(data) < _CONFLUENT_BYTES or data[0] != 0:
            return {"row": None, "reason": "the value does not begin with a zero and a schema number"}
        data = data[_CONFLUENT_BYTES:]
    stream = io.BytesIO(data)
    try:
        row = fastavro.schemaless_reader(stream, _parsed(schema), None)
    except (
        EOFError,
        IndexError,
        KeyError,
        OverflowError,
        StopIteration,
        TypeError,
        UnicodeDecodeError,
        ValueError,
    ) as error:
        return {"row": None, "reason": f"the value is not Avro of this schema: {str(error) or type(error).__name__}"}
    left_bytes = len(data) - stream.tell()
    if left_bytes:
        return {"row": None, "reason": f"the value is not Avro of this schema: {left_bytes} bytes are left over"}
    return {"row": row, "reason": None}


@lru_cache(maxsize=16)
def _parsed(schema: str) -> Any:
    import fastavro

    return fastavro.parse_schema(json.loads(schema))


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {*_LOGICAL, "decimal"}
    return {
        key: _plain(value) if key in {"type", "items", "values", "fields"} else value
        for key, value in schema.items()
        if key != "logicalType" or value in kept
    }


def _type(schema: Any, named: dict[str, DataType], place: str) -> DataType:
    if isinstance(schema, str):
        found = _PRIMITIVES.get(schema) or named.get(schema)
        if found is None:
            raise SettingsError(f"{place}: the Avro type {schema!r} is not known, or refers to itself")
        return found
    if isinstance(schema, list):
        return _union(schema, named, place)
    kind, logical = schema["type"], schema.get("logicalType")
    if isinstance(kind, dict | list):
        return _type(kind, named, place)
    if kind == "record":
        return _record(schema, named, place)
    if kind == "array":
        return ArrayType(_type(schema["items"], named, f"{place}[]"))
    if kind == "map":
        return MapType(StringType(), _type(schema["values"], named, f"{place}{{}}"))
    if logical == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    found = _LOGICAL.get(logical) or _type(kind, named, place)
    if "name" in schema:
        named[schema["name"]] = found
    return found


def _record(schema: Any, named: dict[str, DataType], place: str) -> StructType:
    fields = []
    for field in schema["fields"]:
        kind = _type(field["type"], named, f"{place}.{field['name']}")
        fields.append(StructField(field["name"], kind))
    found = StructType(fields)
    named[schema["name"]] = found
    if "namespace" in schema:
        named[f"{schema['namespace']}.{schema['name']}"] = found
    return found


def _union(schema: list[Any], named: dict[str, DataType], place: str) -> DataType:
    """One type and null; or two kinds of number, which are one in Spark."""
    kinds = [_type(one, named, place) for one in schema if one != "null"]
    if len(kinds) == 1:
        return kinds[0]
    names = {kind.simpleString() for kind in kinds}
    if names == {"int", "bigint"}:
        return LongType()
    if names == {"float", "double"}:
        return DoubleType()
    raise SettingsError(f"{place}: a union of {' and '.join(sorted(names))} has no column type; use one type and null")
