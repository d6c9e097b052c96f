"""Options that several pipeline commands share, and how they lead to a pipeline and a session."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_zurau.engine.declaration import Pipeline
from pyspark_zurau.engine.locate import locate
from pyspark_zurau.engine.read import read_pipeline, state_directory
from pyspark_zurau.spark.checkpoint_lock import local_path
from zurau.cli.options import key_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PipelineFile = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="A pipeline's TOML file, or the name of a ready-made one.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter; may be repeated.")
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="ZURAU_BOOTSTRAP",
        metavar="HOST:PORT",
        help="A broker of the cluster. Default: what the file says.",
    ),
]
Master = Annotated[
    str, typer.Option("--master", metavar="MASTER", help="Where Spark runs: local[*], spark://host:7077, ...")
]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server to run on.")
]
OnHost = Annotated[bool, typer.Option("--host", help="Run in the Spark of `zurau pipeline host`.")]
DEFAULT_MASTER = "local[*]"


@dataclass(frozen=True, slots=True)
class Place:
    """Where Spark runs."""

    master: str = DEFAULT_MASTER
    remote: str | None = None
    on_host: bool = False


def open_pipeline(file_or_name: str, set_: list[str] | None, bootstrap: str | None) -> Pipeline:
    return read_pipeline(locate(file_or_name), key_values(set_ or [], "--set"), bootstrap=bootstrap)


@contextmanager
def open_session(
    pipeline: Pipeline, place: Place, *, log: Path | None = None, on_phase: Callable[[str], None] = lambda _: None
) -> Iterator[SparkSession]:
    """A session for the pipeline; what Spark says goes to the log, or to stderr where there is none."""
    from pyspark_zurau.engine.run import SETTINGS
    from pyspark_zurau.spark.host import socket_file, visit
    from pyspark_zurau.spark.session import session

    if log is not None:
        # Spark's Python side writes a page of JSON about every query that it refuses; we say it in a line.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    if place.on_host:
        # Settings of the page and of stopping are the host's own.
        with visit(socket_file(state_directory().parent), pipeline.spark, on_phase) as spark:
            yield spark
        return
    settings = SETTINGS | dict(pipeline.spark)
    master = place.master
    if pipeline.trigger.real_time and master == DEFAULT_MASTER and place.remote is None:
        from pyspark_zurau.engine.real_time import SHUFFLE_PARTITIONS, slots

        master = f"local[{slots(pipeline, int(settings[SHUFFLE_PARTITIONS]))}]"
    with stderr_to(log):
        spark = session(
            f"zurau-{pipeline.name}", master=master, remote=place.remote, settings=settings, on_phase=on_phase
        )
    try:
        yield spark
    finally:
        spark.stop()


def log_file(pipeline: Pipeline, *, verbose: bool) -> Path | None:
    directory = local_path(pipeline.checkpoint)
    return None if verbose or directory is None else directory / "spark.log"


@contextmanager
def stderr_to(log: Path | None) -> Iterator[None]:
    """Processes that are started in the block inherit the file as their stderr, and keep it."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    before = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
