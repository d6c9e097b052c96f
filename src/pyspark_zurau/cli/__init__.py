"""`zurau pipeline`: the commands. `zurau` loads this package by its name when it is asked for, and only then."""

from __future__ import annotations

import typer

from pyspark_zurau.cli.check import check
from pyspark_zurau.cli.compact import compact
from pyspark_zurau.cli.generate import generate
from pyspark_zurau.cli.host import host
from pyspark_zurau.cli.init import init
from pyspark_zurau.cli.list_pipelines import list_pipelines
from pyspark_zurau.cli.preview import preview
from pyspark_zurau.cli.replay import replay
from pyspark_zurau.cli.reset import reset
from pyspark_zurau.cli.run import run
from pyspark_zurau.cli.status import status
from pyspark_zurau.cli.warm_up import warm_up
from zurau.cli.options import SETTINGS

app = typer.Typer(
    help="""Run, check and watch data pipelines on Spark.

    A pipeline is a TOML file: topics to read, Spark SQL, and sinks; or the name of a ready-made one.

    \b
    Examples:
      zurau pipeline list
      zurau pipeline init orders
      zurau pipeline preview orders.toml
      zurau pipeline check logs.toml
      zurau pipeline run logs.toml --set lake=/data/lake
      zurau pipeline status --watch
      zurau pipeline warm-up
      zurau pipeline host
      zurau pipeline generate logs --rate 500
      zurau pipeline compact ./lake
      zurau pipeline reset logs.toml
      zurau pipeline replay ./lake orders --into orders-again
    """,
    no_args_is_help=True,
    add_completion=False,
    **SETTINGS,
)

app.command(name="init")(init)
app.command(name="preview")(preview)
app.command(name="run")(run)
app.command(name="check")(check)
app.command(name="warm-up")(warm_up)
app.command(name="host")(host)
app.command(name="status")(status)
app.command(name="reset")(reset)
app.command(name="list")(list_pipelines)
app.command(name="generate")(generate)
app.command(name="compact")(compact)
app.command(name="replay")(replay)
