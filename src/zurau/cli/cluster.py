"""`zurau cluster`: who is in it, and `zurau cluster health`: what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    SETTINGS,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    open_cluster,
)
from zurau.cli.output import counted, show_json, show_rows
from zurau.cli.times import format_time

if TYPE_CHECKING:
    from zurau.client.admin import Admin
    from zurau.client.cluster import Metadata
    from zurau.client.operations import DescribedBroker
    from zurau.ids import BrokerId

app = typer.Typer(invoke_without_command=True, **SETTINGS)

BROKER_COLUMNS = ("broker", "host", "port", "rack", "state", "controller", "votes", "leads", "replicas")
PROBLEM_COLUMNS = ("broker", "kind", "partition", "since", "problem", "advice")
#: The read-only config in which a broker of ours tells its problems. Apache Kafka has none.
HEALTH_CONFIG = "zurau.health"


@app.callback()
def cluster(
    context: typer.Context,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the brokers; `health` shows what is wrong.

    \b
    Examples:
      zurau cluster
      zurau cluster --bootstrap kafka.example:9092 --format json
      zurau cluster health
    """
    if context.invoked_subcommand is None:
        show_status(bootstrap, timeout, form)


@app.command()
def status(
    context: typer.Context,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the brokers: where they are, what they lead and hold, who votes on the metadata, who is away.

    \b
    Examples:
      zurau cluster status
    """
    bootstrap = _given_before(context, "bootstrap", bootstrap)
    timeout = _given_before(context, "timeout", timeout)
    show_status(bootstrap, timeout, Format(_given_before(context, "form", form)))


def show_status(bootstrap: str, timeout: float, form: Format) -> None:
    from zurau.client.admin import Admin
    from zurau.client.features import Features
    from zurau.client.operations import Operations

    with open_cluster(bootstrap, timeout) as opened:
        known = Admin(opened).describe_cluster()
        levels = {each.name: each.level for each in Features(opened).describe() if each.level}
        described = Operations(opened).describe()
        voters = Operations(opened).voters()
    rows, counts = _broker_rows(known, described, voters), _counts(known)
    if form is Format.JSON:
        named = {"cluster_id": known.cluster_id, "controller": known.controller_id, "features": levels}
        show_json(named | {"brokers": rows} | counts)
        return
    title = (
        f"cluster {known.cluster_id}: {counted(counts['topics'], 'topic')},"
        f" {counted(counts['partitions'], 'partition')}, {counts['without_leader']} without leader,"
        f" {counts['under_replicated']} under replicated"
        + "".join(f", {name} {level}" for name, level in levels.items())
    )
    show_rows(rows, BROKER_COLUMNS, form, title=title)


@app.command()
def health(
    context: typer.Context,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what is wrong, and what to do about it. Exits with 1 when there is something.

    Damaged or closed partitions, full disks, groups without a coordinator and the like are told by Zurau's brokers; of
    Apache Kafka it shows partitions without a leader or with too few replicas in sync.

    \b
    Examples:
      zurau cluster health
      zurau cluster health --format json
    """
    from zurau.client.admin import Admin

    bootstrap = _given_before(context, "bootstrap", bootstrap)
    timeout = _given_before(context, "timeout", timeout)
    form = Format(_given_before(context, "form", form))
    with open_cluster(bootstrap, timeout) as opened:
        admin = Admin(opened)
        known = admin.describe_cluster()
        rows = [*_problems_of_partitions(known)]
        for broker_id in sorted(known.brokers):
            rows += _problems_of_broker(admin, broker_id)
    _show_problems(rows, form)
    if rows:
        raise typer.Exit(1)


def _given_before(context: typer.Context, name: str, value: Any) -> Any:
    """The options may stand before `health`, too: `zurau cluster -b HOST:PORT health`."""
    parent = context.parent
    if parent is None or _is_typed(context, name) or not _is_typed(parent, name):
        return value
    return parent.params[name]


def _is_typed(context: Any, name: str) -> bool:
    """Or else the value comes from the environment, or is the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _show_problems(rows: list[dict[str, Any]], form: Format) -> None:
    if form is Format.JSON:
        show_json(rows)
    elif form is Format.CSV:
        show_rows(rows, PROBLEM_COLUMNS, form)
    elif rows:
        show_rows(rows, PROBLEM_COLUMNS[:-1], form, title=counted(len(rows), "problem"))
        for kind, advice in dict.fromkeys((row["kind"], row["advice"]) for row in rows):
            typer.echo(f"{kind}: {advice}")
    else:
        typer.echo("no problems")


def _problems_of_partitions(known: Metadata) -> Iterator[dict[str, Any]]:
    for name, topic in sorted(known.topics.items()):
        for partition in topic.partitions:
            missing = sorted(set(partition.replicas) - set(partition.in_sync))
            if partition.leader < 0:
                kind, text = "without-leader", "nobody leads it, so it can be neither read nor written"
            elif missing:
                kind, text = "under-replicated", f"not in sync: {', '.join(map(str, missing))}"
            else:
                continue
            advice = "see to the brokers that hold it: " + ", ".join(map(str, partition.replicas))
            yield _problem(None, kind, f"{name}-{partition.index}", text, advice)


def _problems_of_broker(admin: Admin, broker_id: BrokerId) -> Iterator[dict[str, Any]]:
    import json

    from zurau.client.errors import ClientError

    try:
        told = admin.broker_settings(broker_id, [HEALTH_CONFIG])
    except ClientError as error:
        yield _problem(broker_id, "no-answer", None, str(error), "see whether the broker runs, and its log")
        return
    for entry in told:
        for found in json.loads(entry.value or "[]"):
            named = _problem(broker_id, found["kind"], found.get("partition"), found["text"], found["advice"])
            if "since_ms" in found:
                named["since"] = format_time(found["since_ms"])
            yield named | {name: found[name] for name in ("first_offset", "last_offset", "file") if name in found}


def _problem(broker_id: BrokerId | None, kind: str, partition: str | None, problem: str, advice: str) -> dict[str, Any]:
    return {
        "broker": broker_id,
        "kind": kind,
        "partition": partition,
        "since": None,
        "problem": problem,
        "advice": advice,
    }


def _broker_rows(
    known: Metadata, described: Iterable[DescribedBroker], voters: Collection[BrokerId]
) -> list[dict[str, Any]]:
    partitions = [partition for topic in known.topics.values() for partition in topic.partitions]
    return [
        {
            "broker": broker_id,
            "host": host,
            "port": port,
            "rack": rack,
            "state": "fenced" if is_fenced else "active",
            "controller": broker_id == known.controller_id,
            "votes": broker_id in voters,
            "leads": sum(partition.leader == broker_id for partition in partitions),
            "replicas": sum(broker_id in partition.replicas for partition in partitions),
        }
        for broker_id, host, port, rack, is_fenced in sorted(described)
    ]


def _counts(known: Metadata) -> dict[str, int]:
    partitions = [partition for topic in known.topics.values() for partition in topic.partitions]
    return {
        "topics": len(known.topics),
        "partitions": len(partitions),
        "without_leader": sum(partition.leader < 0 for partition in partitions),
        "under_replicated": sum(len(partition.in_sync) < len(partition.replicas) for partition in partitions),
    }
