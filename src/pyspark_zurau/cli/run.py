"""`zurau pipeline run`: from the file to running queries, and in good order to their end."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_zurau.cli.metrics import serve_metrics
from pyspark_zurau.cli.options import (
    DEFAULT_MASTER,
    BootstrapOption,
    Master,
    OnHost,
    PipelineFile,
    Place,
    Remote,
    SetOption,
    log_file,
    open_pipeline,
    open_session,
)
from pyspark_zurau.cli.screen import FIRST_BATCH, Screen
from pyspark_zurau.cli.stopping import Signals, stopping
from pyspark_zurau.engine.declaration import Pipeline, Trigger
from pyspark_zurau.engine.failures import explain
from pyspark_zurau.engine.fingerprint import compare_with_checkpoint
from pyspark_zurau.engine.known_checkpoints import note_checkpoint
from pyspark_zurau.engine.metrics import in_prometheus
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.progress import FAILED
from pyspark_zurau.engine.run import Execution
from pyspark_zurau.engine.sources import MOST, records_per_batch
from pyspark_zurau.engine.topics import create_missing, find_missing
from pyspark_zurau.options.values import Values
from pyspark_zurau.spark.checkpoint_lock import CheckpointLock
from zurau.cli.output import say
from zurau.errors import SettingsError, ZurauError

Once = Annotated[bool, typer.Option("--once", help="Read what there is now, and end.")]
CreateTopics = Annotated[
    bool, typer.Option("--create-topics", help="Make the topics that are missing, with the broker's defaults.")
]
FailOnDead = Annotated[
    float | None,
    typer.Option(
        "--fail-on-dead",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="Stop when more than this share of a source's values cannot be read; 0 stops at the first.",
    ),
]
AcceptChanges = Annotated[
    bool, typer.Option("--accept-changes", help="Go on from the checkpoint though the file has changed.")
]
Metrics = Annotated[
    str | None, typer.Option("--metrics", metavar="HOST:PORT", help="Where Prometheus finds /metrics while it runs.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Spark's log, and whole stack traces.")]


def run(
    file: PipelineFile,
    set_: SetOption = None,
    once: Once = False,
    create_topics: CreateTopics = False,
    fail_on_dead: FailOnDead = None,
    accept_changes: AcceptChanges = False,
    bootstrap: BootstrapOption = None,
    master: Master = DEFAULT_MASTER,
    remote: Remote = None,
    on_host: OnHost = False,
    metrics: Metrics = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a pipeline until Ctrl-C, or with --once until everything is read.

    Stops after the batch it is in, and goes on from there the next time. With --host it starts in seconds.

    \b
    Examples:
      zurau pipeline run logs.toml
      zurau pipeline run logs --set lake=/data/lake --create-topics
      zurau pipeline run logs.toml --once --master spark://head:7077
    """
    pipeline = open_pipeline(file, set_, bootstrap)
    if once and pipeline.trigger.real_time:
        raise SettingsError("--once reads what there is and ends, and [trigger] real_time never ends; take one of them")
    if once:
        pipeline = read_once(pipeline)
    if fail_on_dead is not None:
        pipeline = with_dead_limit(pipeline, fail_on_dead)
    if create_topics:
        for topic in create_missing(pipeline):
            say(f"made topic {topic}")
    problems = Problems(str(pipeline.file))
    problems.found += find_missing(pipeline, problems)
    problems.raise_any()
    with CheckpointLock(pipeline.checkpoint) as lock, stopping() as signals, Screen(pipeline, quiet=quiet) as screen:
        compare_with_checkpoint(pipeline, accept_changes=accept_changes)
        try:
            with serve_metrics(metrics, lambda: in_prometheus(screen.status)) as page:
                if page:
                    screen.say(f"metrics are at {page}/metrics")
                execute(pipeline, lock, signals, screen, Place(master, remote, on_host), verbose=verbose)
        except KeyboardInterrupt:
            if not signals.is_starting:
                raise
            screen.say("ended while it was starting; nothing was read")
        except PySparkException as error:
            if verbose:
                raise
            raise ZurauError(f"pipeline {pipeline.name}: {explain(error)}") from None
    raise typer.Exit(signals.exit_code)


def execute(
    pipeline: Pipeline, lock: CheckpointLock, signals: Signals, screen: Screen, place: Place, *, verbose: bool
) -> None:
    log = log_file(pipeline, verbose=verbose)
    with open_session(pipeline, place, log=log, on_phase=screen.wait_for) as spark:
        signals.listen()
        lock.share_with_java(spark)
        note_checkpoint(pipeline.checkpoint)
        tell_about(spark, pipeline, screen)
        screen.wait_for("plan")
        execution = Execution(spark, pipeline)
        execution.plan()
        signals.is_starting = False
        screen.wait_for(FIRST_BATCH)
        status = execution.run(lambda: bool(signals), screen.show)
    if status.state == FAILED:
        if verbose:
            sys.stderr.write(f"{execution.error}\n")
        more = f" ({log} has what Spark says)" if log and not place.remote and not place.on_host else ""
        raise ZurauError(f"pipeline {pipeline.name} failed in {status.reason}{more}")
    screen.say(f"{status.state}; `zurau pipeline run` goes on from here")


def tell_about(spark: SparkSession, pipeline: Pipeline, screen: Screen) -> None:
    context = getattr(spark, "_sc", None)
    if context is not None and context.uiWebUrl:
        screen.say(f"Spark's page is {context.uiWebUrl}")
    unbounded = [name for name, source in pipeline.sources.items() if MOST not in Values(source.options)]
    if unbounded:
        screen.say(
            f"a batch takes at most {records_per_batch(spark)} records of {', '.join(unbounded)};"
            f" options.{MOST} of a source sets another number"
        )


def read_once(pipeline: Pipeline) -> Pipeline:
    now = Trigger(available_now=True)
    sinks = {name: replace(sink, trigger=now) for name, sink in pipeline.sinks.items()}
    return replace(pipeline, trigger=now, sinks=sinks)


def with_dead_limit(pipeline: Pipeline, share: float) -> Pipeline:
    sources = {name: replace(source, fail_on_dead=share) for name, source in pipeline.sources.items()}
    return replace(pipeline, sources=sources)
