"""Which code may touch the world. Directions between rooms are import-linter's, in pyproject.toml."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: The rooms that are the world, or invent one, or stand outside the broker; and ports.py, which names its types.
WORLD_ROOMS = {"node", "simulation", "testing", "chaos", "client", "cli", "ports", "pyspark_zurau"}
#: Clocks, chance, sockets, threads, processes and files. Inner rooms are handed ports instead (ports.py).
WORLD_MODULES = {
    "asyncio", "concurrent", "io", "multiprocessing", "os", "pathlib", "queue", "random", "secrets", "select",
    "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "uvloop",
}  # fmt: skip


def test_only_the_outer_rooms_touch_the_world(source_files):
    strays = [
        f"{file.name}:{line} imports {module}"
        for file in source_files
        if file.room not in WORLD_ROOMS
        for line, module in _imports(file.tree)
        if module.split(".")[0] in WORLD_MODULES
    ]
    assert not strays, f"take a port or `now_ms` as an argument instead: {strays}"


def test_inner_rooms_never_ask_what_time_it_is(source_files):
    asked = [
        f"{file.name}:{node.lineno} {ast.unparse(node)}"
        for file in source_files
        if file.room not in WORLD_ROOMS
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today", "uuid4", "uuid1", "urandom"}
        if isinstance(node.value, ast.Name) and node.value.id in {"datetime", "date", "uuid"}
    ]
    assert not asked, f"time and chance come in from outside: {asked}"


def test_imports_are_written_with_the_full_path(python_files):
    relative = [
        f"{file.name}:{node.lineno}"
        for file in python_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    assert not relative, f"write `from zurau.room.module import ...`: {relative}"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
