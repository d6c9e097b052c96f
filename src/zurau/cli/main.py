"""The entry point `zurau`: which commands there are, and how errors leave the process."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from zurau.errors import ZurauError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["serve"]:
            from zurau.cli.serve import main as serve

            code = serve(given[1:])
        else:
            from zurau.cli.commands import app

            code = app(given, prog_name="zurau")
    except ZurauError as error:
        sys.stderr.write(f"zurau: {error}\n")
        code = 1
    sys.exit(code)
