"""`zurau cluster`: who is in it, and whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    open_cluster,
)
from zurau.cli.output import counted, show_json, show_rows

if TYPE_CHECKING:
    from zurau.client.metadata import Metadata

BROKER_COLUMNS = ("broker", "host", "port", "rack", "controller", "leads", "replicas")


def cluster(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the brokers, and whether all is well.

    \b
    Examples:
      zurau cluster
      zurau cluster --bootstrap kafka.example:9092 --format json
    """
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as opened:
        known = Admin(opened).describe_cluster()
    rows, health = _broker_rows(known), _health(known)
    if form is Format.JSON:
        named = {"cluster_id": known.cluster_id, "controller": known.controller_id}
        show_json(named | {"brokers": rows} | health)
        return
    title = (
        f"cluster {known.cluster_id}: {counted(health['topics'], 'topic')},"
        f" {counted(health['partitions'], 'partition')}, {health['without_leader']} without leader,"
        f" {health['under_replicated']} under replicated"
    )
    show_rows(rows, BROKER_COLUMNS, form, title=title)


def _broker_rows(known: Metadata) -> list[dict[str, Any]]:
    partitions = [partition for topic in known.topics.values() for partition in topic.partitions]
    return [
        {
            "broker": broker_id,
            "host": broker.address.host,
            "port": broker.address.port,
            "rack": broker.rack,
            "controller": broker_id == known.controller_id,
            "leads": sum(partition.leader == broker_id for partition in partitions),
            "replicas": sum(broker_id in partition.replicas for partition in partitions),
        }
        for broker_id, broker in sorted(known.brokers.items())
    ]


def _health(known: Metadata) -> dict[str, int]:
    partitions = [partition for topic in known.topics.values() for partition in topic.partitions]
    return {
        "topics": len(known.topics),
        "partitions": len(partitions),
        "without_leader": sum(partition.leader < 0 for partition in partitions),
        "under_replicated": sum(len(partition.in_sync) < len(partition.replicas) for partition in partitions),
    }
