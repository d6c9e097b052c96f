"""`zurau group`: consumer groups, how far they got, and moving them elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    SETTINGS,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    Yes,
    confirm,
    open_cluster,
)
from zurau.cli.output import counted, say, show_json, show_rows

if TYPE_CHECKING:
    from zurau.client.cluster import Cluster
    from zurau.client.groups.admin import GroupAdmin
    from zurau.ids import Offset, TopicPartition

app = typer.Typer(help="Consumer groups: members, offsets, lag, reset.", no_args_is_help=True, **SETTINGS)

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
OFFSET_COLUMNS = ("topic", "partition", "offset", "end_offset", "lag", "member", "host")
MOVE_COLUMNS = ("topic", "partition", "from", "to", "difference")


@app.command(name="list")
def list_groups(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the groups.

    \b
    Examples:
      zurau group list
      zurau group list --format csv
    """
    from zurau.client.groups.admin import GroupAdmin

    with open_cluster(bootstrap, timeout) as cluster:
        groups = GroupAdmin(cluster).list_groups()
    rows = [{"group": group.name, "state": group.state, "kind": group.kind or None} for group in groups]
    show_rows(rows, ("group", "state", "kind"), form)


@app.command()
def describe(
    group: GroupName,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show how far a group got, what is left, and who reads.

    \b
    Examples:
      zurau group describe billing
      zurau group describe billing --format json
    """
    from zurau.client.groups.admin import GroupAdmin

    with open_cluster(bootstrap, timeout) as cluster:
        admin = GroupAdmin(cluster)
        described = admin.describe_group(group)
        rows = _offset_rows(cluster, admin, group)
    if form is Format.JSON:
        members = [
            {"member": member.member_id, "client": member.client_id, "host": member.host}
            for member in described.members
        ]
        head = {"group": group, "state": described.state, "assignor": described.assignor or None}
        show_json(head | {"coordinator": described.coordinator, "members": members, "partitions": rows})
        return
    title = f"group {group}: {described.state}, {counted(len(described.members), 'member')}"
    show_rows(rows, OFFSET_COLUMNS, form, title=title)


@app.command()
def reset(
    group: GroupName,
    topic: Annotated[
        list[str] | None, typer.Option(help="Only this topic; may be repeated. Default: all it has read.")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record there is.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="To this offset.")] = None,
    to_time: Annotated[str | None, typer.Option(metavar="TIME", help="To a moment, as 10m (ago) or ISO.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Let a group go on from somewhere else. Shows the change and asks; its members have to be stopped.

    \b
    Examples:
      zurau group reset billing --to-earliest --dry-run
      zurau group reset billing --to-time 2026-01-31T12:00 --topic orders
      zurau group reset billing --to-offset 0 --yes
      zurau group reset a-new-group --to-latest --topic orders
    """
    from zurau.client.groups.admin import GroupAdmin

    target = Target(to_earliest, to_latest, to_offset, to_time)
    with open_cluster(bootstrap, timeout) as cluster:
        admin = GroupAdmin(cluster)
        # Where the topics are named, the group itself need not exist yet.
        _refuse_while_active(admin, group, may_be_new=bool(topic))
        before = admin.offsets(group)
        after = target.offsets(cluster, _partitions(cluster, group, before, topic or []))
        rows = [_move_row(partition, before.get(partition), after[partition]) for partition in sorted(after)]
        show_rows(rows, MOVE_COLUMNS, form)
        if dry_run:
            say("nothing was changed (--dry-run)")
            return
        confirm(f"Move group {group}?", yes=yes)
        _refuse_while_active(admin, group, may_be_new=bool(topic))
        admin.move(group, after)
        say(f"moved {group}")


@app.command()
def delete(
    group: GroupName,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Forget a group and its offsets. Its members have to be stopped.

    \b
    Example:
      zurau group delete billing
    """
    from zurau.client.groups.admin import GroupAdmin

    with open_cluster(bootstrap, timeout) as cluster:
        admin = GroupAdmin(cluster)
        _refuse_while_active(admin, group)
        confirm(f"Forget group {group} and its offsets?", yes=yes)
        admin.delete_group(group)
        say(f"removed {group}")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a group shall go."""

    earliest: bool
    latest: bool
    offset: int | None
    time: str | None

    def __post_init__(self) -> None:
        if sum((self.earliest, self.latest, self.offset is not None, self.time is not None)) != 1:
            raise typer.BadParameter("say where to: one of --to-earliest, --to-latest, --to-offset and --to-time")

    def offsets(self, cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, Offset]:
        """An offset for each partition, never outside of what it holds."""
        from zurau.cli.times import parse_time
        from zurau.client.offsets import end_offsets, offsets_at_time, start_offsets

        if self.earliest:
            return start_offsets(cluster, partitions)
        if self.latest:
            return end_offsets(cluster, partitions)
        if self.time is not None:
            return offsets_at_time(cluster, partitions, parse_time(self.time, "--to-time"))
        assert self.offset is not None
        starts, ends = start_offsets(cluster, partitions), end_offsets(cluster, partitions)
        return {partition: min(max(self.offset, starts[partition]), ends[partition]) for partition in partitions}


def _refuse_while_active(admin: GroupAdmin, group: str, *, may_be_new: bool = False) -> None:
    from zurau.client.errors import BrokerRefused, ClientError
    from zurau.wire.kafka.error_codes import ErrorCode

    try:
        members = admin.describe_group(group).members
    except BrokerRefused as error:
        if not may_be_new or error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if members:
        hosts = ", ".join(sorted({f"{member.client_id} on {member.host.lstrip('/')}" for member in members}))
        raise ClientError(f"group {group!r} has {counted(len(members), 'active member')} ({hosts}); stop them first")


def _partitions(
    cluster: Cluster, group: str, committed: dict[TopicPartition, Offset], topics: list[str]
) -> list[TopicPartition]:
    """All partitions of the topics that were named, or else of those in which the group committed something."""
    from zurau.client.errors import ClientError

    if not topics and not committed:
        raise ClientError(f"group {group!r} has committed nothing yet; name the topic with --topic")
    chosen = topics or sorted({partition.topic for partition in committed})
    return [partition for topic in chosen for partition in cluster.partitions_of(topic)]


def _move_row(partition: TopicPartition, before: Offset | None, after: Offset) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "from": before,
        "to": after,
        "difference": None if before is None else after - before,
    }


def _offset_rows(cluster: Cluster, admin: GroupAdmin, group: str) -> list[dict[str, Any]]:
    """A row for each partition that has an offset, or a reader, or both."""
    from zurau.client.offsets import end_offsets

    described = admin.describe_group(group)
    committed = admin.offsets(group)
    assigned = {partition for member in described.members for partition in member.partitions}
    partitions = sorted({*committed, *assigned})
    ends = end_offsets(cluster, partitions)
    rows = []
    for partition in partitions:
        offset, owner = committed.get(partition), described.owner_of(partition)
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": offset,
                "end_offset": ends[partition],
                "lag": None if offset is None else max(0, ends[partition] - offset),
                "member": owner.member_id if owner else None,
                "host": owner.host.lstrip("/") if owner else None,
            }
        )
    return rows
