"""Pipelines written as users write them, and run to the end of what their topics hold."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from zurau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_zurau.engine.declaration import Pipeline
    from pyspark_zurau.engine.progress import PipelineStatus

HEAD = """
name = "test"
bootstrap = "{bootstrap}"
checkpoint = "{directory}/checkpoint"
[trigger]
available_now = true
"""


@pytest.fixture
def declare(broker: Broker, tmp_path: Path) -> Callable[..., Pipeline]:
    """Writes a pipeline to a file, with a head of its own, and reads it; words in double angles are filled in."""
    from pyspark_zurau.engine.read import read_pipeline

    def declare(body: str, **words: Any) -> Pipeline:
        for name, word in {"directory": tmp_path, **words}.items():
            body = body.replace(f"<<{name}>>", str(word))
        file = tmp_path / "pipeline.toml"
        head = HEAD.format(bootstrap=broker.bootstrap, directory=tmp_path)
        file.write_text(head + textwrap.dedent(body), encoding="utf-8")
        return read_pipeline(file)

    return declare


@pytest.fixture
def run(spark: SparkSession) -> Callable[[Pipeline], PipelineStatus]:
    """Runs a pipeline until it ends by itself."""
    from pyspark_zurau.engine.run import Execution

    def run(pipeline: Pipeline) -> PipelineStatus:
        return Execution(spark.newSession(), pipeline).run(lambda: False, lambda _: None)

    return run


@pytest.fixture
def send(produce: Callable[..., None]) -> Callable[..., None]:
    """Writes objects to a topic as JSON."""
    return lambda topic, *values, **fields: produce(topic, *(json.dumps(value).encode() for value in values), **fields)
