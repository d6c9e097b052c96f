"""What is wrong with a pipeline: all of it at once, each with its place and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from zurau.errors import ZurauError


@dataclass(frozen=True, slots=True)
class Problem:
    #: The table of the file, `sources.requests`; empty for the top of the file.
    table: str
    #: The key in it; empty where the table itself is meant.
    key: str
    what: str

    def __str__(self) -> str:
        where = " ".join(part for part in (f"[{self.table}]" if self.table else "", self.key) if part)
        return f"{where}: {self.what}" if where else self.what


@dataclass(slots=True)
class Problems:
    """Those of one file, in the order in which they were found."""

    file: str
    found: list[Problem] = field(default_factory=list)

    def add(self, table: str, key: str, what: str) -> None:
        problem = Problem(table, key, what)
        if problem not in self.found:
            self.found.append(problem)

    def raise_any(self) -> None:
        if self.found:
            raise BadPipeline(self.file, self.found)


class BadPipeline(ZurauError):
    """A declaration that cannot be run as it is."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems))
        self.file = file
        self.problems = tuple(problems)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint to be put behind a message; where nothing is near, what there is."""
    choices = sorted(known)
    nearest = difflib.get_close_matches(word, choices, 1, 0.6)
    if nearest:
        return f"; did you mean {nearest[0]}?"
    return f"; there is {', '.join(choices)}" if choices else ""
