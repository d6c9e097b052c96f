"""One table of a TOML file, read key by key. What was not asked for in the end is an unknown key, and told.

Nothing is raised: a mistake is written down and a default goes on in its place, so that one reading finds them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark_zurau.engine.problems import Problems, did_you_mean

_KINDS = {str: "text", bool: "true or false", int: "a whole number", list: "a list", dict: "a table"}


class Table:
    def __init__(self, values: Mapping[str, Any], path: str, problems: Problems) -> None:
        self._values = values
        self._problems = problems
        self._asked: set[str] = set()
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def report(self, key: str, what: str) -> None:
        self._problems.add(self.path, key, what)

    def text(self, key: str, default: str | None = None) -> str | None:
        found = self._get(key, str)
        return default if found is None else str(found)

    def required_text(self, key: str, example: str) -> str:
        found = self.text(key)
        if key not in self._values:
            self.report(key, f"is missing; for example {key} = {example!r}")
        elif found is not None and not found.strip():
            self.report(key, f"is empty; for example {key} = {example!r}")
        return found or ""

    def truth(self, key: str, *, default: bool = False) -> bool:
        found = self._get(key, bool)
        return default if found is None else bool(found)

    def whole(self, key: str, default: int, *, at_least: int = 1) -> int:
        found = self._get(key, int)
        if found is not None and found < at_least:
            self.report(key, f"{found} is too small; the least is {at_least}")
            return default
        return default if found is None else int(found)

    def share(self, key: str) -> float | None:
        """A number between 0 and 1, or None."""
        found = self._values.get(key)
        self._asked.add(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
            self.report(key, f"{found!r} is not a share between 0 and 1; for example {key} = 0.01")
            return None
        return float(found)

    def one_of(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """The choice; the first one stands in for a mistake."""
        found = self.text(key, default)
        if key not in self._values and default is None:
            self.report(key, f"is missing; choose one of {', '.join(choices)}")
        elif found is not None and found not in choices:
            self.report(key, f"{found!r} is not one of {', '.join(choices)}{_hint(found, choices)}")
        return found if found is not None and found in choices else choices[0]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single one may stand without brackets."""
        value = self._values.get(key)
        if isinstance(value, str):
            self._asked.add(key)
            return (value,)
        found = self._get(key, list) or []
        if not all(isinstance(one, str) for one in found):
            self.report(key, f'must be a list of texts, like {key} = ["a", "b"]')
            return ()
        return tuple(found)

    def table(self, key: str) -> Table:
        """The table under a key; an empty one where there is none."""
        return Table(self._get(key, dict) or {}, f"{self.path}.{key}" if self.path else key, self._problems)

    def tables(self, key: str) -> dict[str, Table]:
        """A table of named tables: `[sources.requests]` and its siblings."""
        parent = self.table(key)
        found = {}
        for name, value in parent._values.items():
            if isinstance(value, dict):
                found[name] = Table(value, f"{key}.{name}", self._problems)
            else:
                self._problems.add(key, name, f"must be a table of its own: write [{key}.{name}]")
        return found

    def flat(self, key: str) -> dict[str, str]:
        """A table of settings whose names have dots, as texts: `a.b = true` is `{"a.b": "true"}`."""
        return dict(_flatten(self._get(key, dict) or {}))

    def raw(self, key: str) -> Any:
        self._asked.add(key)
        return self._values.get(key)

    def names(self) -> list[str]:
        return list(self._values)

    def finish(self) -> None:
        """Tell the keys that nobody has asked for."""
        for key in self._values:
            if key not in self._asked:
                self.report(key, f"there is no such key here{did_you_mean(key, self._asked)}")

    def _get(self, key: str, kind: type) -> Any:
        self._asked.add(key)
        value = self._values.get(key)
        # A truth is a number in Python, and must not pass for one.
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            self.report(key, f"{value!r} is not {_KINDS[kind]}")
            return None
        return value


def _flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _flatten(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, str(value).lower() if isinstance(value, bool) else str(value)))
    return found


def _hint(word: str, choices: Sequence[str]) -> str:
    hint = did_you_mean(word, choices)
    return hint if "did you mean" in hint else ""
