"""Commands of packages that not everybody installs. They are loaded by name, when they are asked for.

Nothing in Zurau imports them, so everything else works without them, and as quickly.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from zurau.errors import SettingsError


class Optional(NamedTuple):
    module: str
    #: What it is missing without, and the extra that brings it.
    needs: str
    extra: str
    #: What it is for, and its commands: for whoever asks before anything is installed.
    doc: str
    commands: tuple[str, ...]


COMMANDS = {
    "pipeline": Optional(
        "pyspark_zurau.cli",
        "Spark",
        "spark",
        "Run, check and watch data pipelines on Spark: topics to read, Spark SQL, and sinks, in a TOML file.",
        (
            "init",
            "preview",
            "run",
            "check",
            "warm-up",
            "host",
            "status",
            "reset",
            "list",
            "generate",
            "compact",
            "replay",
        ),
    )
}
HELP = {"--help", "-h"}


def run_optional(command: str, arguments: Sequence[str]) -> None:
    """Hand the arguments over to the command's own tree, which ends the process."""
    optional = COMMANDS[command]
    try:
        module = importlib.import_module(optional.module)
    except ModuleNotFoundError as error:
        install = f'pip install "zurau[{optional.extra}]"'
        if not arguments or HELP & set(arguments):
            sys.stdout.write(
                f"{optional.doc}\n\nCommands: {', '.join(optional.commands)}\n\n"
                f"They need {optional.needs}, which is not installed here: {install}\n"
            )
            return
        raise SettingsError(
            f"`zurau {command}` needs {optional.needs}, and there is no module {error.name}; install it with {install}"
        ) from None
    module.app(list(arguments), prog_name=f"zurau {command}")
