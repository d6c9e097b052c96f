"""`zurau pipeline check`: what is wrong with a pipeline, all at once, without running it."""

from __future__ import annotations

import typer

from pyspark_zurau.cli.options import (
    DEFAULT_MASTER,
    BootstrapOption,
    Master,
    OnHost,
    PipelineFile,
    Place,
    Remote,
    SetOption,
    open_pipeline,
)
from pyspark_zurau.cli.screen import quick_session
from pyspark_zurau.engine.problems import Problems
from zurau.cli.output import say


def check(
    file: PipelineFile,
    set_: SetOption = None,
    bootstrap: BootstrapOption = None,
    master: Master = DEFAULT_MASTER,
    remote: Remote = None,
    on_host: OnHost = False,
) -> None:
    """Look for mistakes in a pipeline without reading any data.

    Keys and values of the file, the cluster, paths and databases of the sinks: that is told at once. Then the SQL, as
    Spark understands it. Ends with 1 when there is a problem. Topics that are missing are a note: a run makes them
    with --create-topics.

    \b
    Examples:
      zurau pipeline check logs.toml
      zurau pipeline check logs --set lake=/data/lake
    """
    from pyspark_zurau.engine.check import check_files, check_places, check_queries

    pipeline = open_pipeline(file, set_, bootstrap)
    problems = Problems(str(pipeline.file))
    check_files(pipeline, problems)
    for note in check_places(pipeline, problems):
        say(f"note: {note}")
    # Spark takes its time to start, and what is wrong by now would be wrong then.
    problems.raise_any()
    say("asking Spark about the queries")
    # Spark's own complaints would stand between ours.
    with quick_session(pipeline, Place(master, remote, on_host)) as spark:
        check_queries(spark, pipeline, problems)
    problems.raise_any()
    typer.echo(f"{pipeline.file}: all is well")
