"""`zurau topic`: make, look at, change and remove topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    SETTINGS,
    Bootstrap,
    Format,
    FormatOption,
    Throttle,
    Timeout,
    TopicName,
    Yes,
    confirm,
    key_values,
    open_cluster,
)
from zurau.cli.output import say, show_json, show_rows
from zurau.settings import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from zurau.client.admin import Admin
    from zurau.client.cluster import Cluster, TopicInfo

app = typer.Typer(help="Make, look at, change and remove topics.", no_args_is_help=True, **SETTINGS)

PARTITION_COLUMNS = ("partition", "leader", "replicas", "in_sync", "start_offset", "end_offset")
SETTING_COLUMNS = ("setting", "value", "source")

#: Ours, and as Kafka's tools call it.
REPLICAS = ("--replicas", "--replication-factor")


@app.command()
def create(
    name: TopicName,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=INT32_MAX, help="How many. Default: the broker's choice.")
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(*REPLICAS, metavar="N", min=1, max=32767, help="Of each; else the broker's choice."),
    ] = None,
    config: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting; may be repeated.")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing topic is fine.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Make a topic.

    \b
    Examples:
      zurau topic create orders
      zurau topic create orders --partitions 6
      zurau topic create latest --config cleanup.policy=compact --config retention.ms=86400000
    """
    from zurau.client.admin import BROKER_DEFAULT, Admin, NewTopic
    from zurau.client.errors import BrokerRefused
    from zurau.wire.kafka.error_codes import ErrorCode

    settings = key_values(config or [], "--config")
    new = NewTopic(name, partitions or BROKER_DEFAULT, replicas or BROKER_DEFAULT, settings)
    with open_cluster(bootstrap, timeout) as cluster:
        admin = Admin(cluster)
        try:
            made = admin.create_topic(new)
        except BrokerRefused as error:
            if not if_not_exists or error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            made = admin.describe_topic(name)
    show_rows([_summary(made)], ("topic", "partitions", "replicas"), form)


@app.command(name="list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Also those that the broker keeps for itself.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the topics.

    \b
    Examples:
      zurau topic list
      zurau topic list --format json
    """
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as cluster:
        topics = Admin(cluster).list_topics(with_internal=internal)
    show_rows([_summary(topic) for topic in topics], ("topic", "partitions", "replicas"), form)


@app.command()
def describe(
    name: TopicName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show a topic's partitions and its own settings.

    \b
    Examples:
      zurau topic describe orders
      zurau topic describe orders --format json
    """
    from zurau.client.admin import Admin
    from zurau.ids import id_text

    with open_cluster(bootstrap, timeout) as cluster:
        admin = Admin(cluster)
        topic = admin.describe_topic(name)
        rows = _partition_rows(cluster, topic)
        own = {entry.name: entry.value for entry in admin.topic_settings(name) if entry.source == "topic"}
    if form is Format.JSON:
        described = {"topic": name, "topic_id": id_text(topic.topic_id), "internal": topic.is_internal}
        show_json(described | {"partitions": rows, "settings": own})
        return
    show_rows(rows, PARTITION_COLUMNS, form)
    if form is Format.TABLE and own:
        show_rows([{"setting": setting, "value": value} for setting, value in own.items()], ("setting", "value"), form)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of the topics.")],
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Remove topics and all their records.

    \b
    Examples:
      zurau topic delete orders
      zurau topic delete orders invoices --yes
    """
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as cluster:
        admin = Admin(cluster)
        for name in names:
            _must_exist(admin, name)
        confirm(f"Remove {', '.join(names)} with all records?", yes=yes)
        for name in names:
            admin.delete_topic(name)
            say(f"removed {name}")


@app.command()
def config(
    name: TopicName,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set it; may be repeated.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Back to the default; may be repeated.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show a topic's settings, or change some.

    \b
    Examples:
      zurau topic config orders
      zurau topic config orders --set retention.ms=86400000
      zurau topic config orders --unset retention.ms
    """
    from zurau.client.admin import Admin

    changes: dict[str, str | None] = {**key_values(set_ or [], "--set"), **dict.fromkeys(unset or [])}
    with open_cluster(bootstrap, timeout) as cluster:
        admin = Admin(cluster)
        if changes:
            admin.change_topic_settings(name, changes)
        entries = admin.topic_settings(name)
    rows = [{"setting": entry.name, "value": entry.value, "source": entry.source} for entry in entries]
    show_rows(rows, SETTING_COLUMNS, form)


@app.command(name="add-partitions")
def add_partitions(
    name: TopicName,
    total: Annotated[int, typer.Argument(min=1, max=INT32_MAX, help="How many the topic shall have in all.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Give a topic more partitions. Keys may then belong to another partition than before.

    \b
    Example:
      zurau topic add-partitions orders 12
    """
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as cluster:
        grown = Admin(cluster).add_partitions(name, total)
    show_rows([_summary(grown)], ("topic", "partitions", "replicas"), form)


@app.command()
def alter(
    name: TopicName,
    replicas: Annotated[int, typer.Option(*REPLICAS, metavar="N", min=1, max=32767, help="Of each partition.")],
    throttle: Throttle = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Give a topic more or fewer replicas.

    \b
    Examples:
      zurau topic alter orders --replicas 3
      zurau topic alter orders --replicas 3 --throttle 50000000
    """
    from zurau.cli.cluster_operations import change_factor
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as cluster:
        change_factor(cluster, name, replicas, throttle)
        changed = Admin(cluster).describe_topic(name)
    show_rows([_summary(changed)], ("topic", "partitions", "replicas"), form)


@app.command()
def purge(
    name: TopicName,
    partition: Annotated[list[int] | None, typer.Option(metavar="N", help="Only this one; may be repeated.")] = None,
    before_offset: Annotated[
        int | None,
        typer.Option(metavar="OFFSET", min=0, max=INT64_MAX, help="Keep the records from here on. Default: keep none."),
    ] = None,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Delete records, and keep the topic.

    \b
    Examples:
      zurau topic purge orders
      zurau topic purge orders --partition 0 --before-offset 1000
    """
    from zurau.client.admin import Admin
    from zurau.ids import TopicPartition

    with open_cluster(bootstrap, timeout) as cluster:
        indexes = partition or [known.index for known in cluster.topic(name).partitions]
        bound = -1 if before_offset is None else before_offset
        confirm(f"Delete records of {name}, partitions {', '.join(map(str, indexes))}?", yes=yes)
        starts = Admin(cluster).delete_records({TopicPartition(name, index): bound for index in indexes})
    rows = [{"partition": kept.partition, "start_offset": start} for kept, start in sorted(starts.items())]
    show_rows(rows, ("partition", "start_offset"), form)


def _must_exist(admin: Admin, name: str) -> None:
    from zurau.client.errors import ClientError, UnknownTopic

    try:
        admin.describe_topic(name)
    except UnknownTopic as error:
        raise ClientError(f"there is no topic {name!r}; see `zurau topic list`") from error


def _summary(topic: TopicInfo) -> dict[str, Any]:
    return {"topic": topic.name, "partitions": len(topic.partitions), "replicas": topic.replica_count}


def _partition_rows(cluster: Cluster, topic: TopicInfo) -> list[dict[str, Any]]:
    """Offsets are left out where no leader can tell them."""
    from zurau.client.cluster import NO_LEADER
    from zurau.client.offsets import end_offsets, start_offsets
    from zurau.ids import TopicPartition

    led = [TopicPartition(topic.name, known.index) for known in topic.partitions if known.leader != NO_LEADER]
    starts, ends = start_offsets(cluster, led), end_offsets(cluster, led)
    return [
        {
            "partition": known.index,
            "leader": None if known.leader == NO_LEADER else known.leader,
            "replicas": list(known.replicas),
            "in_sync": list(known.in_sync),
            "start_offset": starts.get(TopicPartition(topic.name, known.index)),
            "end_offset": ends.get(TopicPartition(topic.name, known.index)),
        }
        for known in topic.partitions
    ]
