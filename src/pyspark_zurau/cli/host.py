"""`zurau pipeline host`: Spark stays up, and pipelines run in it without waiting for Java."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyspark_zurau.cli.options import DEFAULT_MASTER, Master, stderr_to
from pyspark_zurau.engine.read import state_directory
from zurau.cli.options import key_values
from zurau.cli.output import say


def host(
    master: Master = DEFAULT_MASTER,
    settings: Annotated[
        list[str] | None,
        typer.Option("--spark", metavar="NAME=VALUE", help="A setting of Spark, such as driver.memory=4g."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Spark's log.")] = False,
) -> None:
    """Keep Spark running, so that `run`, `preview` and `check` with --host begin in seconds.

    Several pipelines run in it side by side, each as a command of its own; one that is changed or added needs no new
    Java process. When the host ends, so do they, and go on from their checkpoints the next time.

    \b
    Examples:
      zurau pipeline host
      zurau pipeline host --spark driver.memory=4g
      zurau pipeline run orders.toml --host
    """
    from pyspark_zurau.engine.run import SETTINGS
    from pyspark_zurau.spark.host import Host, socket_file
    from pyspark_zurau.spark.session import session

    state = state_directory().parent
    given = {_full(name): value for name, value in key_values(settings or [], "--spark").items()}
    log: Path | None = None if verbose else state / "host.log"
    say("starting Spark")
    with stderr_to(log):
        spark = session("zurau-host", master=master, settings=SETTINGS | given)
    try:
        found = Host(spark, socket_file(state))
        try:
            _warm_up(spark)
            say(f"ready: zurau pipeline run FILE --host; Spark's page is {spark.sparkContext.uiWebUrl}; Ctrl-C ends it")
            found.serve()
        finally:
            found.close()
    finally:
        spark.stop()


def _warm_up(spark: object) -> None:
    """Load what every query needs, which takes seconds the first time."""
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    spark.range(100).selectExpr("id % 3 AS k").groupBy("k").count().collect()


def _full(name: str) -> str:
    return name if name.startswith("spark.") else f"spark.{name}"
