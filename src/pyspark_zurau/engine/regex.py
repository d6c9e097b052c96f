"""Named groups of a regular expression. Spark runs Java's kind; Python reads it to learn the names.

Both spellings of a named group are taken, `(?<name>...)` and `(?P<name>...)`.
"""

from __future__ import annotations

import re

_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_PYTHON_GROUP = re.compile(r"\(\?P<")


def group_names(pattern: str) -> dict[str, int]:
    """The groups' numbers by their names, in order. Raises `re.error`."""
    found = re.compile(_JAVA_GROUP.sub("(?P<", pattern)).groupindex
    return dict(sorted(found.items(), key=lambda item: item[1]))


def in_java(pattern: str) -> str:
    """For the whole value, with groups by number: names with an underscore are no names in Java."""
    return "^(?:" + _JAVA_GROUP.sub("(", _PYTHON_GROUP.sub("(?<", pattern)) + ")$"
