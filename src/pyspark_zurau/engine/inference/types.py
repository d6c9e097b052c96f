"""The type of a column, from values that were seen in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pyspark_zurau.engine.times import EPOCHS, ISO

#: Texts that are times, by their forms. The first that matches all of a column's texts is taken.
TIME_TEXTS = {
    ISO: r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?",
    "log4j": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}",
    "apache": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "apache_error": r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(\.\d{6})? \d{4}",
    "syslog": r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d",
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE, _NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})"), re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
#: Numbers are times only in columns that are called so.
_TIME_NAME = re.compile(r"(^|_)(time|timestamp|ts|at|date|when|created|updated|epoch)($|_)", re.IGNORECASE)
_EARLIEST_S, _LATEST_S = 10**9, 10**10
_BIGINT_MAX = 2**63 - 1


class Kind(NamedTuple):
    """A type as DDL, and the form of its times where that has to be said."""

    ddl: str
    time_format: str | None = None

    @property
    def is_time(self) -> bool:
        return self.ddl == "TIMESTAMP"


TEXT = Kind("STRING")


def kind_of(name: str, values: Iterable[Any]) -> Kind:
    """Of values as JSON has them; texts that stand for nothing but texts."""
    there = [value for value in values if value is not None]
    if not there:
        return TEXT
    if all(isinstance(value, bool) for value in there):
        return Kind("BOOLEAN")
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in there):
        return _number(name, there)
    if all(isinstance(value, str) for value in there):
        return _text(there)
    if all(isinstance(value, list) for value in there):
        return Kind(f"ARRAY<{kind_of('', [item for value in there for item in value]).ddl}>")
    if all(isinstance(value, dict) and value for value in there):
        names = dict.fromkeys(key for value in there for key in value)
        inner = (f"{quoted(key)}: {kind_of('', [value.get(key) for value in there]).ddl}" for key in names)
        return Kind(f"STRUCT<{', '.join(inner)}>")
    return TEXT


def kind_of_texts(name: str, texts: Iterable[str]) -> Kind:
    """Of texts that may stand for numbers, as CSV and patterns have them; an empty one is null."""
    there = [text for text in texts if text]
    if there and all(_WHOLE.fullmatch(text) for text in there):
        return kind_of(name, map(int, there))
    if there and all(_NUMBER.fullmatch(text) for text in there):
        return kind_of(name, map(float, there))
    if there and all(text.lower() in {"true", "false"} for text in there):
        return Kind("BOOLEAN")
    return _text(there) if there else TEXT


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def _number(name: str, values: list[Any]) -> Kind:
    if _TIME_NAME.search(name):
        for form, divided in EPOCHS.items():
            if all(_EARLIEST_S * divided <= value < _LATEST_S * divided for value in values):
                return Kind("TIMESTAMP", form)
    is_whole = all(isinstance(value, int) and -_BIGINT_MAX <= value <= _BIGINT_MAX for value in values)
    return Kind("BIGINT" if is_whole else "DOUBLE")


def _text(values: list[str]) -> Kind:
    if all(_DATE.fullmatch(value) for value in values):
        return Kind("DATE")
    for form, pattern in TIME_TEXTS.items():
        if all(re.fullmatch(pattern, value) for value in values):
            # ISO needs no saying: Spark takes it by itself.
            return Kind("TIMESTAMP", None if form == ISO else form)
    return TEXT
