"""Times as the world writes them: a name for each usual form, or a pattern as Spark's `to_timestamp` takes it.

Only ISO 8601 becomes a timestamp by a cast. The rest is read here, as expressions of Spark: a text that is no time in
the form that was said is null, and so a dead letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DataType, StructType

from pyspark_zurau.engine.problems import did_you_mean
from zurau.errors import SettingsError

ISO = "iso"
SYSLOG = "syslog"
#: How a second is divided.
EPOCHS = {"epoch": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}
PATTERNS = {
    "apache": "dd/MMM/yyyy:HH:mm:ss Z",
    "apache_error": "MMM d HH:mm:ss[.SSSSSS] yyyy",
    "log4j": "yyyy-MM-dd HH:mm:ss,SSS",
    "hdfs": "yyMMdd HHmmss",
}
#: What each usual form looks like, for people.
EXAMPLES = {
    ISO: "2026-01-31T12:00:00.5Z",
    "apache": "31/Jan/2026:12:00:00 +0000",
    "apache_error": "Sat Jan 31 12:00:00.123456 2026",
    SYSLOG: "Jan 31 12:00:00",
    "log4j": "2026-01-31 12:00:00,123",
    "hdfs": "260131 120000",
    "epoch": "1769860800.5",
    "epoch_ms": "1769860800500",
    "epoch_us": "1769860800500000",
    "epoch_ns": "1769860800500000000",
}
_SYSLOG_YEAR = re.compile(rf"{SYSLOG} (\d{{4}})")
_WEEKDAY = r"^[A-Z][a-z]{2},? +"
#: A year is taken from the record; what would then be later than the record by more than this is of the year before.
_AHEAD = "1 day"
_YEAR_1_S, _YEAR_10000_S = -62_135_596_800, 253_402_300_800
_LETTERS = set("GyDMLdahHkKmsSVzOXxZ")


def check_time_format(form: str) -> None:
    """Raise `SettingsError` for what is neither a usual form nor a pattern that can be read."""
    if form in EXAMPLES or _SYSLOG_YEAR.fullmatch(form):
        return
    letters = set(re.findall("[A-Za-z]", re.sub(r"'[^']*'", "", form)))
    if letters & _LETTERS and letters <= _LETTERS and form.count("'") % 2 == 0:
        return
    hint = did_you_mean(form, EXAMPLES)
    raise SettingsError(
        f"{form!r} is neither a pattern like 'dd.MM.yyyy HH:mm:ss' nor a usual form, which are {', '.join(EXAMPLES)}"
        f"{hint if 'did you mean' in hint else ''}"
    )


def needs_record_time(formats: Mapping[str, str] | None) -> bool:
    """Whether a year has to come from the record."""
    return any(form == SYSLOG for form in (formats or {}).values())


@dataclass(frozen=True)
class Times:
    """Columns that come as texts and are times: of a parsed value, a struct of them."""

    types: Mapping[str, DataType]
    formats: Mapping[str, str]

    @classmethod
    def of(cls, schema: StructType, formats: Mapping[str, str]) -> Times:
        return cls({field.name: field.dataType for field in schema.fields if field.name in formats}, formats)

    def read(self, parsed: Column) -> Column:
        columns = [
            _reader(self.formats[name])(parsed[name]).try_cast(kind).alias(name) for name, kind in self.types.items()
        ]
        return F.struct(*columns)

    def are_bad(self, parsed: Column, times: Column) -> Column:
        bad = F.lit(False)
        for name in self.types:
            bad |= parsed[name].isNotNull() & times[name].isNull()
        return bad

    def reason(self, parsed: Column, times: Column) -> Column:
        return F.coalesce(
            *(
                F.when(
                    parsed[name].isNotNull() & times[name].isNull(),
                    F.concat(
                        F.lit(f"column {name}: "),
                        F.substring(parsed[name], 1, 60),
                        F.lit(f" is not a time in the form {self.formats[name]}"),
                    ),
                )
                for name in self.types
            )
        )


def _reader(form: str) -> Callable[[Column], Column]:
    """From a text to a timestamp, or null."""
    if form == ISO:
        return lambda text: text.try_cast("timestamp")
    if form in EPOCHS:
        return lambda text: _since_epoch(text, EPOCHS[form])
    if form == SYSLOG or _SYSLOG_YEAR.fullmatch(form):
        return lambda text: _syslog(text, form)
    if form == "apache_error":
        return lambda text: F.try_to_timestamp(F.regexp_replace(text, _WEEKDAY, ""), F.lit(PATTERNS[form]))
    return lambda text: F.try_to_timestamp(text, F.lit(PATTERNS.get(form, form)))


def _since_epoch(text: Column, divided: int) -> Column:
    seconds = text.try_cast("decimal(38,9)") / F.lit(divided)
    return F.when((seconds >= _YEAR_1_S) & (seconds < _YEAR_10000_S), F.timestamp_seconds(seconds))


def _syslog(text: Column, form: str) -> Column:
    """It has no year; one can be said, else it is the record's, so that a line of December in January is right too."""
    plain = F.regexp_replace(F.trim(text), " +", " ")

    def of(year: Column) -> Column:
        return F.try_to_timestamp(F.concat(year.cast("string"), F.lit(" "), plain), F.lit("yyyy MMM d HH:mm:ss"))

    said = _SYSLOG_YEAR.fullmatch(form)
    if said:
        return of(F.lit(int(said.group(1))))
    arrived = F.col("timestamp")
    this_year, year_before = of(F.year(arrived)), of(F.year(arrived) - 1)
    is_ahead = this_year > arrived + F.expr(f"INTERVAL {_AHEAD}")
    return F.when(this_year.isNull() | is_ahead, year_before).otherwise(this_year)
