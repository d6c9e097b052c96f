"""`zurau cluster drain`, `decommission` and `rebalance`: what operators do, with progress until it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Throttle,
    Timeout,
    Yes,
    confirm,
    open_cluster,
)
from zurau.cli.output import counted

if TYPE_CHECKING:
    from zurau.client.admin import Admin
    from zurau.client.cluster import Cluster
    from zurau.client.cluster.metadata import BrokerInfo
    from zurau.client.operations import Operations
    from zurau.client.plans import Assignment
    from zurau.ids import BrokerId

LOOK_EVERY_S = 0.5
DRAIN = "zurau.drain"
#: Partitions that are named.
SHOWN = 5

BrokerArgument = Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")]
Within = Annotated[float, typer.Option(metavar="SECONDS", min=0, help="How long to wait until it is done.")]


def drain(
    broker: BrokerArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Let it lead again.")] = False,
    within: Within = 300.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Move leaders away from a broker, and keep them away, until --undo.

    It goes on holding its replicas, and serves what nobody else could.

    \b
    Examples:
      zurau cluster drain 3
      zurau cluster drain 3 --undo
    """
    from zurau.client.admin import Admin
    from zurau.client.operations import Operations
    from zurau.ids import BrokerId

    with open_cluster(bootstrap, timeout) as opened:
        admin, broker_id = Admin(opened), BrokerId(broker)
        Operations(opened).set_broker(broker_id, DRAIN, None if undo else "leaders")
        if undo:
            typer.echo(f"broker {broker} may lead again")
            return
        _await_no_leaders(admin, broker_id, within)
        _require_none_left(admin, broker_id)
    typer.echo(f"broker {broker} leads nothing; `zurau cluster drain {broker} --undo` takes this back")


def decommission(
    broker: BrokerArgument,
    yes: Yes = False,
    throttle: Throttle = None,
    within: Within = 3600.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Move everything away from a broker: leaders, replicas, its vote; then forget it.

    It may be there or be dead. Can be stopped and begun again at any time.

    \b
    Examples:
      zurau cluster decommission 3
      zurau cluster decommission 3 --throttle 50000000
    """
    from zurau.client.admin import Admin
    from zurau.client.operations import Operations
    from zurau.client.plans import assignment_of, without
    from zurau.ids import BrokerId

    with open_cluster(bootstrap, timeout) as opened:
        admin, operations, gone = Admin(opened), Operations(opened), BrokerId(broker)
        known = admin.describe_cluster()
        others = {each: info for each, info in _staying(admin, known.brokers).items() if each != gone}
        plan = _planned(lambda: without(assignment_of(known.topics.values()), gone, others))
        confirm(f"Move {counted(len(plan), 'replica')} away from broker {broker}, and forget it?", yes=yes)
        operations.set_broker(gone, DRAIN, "everything")
        _carry_out(operations, plan, within, throttle)
        _wait(lambda: int(gone in operations.voters()), "vote", within)
        operations.unregister(gone)
    typer.echo(f"broker {broker} holds nothing and is forgotten; stop it, if it runs")


def rebalance(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be moved.")] = False,
    yes: Yes = False,
    throttle: Throttle = None,
    within: Within = 3600.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Spread replicas and preferred leaders evenly over the brokers that are there.

    \b
    Examples:
      zurau cluster rebalance --dry-run
      zurau cluster rebalance --yes
    """
    from zurau.client.admin import Admin
    from zurau.client.operations import Operations
    from zurau.client.plans import assignment_of, balanced

    with open_cluster(bootstrap, timeout) as opened:
        admin, operations = Admin(opened), Operations(opened)
        known = admin.describe_cluster()
        now = assignment_of(known.topics.values())
        plan = balanced(now, _staying(admin, known.brokers))
        for name, replicas in sorted(plan.items()):
            typer.echo(f"{name}: {', '.join(map(str, now[name]))} -> {', '.join(map(str, replicas))}")
        if not plan:
            typer.echo("everything is even already")
        elif not dry_run:
            confirm(f"Change {counted(len(plan), 'partition')}?", yes=yes)
            _carry_out(operations, plan, within, throttle)


def add_to(app: typer.Typer) -> None:
    for command in (drain, decommission, rebalance):
        app.command()(command)


def change_factor(
    opened: Cluster, topic: str, factor: int, throttle: int | None = None, within: float = 3600.0
) -> None:
    """Of all partitions of a topic, on the brokers that have the fewest replicas."""
    from zurau.client.admin import Admin
    from zurau.client.operations import Operations
    from zurau.client.plans import assignment_of, with_factor

    admin = Admin(opened)
    changed = admin.describe_topic(topic)
    known = admin.describe_cluster()
    everything = assignment_of(known.topics.values())
    mine = assignment_of([changed])
    staying = _staying(admin, known.brokers)
    plan = _planned(lambda: with_factor(mine, factor, staying, everything))
    _carry_out(Operations(opened), plan, within, throttle)


def _staying(admin: Admin, brokers: Mapping[BrokerId, BrokerInfo]) -> dict[BrokerId, BrokerInfo]:
    """Those that are not to go."""

    def is_leaving(broker: BrokerId) -> bool:
        return any(entry.value == "everything" for entry in admin.broker_settings(broker, [DRAIN]))

    return {broker: info for broker, info in brokers.items() if not is_leaving(broker)}


def _planned(make: Callable[[], Assignment]) -> Assignment:
    from zurau.client.errors import ClientError

    try:
        return make()
    except ValueError as impossible:
        raise ClientError(str(impossible)) from impossible


def _carry_out(operations: Operations, plan: Assignment, within: float, throttle: int | None = None) -> None:
    """Move partitions, and wait until all of them are there. Who gives up waiting leaves the throttle as it is: what is
    under way stays bounded."""
    topics = sorted({each.topic for each in plan})
    if throttle is not None:
        operations.throttle(topics, throttle)
    if plan:
        operations.reassign(plan)
    _wait(lambda: len(plan.keys() & operations.moves().keys()), "partition", within)
    if throttle is not None:
        operations.throttle(topics, None)


def _require_none_left(admin: Admin, broker: BrokerId) -> None:
    """What has no other replica is led there still: whoever stops that broker has to know."""
    from zurau.client.errors import ClientError

    topics = admin.describe_cluster().topics.values()
    left = [f"{topic.name}-{each.index}" for topic in topics for each in topic.partitions if each.leader == broker]
    if left:
        shown = ", ".join(left[:SHOWN]) + (f" and {len(left) - SHOWN} more" if len(left) > SHOWN else "")
        raise ClientError(
            f"broker {broker} still leads {counted(len(left), 'partition')} of which no other broker has a replica: "
            f"{shown}. Give their topics more with `zurau topic alter TOPIC --replicas 2`; while it is "
            "stopped, they are offline"
        )


def _await_no_leaders(admin: Admin, broker: BrokerId, within: float) -> None:
    def led() -> int:
        topics = admin.describe_cluster().topics.values()
        partitions = [each for topic in topics for each in topic.partitions]
        return sum(each.leader == broker and len(each.replicas) > 1 for each in partitions)

    _wait(led, "leader", within)


def _wait(count: Callable[[], int], what: str, within: float) -> None:
    """Until nothing is left to move. Says so whenever that changes."""
    from zurau.client.errors import ClientError

    deadline, before = time.monotonic() + within, 0
    while left := count():
        if left != before:
            typer.echo(f"{counted(left, what)} still to move", err=True)
        if time.monotonic() >= deadline:
            raise ClientError(
                f"{counted(left, what)} still to move after {within:g} s; it goes on, and the same command waits for "
                "it again"
            )
        before = left
        time.sleep(LOOK_EVERY_S)
