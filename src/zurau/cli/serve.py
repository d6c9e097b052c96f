"""`zurau serve`: one flag for every setting, read off the tables in which the settings are declared.

This command has a parser of its own, from the standard library: a broker has to be ready in a fraction of a second,
and the rest of the command line takes a good part of that to import.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from zurau.cli.endings import results_are_remarks
from zurau.errors import SettingsError
from zurau.node.settings import ENVIRONMENT_PREFIX, all_settings, load
from zurau.settings import Setting, did_you_mean

EXAMPLES = """examples:
  zurau serve                                      on 127.0.0.1:9092, data in ./zurau-data
  zurau serve --kafka 0.0.0.0:9092 --dir /var/lib/zurau
  zurau serve --kafka 127.0.0.1:0                  on a free port; the ready line says which
  zurau serve --config zurau.toml                  settings from a file, by the same names
  ZURAU_RETENTION_MS=3600000 zurau serve           or from the environment

A flag wins over the environment, the environment over the file, the file over the default.
"""
WRONG_USAGE = 2
#: What people ask for first. The rest follows in the order of its rooms.
_TITLES = {
    "node": "this broker",
    "broker": "the cluster",
    "log": "defaults for topics",
    "groups": "consumer groups",
}


def main(arguments: Sequence[str]) -> int:
    """Parse, load and serve until a signal comes. Returns the exit code."""
    known, unknown = parser().parse_known_args(arguments)
    flags = vars(known)
    if unknown:
        hint = did_you_mean(unknown[0], (f"--{name.replace('_', '-')}" for name in flags))
        sys.stderr.write(f"zurau: there is no flag {unknown[0]!r}{hint}; `zurau serve --help` lists them\n")
        return WRONG_USAGE
    file = flags.pop("config")
    gc.disable()  # what is made from here until the broker is ready stays: `serve` begins to collect behind it
    from zurau.node.run import Node, serve

    try:
        settings = load(flags, os.environ, Path(file) if file else None)
        Node(settings)  # nothing is opened yet, but its addresses are read
    except SettingsError as error:
        sys.stderr.write(f"zurau: {error}\n")
        return WRONG_USAGE
    results_are_remarks()
    return serve(settings)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="zurau serve",
        description="Run a broker until it is told to stop (Ctrl-C, or SIGTERM).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "--config",
        metavar="FILE",
        default=os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG"),
        help="TOML file with settings.",
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for part, setting in all_settings():
        if part not in groups:
            groups[part] = made.add_argument_group(_TITLES.get(part, part))
        _add_flag(groups[part], setting)
    return made


def _add_flag(group: argparse._ArgumentGroup, setting: Setting) -> None:
    metavar = "|".join(setting.choices) if setting.choices else _METAVARS[setting.kind]
    default = setting.text(setting.default) or "empty"
    group.add_argument(
        f"--{setting.name.replace('_', '-')}",
        dest=setting.name,
        metavar=metavar,
        help=f"{setting.doc} [{default}]".replace("%", "%%"),
    )


_METAVARS = {int: "N", float: "X", bool: "true|false", str: "TEXT", tuple: "A,B"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
