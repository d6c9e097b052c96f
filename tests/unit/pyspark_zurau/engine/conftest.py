"""A pipeline in a file, read without Spark."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.declaration import Pipeline
from pyspark_zurau.engine.problems import BadPipeline
from pyspark_zurau.engine.read import read_pipeline

GOOD = """
name = "shop"

[sources.orders]
topics = ["orders"]
format = "json"
schema = "id INT, shop STRING"
dead_letter = "orders-dead"

[sinks.out]
from = "orders"
kind = "console"
"""


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., Pipeline]:
    """Reads a text as a pipeline's file; `given` are parameters from the command line."""

    def declare(text: str = GOOD, given: dict[str, str] | None = None, **options: str) -> Pipeline:
        file = tmp_path / "pipeline.toml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return read_pipeline(file, given, **options)

    return declare


@pytest.fixture
def changed(declare: Callable[..., Pipeline]) -> Callable[[str, str], Pipeline]:
    """The good pipeline with a line in place of another, or after it."""

    def changed(line: str, instead: str) -> Pipeline:
        assert line in GOOD
        return declare(GOOD.replace(line, instead))

    return changed


@pytest.fixture
def problems(changed: Callable[[str, str], Pipeline]) -> Callable[[str, str], list[str]]:
    """What is wrong with the good pipeline once it is changed."""

    def problems(line: str, instead: str) -> list[str]:
        with pytest.raises(BadPipeline) as raised:
            changed(line, instead)
        return [str(problem) for problem in raised.value.problems]

    return problems
