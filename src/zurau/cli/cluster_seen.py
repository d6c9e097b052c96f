"""`zurau cluster seen`: when each broker, producer and consumer was last seen, by any broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from zurau.cli.times import format_time

if TYPE_CHECKING:
    from zurau.client.admin import Admin
    from zurau.ids import BrokerId

#: The read-only config in which a broker of ours tells whom it has seen. Apache Kafka has none.
SEEN_CONFIG = "zurau.seen"
COLUMNS = ("kind", "name", "group", "last_seen", "by")


def seen(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show when each broker, producer, consumer and group member was last seen, and by which broker.

    Clients are named by the id that they give themselves (`client.id`). Kept over restarts of brokers.

    \b
    Examples:
      zurau cluster seen
      zurau cluster seen --format json
    """
    from zurau.client.admin import Admin

    with open_cluster(bootstrap, timeout) as opened:
        admin = Admin(opened)
        rows, left_out = seen_by_all(admin, sorted(admin.describe_cluster().brokers))
    rows.sort(key=lambda row: (row["kind"], row["group"], row["name"]))
    shown = [row | {"last_seen": format_time(row["last_seen"])} for row in rows]
    show_rows(shown, COLUMNS, form)
    if left_out:
        typer.echo(f"and up to {left_out} more, seen longer ago", err=True)


def seen_by_all(admin: Admin, brokers: list[BrokerId]) -> tuple[list[dict[str, Any]], int]:
    """The latest of what all brokers say, times in milliseconds; and how many they did not tell."""
    import json

    from zurau.client.errors import ClientError

    latest: dict[tuple[str, str, str], dict[str, Any]] = {}
    left_out = 0
    for broker in brokers:
        try:
            told = admin.broker_settings(broker, [SEEN_CONFIG])
        except ClientError:
            continue  # who does not answer is told by `health`
        for found in (each for entry in told for each in json.loads(entry.value or "[]")):
            if "more" in found:
                left_out += found["more"]
                continue
            key = found["kind"], found["name"], found.get("group", "")
            if key not in latest or latest[key]["last_seen"] < found["at_ms"]:
                latest[key] = dict(zip(COLUMNS, (*key, found["at_ms"], broker), strict=True))
    return list(latest.values()), left_out


def add_to(app: typer.Typer) -> None:
    app.command()(seen)
