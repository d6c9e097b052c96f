"""`zurau pipeline run`: from the file to running queries, and in good order to their end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Annotated, Any

import typer
from pyspark.errors import PySparkException

from pyspark_zurau.checkpoint_lock import CheckpointLock
from pyspark_zurau.cli.options import (
    DEFAULT_MASTER,
    BootstrapOption,
    Master,
    PipelineFile,
    Remote,
    SetOption,
    log_file,
    open_pipeline,
    open_session,
)
from pyspark_zurau.cli.screen import Screen
from pyspark_zurau.engine.declaration import Pipeline, Trigger
from pyspark_zurau.engine.failures import explain
from pyspark_zurau.engine.fingerprint import compare_with_checkpoint
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.progress import FAILED
from pyspark_zurau.engine.run import Execution
from pyspark_zurau.engine.topics import check_topics, create_missing
from zurau.cli.output import say
from zurau.errors import ZurauError


def run(
    file: PipelineFile,
    set_: SetOption = None,
    once: Annotated[bool, typer.Option("--once", help="Read what there is now, and end.")] = False,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Make the topics that are missing, with the broker's defaults.")
    ] = False,
    fail_on_dead: Annotated[
        float | None,
        typer.Option(
            "--fail-on-dead",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Stop when more than this share of a source's values cannot be read; 0 stops at the first.",
        ),
    ] = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Go on from the checkpoint though the file has changed.")
    ] = False,
    bootstrap: BootstrapOption = None,
    master: Master = DEFAULT_MASTER,
    remote: Remote = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Spark's log, and whole stack traces.")] = False,
) -> None:
    """Run a pipeline until Ctrl-C, or with --once until everything is read.

    Stops after the batch it is in, and goes on from there the next time.

    \b
    Examples:
      zurau pipeline run logs.toml
      zurau pipeline run logs --set lake=/data/lake --create-topics
      zurau pipeline run logs.toml --once --master spark://head:7077
    """
    pipeline = open_pipeline(file, set_, bootstrap)
    if once:
        pipeline = read_once(pipeline)
    if fail_on_dead is not None:
        pipeline = with_dead_limit(pipeline, fail_on_dead)
    if create_topics:
        for topic in create_missing(pipeline):
            say(f"made topic {topic}")
    problems = Problems(str(pipeline.file))
    check_topics(pipeline, problems)
    problems.raise_any()
    with CheckpointLock(pipeline.checkpoint) as lock, stopping() as signals, Screen(pipeline, quiet=quiet) as screen:
        compare_with_checkpoint(pipeline, accept_changes=accept_changes)
        try:
            code = execute(pipeline, lock, signals, screen, (master, remote), verbose=verbose)
        except PySparkException as error:
            if verbose:
                raise
            raise ZurauError(f"pipeline {pipeline.name}: {explain(error)}") from None
    raise typer.Exit(code)


def execute(
    pipeline: Pipeline,
    lock: CheckpointLock,
    signals: list[int],
    screen: Screen,
    place: tuple[str, str | None],
    *,
    verbose: bool,
) -> int:
    screen.say("starting Spark")
    master, remote = place
    log = log_file(pipeline, verbose=verbose)
    spark = open_session(pipeline, master, remote, log=log)
    # Spark has put its own in place of ours.
    listen(signals)
    try:
        lock.share_with_java(spark)
        execution = Execution(spark, pipeline)
        status = execution.run(lambda: bool(signals), screen.show)
    finally:
        spark.stop()
    if status.state == FAILED:
        if verbose:
            sys.stderr.write(f"{execution.error}\n")
        more = f" ({log} has what Spark says)" if log and not remote else ""
        raise ZurauError(f"pipeline {pipeline.name} failed in {status.reason}{more}")
    screen.say(f"{status.state}; `zurau pipeline run` goes on from here")
    return 128 + signals[0] if signals else 0


def read_once(pipeline: Pipeline) -> Pipeline:
    now = Trigger(available_now=True)
    sinks = {name: replace(sink, trigger=now) for name, sink in pipeline.sinks.items()}
    return replace(pipeline, trigger=now, sinks=sinks)


def with_dead_limit(pipeline: Pipeline, share: float) -> Pipeline:
    sources = {name: replace(source, fail_on_dead=share) for name, source in pipeline.sources.items()}
    return replace(pipeline, sources=sources)


@contextmanager
def stopping() -> Iterator[list[int]]:
    """The signals that came; the second one ends the command where it stands."""
    received: list[int] = []
    before = listen(received)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(received: list[int]) -> dict[signal.Signals, Any]:
    def note(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    return {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
