"""Options are text. Here they become numbers, truths and durations, or an error that names the option."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zurau.errors import SettingsError

_DURATION = re.compile(r"(-?\d+)\s*([a-z]*)", re.IGNORECASE)
_UNIT_MS = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


class Values:
    """The options of one query; their names are the same in upper and lower case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def names(self) -> list[str]:
        """In lower case."""
        return sorted(self._values)

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def required(self, name: str, example: str) -> str:
        text = (self.text(name) or "").strip()
        if not text:
            raise SettingsError(f"the option {name} is missing; for example .option({name!r}, {example!r})")
        return text

    def truth(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in {"true", "false"}:
            raise SettingsError(f"{name}: {text!r} is neither true nor false")
        return text.strip().lower() == "true"

    def whole(self, name: str, *, at_least: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise SettingsError(f"{name}: {text!r} is not a whole number") from None
        if number < at_least:
            raise SettingsError(f"{name}: {number} is too small; the least is {at_least}")
        return number

    def whole_or(self, name: str, default: int, *, at_least: int) -> int:
        number = self.whole(name, at_least=at_least)
        return default if number is None else number

    def duration_ms(self, name: str, *, default: str) -> int:
        """A duration as Spark writes them: `100ms`, `30s`, `15m`, `1h`; a bare number is milliseconds."""
        text = self.text(name) or default
        found = _DURATION.fullmatch(text.strip())
        unit_ms = _UNIT_MS.get(found.group(2).lower()) if found else None
        if found is None or unit_ms is None or int(found.group(1)) < 0:
            raise SettingsError(f"{name}: {text!r} is not a duration; write it as 100ms, 30s, 15m, 1h or 1d")
        return int(found.group(1)) * unit_ms

    def one_of(self, name: str, choices: tuple[str, ...], *, default: str) -> str:
        text = (self.text(name) or default).strip().lower()
        if text not in choices:
            raise SettingsError(f"{name}: {text!r} is not one of {', '.join(choices)}")
        return text
