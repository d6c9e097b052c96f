"""`zurau pipeline generate`: test data for a ready-made pipeline, from a seed."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_zurau.cli.options import SetOption
from pyspark_zurau.engine.locate import ready_made
from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    key_values,
    open_cluster,
)
from zurau.cli.output import show_rows
from zurau.cli.progress import progress
from zurau.cli.times import parse_time

if TYPE_CHECKING:
    from pyspark_zurau.pipelines.generated import Generated

#: How much happens in a second of the data's own time, when it is produced as fast as possible.
USUAL_PER_S = 50.0
GOOD = "good"
Name = Annotated[str, typer.Argument(metavar="NAME", help="A ready-made pipeline; `zurau pipeline list` has them.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many records.")]
Rate = Annotated[float, typer.Option("--rate", "-r", min=0, help="Records per second; 0: as fast as possible.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed and start give the same data.")]
Start = Annotated[str | None, typer.Option("--start", metavar="TIME", help="When it begins. Default: it ends now.")]


def generate(
    name: Name,
    count: Count = 10_000,
    rate: Rate = 0,
    seed: Seed = 1,
    start: Start = None,
    set_: SetOption = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Produce test data for a ready-made pipeline, and say what was in it.

    Some of it is late, some comes twice and some is broken, on purpose. Topics are those that the pipeline reads by
    default; --set gives others, by the names of the pipeline's parameters.

    \b
    Examples:
      zurau pipeline generate logs
      zurau pipeline generate logs --rate 500 --count 10000 --seed 7
      zurau pipeline generate goals --set goals=my-goals --start 2026-01-31T15:30Z
    """
    from pyspark_zurau.pipelines.generated import at_rate, produce
    from zurau.client.producer import Producer

    module = _generator(name)
    topics = _topics(module.TOPICS, key_values(set_ or [], "--set"))
    per_s = rate or USUAL_PER_S
    start_ms = parse_time(start or "now", "--start")
    if start is None:
        start_ms -= _duration_ms(module, count, rate)
    kinds: Counter[str] = Counter()
    made = module.generate(count, seed, start_ms=start_ms, per_s=per_s, topics=topics)
    bar = progress(f"generating {name}", count)
    with open_cluster(bootstrap, timeout) as cluster, Producer(cluster) as producer, bar as advance:
        produce(at_rate(_counted(made, kinds), rate, producer.poll), producer, advance=advance)
    rows = [{"kind": kind or GOOD, "records": number} for kind, number in sorted(kinds.items())]
    show_rows(rows, ("kind", "records"), form)


def _generator(name: str) -> Any:
    if name not in ready_made():
        known = ", ".join(ready_made())
        raise typer.BadParameter(f"there is no ready-made pipeline {name!r}; there is {known}", param_hint="NAME")
    # What is to be mirrored is what is to be archived: any records.
    return importlib.import_module(f"pyspark_zurau.pipelines.{'archive' if name == 'mirror' else name}.generate")


def _duration_ms(module: Any, count: int, rate: float) -> int:
    """How far back data begins that is to end now: brokers refuse what is of tomorrow."""
    if hasattr(module, "duration_ms"):
        return int(module.duration_ms(count))
    return 0 if rate else int(count / USUAL_PER_S * 1000)


def _topics(usual: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    for parameter in given:
        if parameter not in usual:
            raise typer.BadParameter(f"there is no {parameter!r}; there is {', '.join(usual)}", param_hint="--set")
    return usual | given


def _counted(made: Iterable[tuple[str, Generated]], kinds: Counter[str]) -> Iterator[Generated]:
    for kind, record in made:
        kinds[kind] += 1
        yield record
