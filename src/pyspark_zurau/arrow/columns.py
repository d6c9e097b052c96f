"""The columns of a topic, in Spark's words.

Those and their order are Spark's Kafka connector's. A user may ask for some of them only, in any order: what is not
asked for is not copied, which makes reading faster.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from zurau.errors import SettingsError

HEADER_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADER_TYPE,
}


def topic_schema(*, with_headers: bool) -> StructType:
    return StructType([StructField(name, kind) for name, kind in COLUMNS.items() if name != "headers" or with_headers])


def checked_schema(asked: StructType) -> StructType:
    """The user's choice of columns; their types cannot be chosen."""
    for field in asked.fields:
        kind = COLUMNS.get(field.name)
        if kind is None:
            raise SettingsError(f"a topic has no column {field.name!r}; it has {', '.join(COLUMNS)}")
        if field.dataType.simpleString() != kind.simpleString():
            raise SettingsError(
                f"the column {field.name!r} is {kind.simpleString()}, not {field.dataType.simpleString()};"
                " read it so, and cast it afterwards"
            )
    return StructType([StructField(field.name, COLUMNS[field.name]) for field in asked.fields])
