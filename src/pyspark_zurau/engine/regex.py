"""Named groups of a regular expression. Spark runs Java's kind; Python reads it to learn the names.

Both spellings of a named group are taken, `(?<name>...)` and `(?P<name>...)`.
"""

from __future__ import annotations

import re

_GROUP = re.compile(r"\(\?P?<([A-Za-z]\w*)>")


def group_names(pattern: str) -> dict[str, int]:
    """The groups' numbers by their names, in order. Raises `re.error`."""
    found = re.compile(in_python(pattern)).groupindex
    return dict(sorted(found.items(), key=lambda item: item[1]))


def in_python(pattern: str) -> str:
    return _GROUP.sub(r"(?P<\1>", pattern)


def in_java(pattern: str) -> str:
    """For the whole value, with groups by number: names with an underscore are no names in Java."""
    return "^(?:" + _GROUP.sub("(", pattern) + ")$"
