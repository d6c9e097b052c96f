"""What the commands have in common: their options, and the way from an option to a cluster."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.settings import INT32_MAX

if TYPE_CHECKING:
    from zurau.client.cluster import Cluster

#: How every part of the command tree is made. Without markup, rich stays out of help and errors, and both stay quick.
SETTINGS: dict[str, Any] = {
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="ZURAU_BOOTSTRAP",
        metavar="HOST:PORT",
        help="A broker of the cluster, or several with commas between.",
    ),
]


def _is_number(seconds: float) -> float:
    if seconds != seconds:  # no bound refuses what is not a number
        raise typer.BadParameter("nan is not a number of seconds")
    return seconds


#: The most is what the protocol can say in milliseconds.
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.1, max=INT32_MAX // 1000, callback=_is_number, help="How long to try."
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the result.")]
Throttle = Annotated[
    int | None,
    typer.Option(metavar="BYTES", min=1, help="Move at most so many bytes a second at each broker, until it is done."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 30.0

#: From the file that --client-config names, before any command runs.
_properties: dict[str, str] = {}


def use_client_config(path: Path | None) -> None:
    _properties.clear()
    if path is not None:
        from zurau.client.security import read_properties
        from zurau.errors import SettingsError

        try:
            _properties.update(read_properties(path))
        except SettingsError as error:
            raise typer.BadParameter(str(error), param_hint="--client-config") from error


def open_cluster(bootstrap: str, timeout_s: float) -> Cluster:
    """Nothing is dialled yet: that happens with the first question."""
    from zurau.client.cluster import Cluster
    from zurau.client.security import parse_security
    from zurau.errors import SettingsError

    if bootstrap == DEFAULT_BOOTSTRAP:
        bootstrap = _properties.get("bootstrap.servers", bootstrap)
    try:
        security = parse_security(_properties)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--client-config") from error
    try:
        return Cluster(bootstrap, client_id="zurau-cli", timeout_s=timeout_s, security=security)
    except SettingsError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from error


def key_values(pairs: list[str], option: str) -> dict[str, str]:
    """`name=value` words as a mapping."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal; where there is none, say how to go without."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        from zurau.client.errors import ClientError

        raise ClientError(f"{question} Nobody is there to answer; pass --yes to go ahead")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
