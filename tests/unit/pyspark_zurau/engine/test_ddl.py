"""Columns as Spark's DDL has them, read without Spark."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.ddl import read_ddl
from zurau.errors import SettingsError


def test_names_types_and_what_must_be_there_are_found_in_nested_columns():
    text = "id: BIGINT NOT NULL, `a b` decimal(10,2) COMMENT 'x, y', m MAP<STRING, STRUCT<x: INT NOT NULL, y: DATE>>"
    assert read_ddl(text) == [("id", "BIGINT", True), ("a b", "DECIMAL", False), ("m", "MAP", False)]


def test_a_column_that_is_there_twice_is_told():
    with pytest.raises(SettingsError, match="column 'id' is there twice"):
        read_ddl("id INT, Id LONG")
