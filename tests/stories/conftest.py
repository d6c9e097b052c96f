"""Stories against what happens now: lines that begin with `> ` are done, indented ones are what came of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import pytest

sys.path.insert(0, str(Path(__file__).parent))

REWRITE = os.environ.get("ZURAU_REWRITE_STORIES") == "1"


class Stage(Protocol):
    def tell(self, line: str) -> Iterable[str]:
        """Do what a line says; what came of it, in words."""


@pytest.fixture
def hold_to_story() -> Callable[[Path, Stage], None]:
    def hold(path: Path, stage: Stage) -> None:
        told = path.read_text(encoding="utf-8")
        now = _perform(told, stage)
        if REWRITE:
            path.write_text(now, encoding="utf-8")
        else:
            assert now == told

    return hold


def _perform(story: str, stage: Stage) -> str:
    """The story again, with what comes of it now in the place of what came of it then."""
    lines: list[str] = []
    for line in story.splitlines():
        if not line.startswith("  "):
            lines.append(line)
        if line.startswith("> "):
            lines += [f"  {outcome}" for outcome in stage.tell(line.removeprefix("> "))]
    return "\n".join(lines) + "\n"
