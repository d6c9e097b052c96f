"""The entry point `zurau`: which commands there are, and how errors leave the process."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from zurau.cli.endings import NotWritten, exit_code_of
from zurau.errors import ZurauError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(exit_code_of(lambda: _run(given)))


def _run(given: list[str]) -> int:
    try:
        if given[:1] == ["serve"]:
            from zurau.cli.serve import main as serve

            return serve(given[1:])
        from zurau.cli.commands import app

        return int(app(given, prog_name="zurau") or 0)
    except NotWritten:
        raise
    except ZurauError as error:
        sys.stderr.write(f"zurau: {error}\n")
        return 1
