"""The files that the house rules are about, read and parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Made by tools; so is every hidden directory but these.
_SKIPPED = {"node_modules", "dist", "build", "__pycache__"}
_HIDDEN_BUT_OURS = {".ci", ".gitignore"}


@dataclass(frozen=True)
class TextFile:
    """A file of the repository; `name` is its path from the root."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @property
    def room(self) -> str:
        """`src/zurau/log/segment.py` is in the room `log`; a file directly in the package is its own room.

        The Spark source is one room.
        """
        parts = Path(self.name).parts
        return parts[1] if parts[1] == "pyspark_zurau" else parts[2].removesuffix(".py")


@pytest.fixture(scope="session")
def every_file() -> list[TextFile]:
    return list(_read(ROOT))


@pytest.fixture(scope="session")
def python_files(every_file: list[TextFile]) -> list[TextFile]:
    return [file for file in every_file if file.name.endswith(".py")]


@pytest.fixture(scope="session")
def source_files(python_files: list[TextFile]) -> list[TextFile]:
    return [file for file in python_files if file.name.startswith("src/")]


@pytest.fixture(scope="session")
def test_files(python_files: list[TextFile]) -> list[TextFile]:
    return [file for file in python_files if Path(file.name).match("tests/**/test_*.py")]


def _read(directory: Path) -> Iterator[TextFile]:
    for path in sorted(directory.iterdir()):
        if path.name in _SKIPPED or (path.name.startswith(".") and path.name not in _HIDDEN_BUT_OURS):
            continue
        if path.is_dir():
            yield from _read(path)
            continue
        try:
            yield TextFile(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue  # a picture, or recorded bytes
