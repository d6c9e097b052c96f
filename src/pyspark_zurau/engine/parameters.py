"""Parameters of a pipeline: `${name}` in any text of the file stands for a value that the user may choose.

A text that is nothing but one parameter keeps the kind of its default: `every = "${files}"` with the default 4 is a
number. `$${name}` is left as `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_zurau.engine.problems import Problems, did_you_mean

_NAME = re.compile(r"\$?\$\{([A-Za-z_][\w-]*)\}")


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    #: None: there is none, and the user has to give one.
    default: Any
    doc: str


def read_parameters(document: Mapping[str, Any], problems: Problems) -> dict[str, Parameter]:
    """From `[parameters]`: `name = 1`, or `name = {default = 1, doc = "What it is."}`."""
    declared = document.get("parameters", {})
    if not isinstance(declared, dict):
        problems.add("", "parameters", "must be a table: write [parameters]")
        return {}
    found = {}
    for name, value in declared.items():
        fields = value if isinstance(value, dict) else {"default": value}
        for key in fields.keys() - {"default", "doc"}:
            problems.add(f"parameters.{name}", key, f"there is no such key here{did_you_mean(key, ('default', 'doc'))}")
        found[name] = Parameter(name, fields.get("default"), str(fields.get("doc", "")))
    return found


def choose_values(parameters: Mapping[str, Parameter], given: Mapping[str, str], problems: Problems) -> dict[str, Any]:
    for name in given:
        if name not in parameters:
            problems.add("parameters", "", f"there is no parameter {name!r}{did_you_mean(name, parameters)}")
    chosen = {}
    for name, parameter in parameters.items():
        if name in given:
            chosen[name] = _of_the_same_kind(parameter, given[name], problems)
        elif parameter.default is None:
            doc = f" ({parameter.doc})" if parameter.doc else ""
            problems.add("parameters", name, f"has no default{doc}; give it with --set {name}=VALUE")
            chosen[name] = ""
        else:
            chosen[name] = parameter.default
    return chosen


def fill_in(value: Any, chosen: Mapping[str, Any], place: str, problems: Problems) -> Any:
    """The same value with every parameter in its texts replaced."""
    if isinstance(value, dict):
        return {key: fill_in(one, chosen, f"{place}.{key}", problems) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, chosen, place, problems) for one in value]
    if not isinstance(value, str):
        return value
    table, _, key = place.removeprefix(".").rpartition(".")
    for name in _used_in(value):
        if name not in chosen:
            problems.add(table, key, f"there is no parameter {name!r}{did_you_mean(name, chosen)}")
    whole = _NAME.fullmatch(value)
    if whole and not value.startswith("$$") and whole.group(1) in chosen:
        return chosen[whole.group(1)]
    return _NAME.sub(lambda found: _replace(found, chosen), value)


def _used_in(text: str) -> list[str]:
    return [found.group(1) for found in _NAME.finditer(text) if not found.group().startswith("$$")]


def _replace(found: re.Match[str], chosen: Mapping[str, Any]) -> str:
    if found.group().startswith("$$"):
        return found.group()[1:]
    value = chosen.get(found.group(1), "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_the_same_kind(parameter: Parameter, text: str, problems: Problems) -> Any:
    default = parameter.default
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int | float):
            return type(default)(text)
    except (KeyError, ValueError):
        problems.add("parameters", parameter.name, f"{text!r} is not like its default {str(default).lower()}")
        return default
    return [part.strip() for part in text.split(",")] if isinstance(default, list) else text
