from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from pyspark_zurau.arrow.columns import checked_schema, topic_schema
from zurau.errors import SettingsError


def test_the_columns_are_those_of_the_kafka_connector():
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert topic_schema(with_headers=False).names == names
    assert topic_schema(with_headers=True).names == [*names, "headers"]


def test_a_user_may_choose_columns_in_any_order():
    asked = StructType().add("offset", LongType()).add("value", BinaryType())
    assert checked_schema(asked).names == ["offset", "value"]


def test_a_column_that_topics_do_not_have_is_refused():
    with pytest.raises(SettingsError, match="has no column 'colour'; it has key, value"):
        checked_schema(StructType().add("colour", StringType()))


def test_the_type_of_a_column_cannot_be_chosen():
    with pytest.raises(SettingsError, match="'value' is binary, not string"):
        checked_schema(StructType().add("value", StringType()))
