"""`zurau cluster features`: the feature levels of a cluster, and raising them after an upgrade."""

from __future__ import annotations

from typing import Annotated

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    open_cluster,
)
from zurau.cli.output import show_rows

COLUMNS = ("feature", "level", "lowest", "highest")


def features(
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Raise levels to what all brokers support.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the feature levels: which hold, and which all brokers support.

    After an upgrade, when every broker runs the new release, --upgrade raises them. An older release does not start in
    a cluster that has a level which it does not know: raise them when you will not go back.

    \b
    Examples:
      zurau cluster features
      zurau cluster features --upgrade
    """
    from zurau.client.features import Features

    with open_cluster(bootstrap, timeout) as opened:
        known = Features(opened)
        levels = known.describe()
        higher = {each.name: each.highest for each in levels if each.level < each.highest}
        if upgrade and higher:
            known.upgrade(higher)
            levels = [each._replace(level=max(each.level, each.highest)) for each in levels]
    show_rows([dict(zip(COLUMNS, each, strict=True)) for each in levels], COLUMNS, form)
    if higher and not upgrade:
        typer.echo("some can be raised: `zurau cluster features --upgrade`", err=True)


def add_to(app: typer.Typer) -> None:
    app.command()(features)
