"""The tree of commands. Each one imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from zurau import __version__
from zurau.cli import (
    chaos,
    cluster,
    cluster_features,
    cluster_operations,
    cluster_recover,
    cluster_seen,
    consume,
    group,
    log,
    produce,
    simulate,
    topic,
    up,
)
from zurau.cli.endings import closed_pipe_is_no_error
from zurau.cli.optional import run_optional
from zurau.cli.options import SETTINGS, use_client_config


class Commands(TyperGroup):
    """The root of the tree: what holds for every command is wrapped around it here."""

    def invoke(self, ctx: Any) -> Any:
        with closed_pipe_is_no_error():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    help="""A commit log that speaks the Kafka protocol.

    \b
    Examples:
      zurau serve
      zurau topic create orders --partitions 3
      echo 'hello' | zurau produce orders
      zurau consume orders --from-beginning
      zurau pipeline run logs

    All commands but `serve`, `up`, `log`, `simulate` and `chaos` work with Apache Kafka too. Say which cluster with
    --bootstrap HOST:PORT or ZURAU_BOOTSTRAP, and how to log in with --client-config FILE before the command.
    """,
    no_args_is_help=True,
    **SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    client_config: Annotated[
        Path | None,
        typer.Option(
            envvar="ZURAU_CLIENT_CONFIG",
            metavar="FILE",
            help="Settings of Kafka's own clients (client.properties): TLS, SASL, bootstrap.servers.",
        ),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before any command."""
    use_client_config(client_config)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve(context: typer.Context) -> None:
    """Run a broker."""
    from zurau.cli.serve import main

    raise typer.Exit(main(context.args))


app.command(name="up")(up.up)
app.add_typer(topic.app, name="topic")
app.command(name="produce")(produce.produce)
app.command(name="consume")(consume.consume)
app.add_typer(group.app, name="group")
cluster_operations.add_to(cluster.app)
cluster_features.add_to(cluster.app)
cluster_recover.add_to(cluster.app)
cluster_seen.add_to(cluster.app)
app.add_typer(cluster.app, name="cluster")
app.add_typer(log.app, name="log")
app.command(name="simulate")(simulate.simulate)
app.command(name="chaos")(chaos.chaos)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def pipeline(context: typer.Context) -> None:
    """Run, check and watch data pipelines on Spark."""
    run_optional("pipeline", context.args)


@app.command()
def version() -> None:
    """Print the version, and what is compiled."""
    import platform

    from zurau.cli.compiled import compiled_text

    typer.echo(f"zurau {__version__} (Python {platform.python_version()}; {compiled_text()})")
