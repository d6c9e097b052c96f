"""A broken invariant ends the process, at once and loudly.

An assertion that does not hold means that the broker is wrong about itself: whatever it does next could harm data or
answer with what is not true. So nothing more is written, not even the mark of a clean stop, and the next start looks at
everything as after a kill. What was acknowledged is on disk.

Everything that happens on the loop or in a worker ends up at the loop when it fails; `watch` looks there.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from zurau.errors import ReleaseTooOld

log = logging.getLogger("zurau")

#: What `sysexits.h` calls an internal software error.
EXIT_CODE = 70
ADVICE = (
    "an invariant is broken: %r. The broker stops here, so that this does no harm; what was acknowledged is on disk in "
    "%s, and nothing was written since. Start it again. If it stops again, keep a copy of that directory, and please "
    "report this with the lines above and below"
)

TOO_OLD = "%s. The broker stops here: it would not obey what it cannot read. Its data is in %s, as it was"

#: Told of a broken invariant. Does not return in a process that serves.
Fail = Callable[[BaseException], None]


def watch(loop: asyncio.AbstractEventLoop, fail: Fail) -> None:
    """Have `fail` told of every broken invariant that reaches the loop; other errors are logged, as ever."""

    def look(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, AssertionError):
            fail(error)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(look)


def end_process(directory: Path, error: BaseException | None) -> NoReturn:
    """Say what is broken and what to do, and end without anything further: no handler, no flush, no goodbye."""
    if isinstance(error, ReleaseTooOld):
        log.critical(TOO_OLD, error, directory)
    else:
        log.critical(ADVICE, error, directory, exc_info=error)
    logging.shutdown()
    os._exit(EXIT_CODE)
