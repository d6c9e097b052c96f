"""Commands of packages that not everybody installs. They are loaded by name, when they are asked for.

Nothing in Zurau imports them, so everything else works without them, and as quickly.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

from zurau.errors import SettingsError


class Optional(NamedTuple):
    module: str
    #: What it is missing without, and the extra that brings it.
    needs: str
    extra: str


COMMANDS = {"pipeline": Optional("pyspark_zurau.cli", "Spark", "spark")}


def run_optional(command: str, arguments: Sequence[str]) -> None:
    """Hand the arguments over to the command's own tree, which ends the process."""
    optional = COMMANDS[command]
    try:
        module = importlib.import_module(optional.module)
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"`zurau {command}` needs {optional.needs}, and there is no module {error.name}; install it with"
            f' pip install "zurau[{optional.extra}]"'
        ) from None
    module.app(list(arguments), prog_name=f"zurau {command}")
