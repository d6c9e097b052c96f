"""How a setting is declared: one typed line beside its room, with its unit, bounds, Kafka's name and doc.

    @dataclass(frozen=True, slots=True)
    class LogSettings:
        retention_ms: int = setting(7 * 24 * HOUR_MS, "retention.ms", at_least=-1, doc="Age at which ...")

Everything else (flags, environment, TOML, DescribeConfigs, the generated page of settings) is read off these lines.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from zurau.errors import SettingsError

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

S = TypeVar("S")

_DECLARED: dict[type, dict[str, Setting]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting; `name` is the field's, `kafka_name` is what Kafka's tools call it."""

    name: str
    kind: type
    default: Any
    kafka_name: str
    #: Kafka's name of the broker-wide default of a topic setting, where it differs ("log.retention.ms").
    broker_name: str
    doc: str
    at_least: int | float | None
    at_most: int | float | None
    choices: tuple[str, ...]

    def parse(self, text: str) -> Any:
        """The typed value of `text`, or a `SettingsError` that says what would be right."""
        value = self._typed(text)
        self.check(value)
        return value

    def nearest(self, text: str) -> Any:
        """As `parse`, but a number that is too small or too large counts as the nearest that is not."""
        value = self._typed(text)
        if self.at_least is not None:
            value = max(value, self.kind(self.at_least))
        if self.at_most is not None:
            value = min(value, self.kind(self.at_most))
        self.check(value)
        return value

    def _typed(self, text: str) -> Any:
        try:
            return _PARSERS[self.kind](text.strip())
        except (ValueError, KeyError):
            raise SettingsError(
                f"{self.kafka_name}={text!r} is not {_KIND_WORDS[self.kind]}; for example {self.text(self.default)!r}"
            ) from None

    def check(self, value: Any) -> None:
        # Asked this way round so that "nan" is refused too.
        if self.at_least is not None and not value >= self.at_least:
            raise SettingsError(f"{self.kafka_name}={value} is too small; use {self.at_least} or more")
        if self.at_most is not None and not value <= self.at_most:
            raise SettingsError(f"{self.kafka_name}={value} is too large; use {self.at_most} or less")
        if self.choices:
            for word in value if isinstance(value, tuple) else (value,):
                if word not in self.choices:
                    raise SettingsError(f"{self.kafka_name}={word!r} is unknown; use one of {', '.join(self.choices)}")

    def text(self, value: Any) -> str:
        """The value as Kafka's tools print it."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)


def setting(
    default: Any,
    kafka_name: str,
    *,
    doc: str,
    broker_name: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: Iterable[str] = (),
) -> Any:
    """Declare a setting as a dataclass field. Types: int, float, bool, str, and tuple (a comma-separated list)."""
    extras = {
        "kafka_name": kafka_name,
        "broker_name": broker_name or kafka_name,
        "doc": doc,
        "at_least": at_least,
        "at_most": at_most,
        "choices": tuple(choices),
    }
    return dataclasses.field(default=default, metadata={"setting": extras})


def settings_of(cls: type) -> dict[str, Setting]:
    """The declared settings of a settings class, by Kafka's name."""
    if cls not in _DECLARED:
        _DECLARED[cls] = _read_declarations(cls)
    return _DECLARED[cls]


def _read_declarations(cls: type) -> dict[str, Setting]:
    hints = typing.get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        extras = field.metadata.get("setting")
        if extras is not None:
            kind = typing.get_origin(hints[field.name]) or hints[field.name]
            found[extras["kafka_name"]] = Setting(field.name, kind, field.default, **extras)
    return found


def with_values(base: S, values: Mapping[str, str]) -> S:
    """A copy of `base` with some settings, named as Kafka does, given as text. Refuses unknown names."""
    declared = settings_of(type(base))
    changes = {}
    for kafka_name, text in values.items():
        if kafka_name not in declared:
            raise SettingsError(f"there is no setting {kafka_name!r}{did_you_mean(kafka_name, declared)}")
        changes[declared[kafka_name].name] = declared[kafka_name].parse(text)
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to append to a message about an unknown name."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _parse_bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_PARSERS: dict[type, Any] = {int: int, float: float, bool: _parse_bool, str: str, tuple: _parse_list}
_KIND_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", tuple: "a list"}
