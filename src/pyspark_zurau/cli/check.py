"""`zurau pipeline check`: what is wrong with a pipeline, all at once, without running it."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from pyspark_zurau.cli.options import (
    DEFAULT_MASTER,
    BootstrapOption,
    Master,
    PipelineFile,
    Remote,
    SetOption,
    open_pipeline,
    open_session,
)
from pyspark_zurau.engine.problems import BadPipeline, Problems
from zurau.cli.output import say


def check(
    file: PipelineFile,
    set_: SetOption = None,
    bootstrap: BootstrapOption = None,
    master: Master = DEFAULT_MASTER,
    remote: Remote = None,
) -> None:
    """Look for mistakes in a pipeline without reading any data.

    Keys and values of the file, topics at the broker, paths and databases of the sinks, and the SQL, as Spark
    understands it. Ends with 1 when there is a problem.

    \b
    Examples:
      zurau pipeline check logs.toml
      zurau pipeline check logs --set lake=/data/lake
    """
    from pyspark_zurau.engine.check import check_places, check_queries

    pipeline = open_pipeline(file, set_, bootstrap)
    problems = Problems(str(pipeline.file))
    check_places(pipeline, problems)
    say("asking Spark about the queries")
    # Spark's own complaints would stand between ours.
    spark = open_session(pipeline, master, remote, log=Path(os.devnull))
    try:
        check_queries(spark, pipeline, problems)
    finally:
        spark.stop()
    if problems.found:
        raise BadPipeline(problems.file, problems.found)
    typer.echo(f"{pipeline.file}: all is well")
