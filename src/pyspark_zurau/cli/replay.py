"""`zurau pipeline replay`: from a lake back into a topic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
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
from zurau.cli.progress import progress
from zurau.cli.times import parse_time


def replay(
    lake: Annotated[Path, typer.Argument(metavar="LAKE", help="Directory of the lake.")],
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, by the name it had in the archive.")],
    into: Annotated[str | None, typer.Option("--into", metavar="TOPIC", help="Where to. Default: the same name.")] = None,
    from_offset: Annotated[int | None, typer.Option(min=0, help="Only this offset and later, in each partition.")] = None,
    to_offset: Annotated[int | None, typer.Option(min=0, help="Only offsets before this one.")] = None,
    from_time: Annotated[str | None, typer.Option(metavar="TIME", help="Only this time and later.")] = None,
    to_time: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    state: Annotated[
        Path | None, typer.Option("--state", metavar="FILE", help="Remember how far it is, and go on from there.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Write behind what the topic holds already.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write archived records into a topic again, as they were.

    Keys, values, headers, timestamps and partitions are kept, and the order within each partition; offsets are new. A
    topic that is missing is made. Interrupted with --state, the same command goes on, and writes nothing twice.

    \b
    Examples:
      zurau pipeline replay ./lake orders --into orders-again
      zurau pipeline replay ./lake orders --from-offset 1000 --into part
      zurau pipeline replay ./lake orders --from-time 2026-01-31T12:00Z --to-time 10m --into part
      zurau pipeline replay ./lake orders --into again --state replay.json
    """
    from pyspark_zurau.lake.replay import Wanted
    from pyspark_zurau.lake.replay import replay as write_again

    wanted = Wanted(
        topic,
        from_offset,
        to_offset,
        None if from_time is None else parse_time(from_time, "--from-time"),
        None if to_time is None else parse_time(to_time, "--to-time"),
    )
    target = into or topic
    with open_cluster(bootstrap, timeout) as cluster, ExitStack() as bar:

        def begin(total: int) -> Callable[[int], None]:
            return bar.enter_context(progress(f"replaying {topic}", total))

        written = write_again(lake, wanted, cluster, target, state=state, adds=add, begin=begin)
    show_rows([{"topic": topic, "into": target, "records": written}], ("topic", "into", "records"), form)
