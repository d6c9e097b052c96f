"""Columns as Spark's DDL has them, read without Spark: `time TIMESTAMP NOT NULL, tags ARRAY<STRING>`.

Spark reads the same text again when it runs. This is to find a mistake in a second instead of when Java is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pyspark_zurau.engine.problems import did_you_mean
from zurau.errors import SettingsError

TYPES = {
    "BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE",
    "DECIMAL", "DEC", "NUMERIC", "STRING", "CHAR", "VARCHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ", "TIME", "ARRAY", "MAP", "STRUCT", "VARIANT", "INTERVAL", "VOID",
}  # fmt: skip
TIMES = {"TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE"}
_COLUMN = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>\w+))\s*:?\s+(?P<type>\S.*)", re.DOTALL)
_TYPE = re.compile(r"\w+")
_NOT_NULL = re.compile(r"\bNOT\s+NULL\b", re.IGNORECASE)
_PAIRS = {"<": ">", "(": ")"}


class DdlColumn(NamedTuple):
    name: str
    #: In capitals, without what it is made of: `ARRAY` for `array<int>`.
    type: str
    is_required: bool


def read_ddl(text: str) -> list[DdlColumn]:
    """The columns in their order. Raises `SettingsError` with the one that is wrong."""
    columns = [_column(part) for part in _parts(text)]
    names = [column.name.lower() for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"column {name!r} is there twice")
    return columns


def _column(part: str) -> DdlColumn:
    found = _COLUMN.fullmatch(part)
    if not found:
        raise SettingsError(f"{part.strip()!r} is not a column; write a name and a type, like 'time TIMESTAMP'")
    name = found["name"] or found["quoted"].replace("``", "`")
    kind = _TYPE.match(found["type"])
    word = kind.group().upper() if kind else found["type"]
    if word not in TYPES:
        hint = did_you_mean(word, TYPES)
        raise SettingsError(f"column {name}: {word} is not a type of Spark{hint if 'did you mean' in hint else ''}")
    return DdlColumn(name, word, bool(_NOT_NULL.search(_without_inner(found["type"]))))


def _parts(text: str) -> Iterator[str]:
    """What stands between commas that are in no brackets and no quotes."""
    start, waiting, quote = 0, [], ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "`'\"":
            quote = letter
        elif letter in _PAIRS:
            waiting.append(_PAIRS[letter])
        elif waiting and letter == waiting[-1]:
            waiting.pop()
        elif letter == "," and not waiting:
            yield text[start:place]
            start = place + 1
    if waiting or quote:
        raise SettingsError(f"a {(quote or waiting[-1])!r} is missing in {text[start:].strip()!r}")
    yield text[start:]


def _without_inner(text: str) -> str:
    """NOT NULL of a field within a struct is not that of the column."""
    while (outer := re.sub(r"<[^<>]*>|\([^()]*\)", "", text)) != text:
        text = outer
    return text
