"""The file that says that a broker stopped in good order.

It names the start that ended so, by the count of the journal, and the broker epoch under which the controller had
counted it. Older releases wrote the count alone, or nothing at all; they remove the file when they start, which shows
that they ran.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.ids import Epoch
from zurau.ports import Disk

FILE = "clean-stop"


class StopMark(NamedTuple):
    start_count: int
    broker_epoch: Epoch
    #: Of a release that kept no journal.
    is_old: bool = False


def read_stop_mark(disk: Disk) -> StopMark | None:
    content = disk.read_file(FILE)
    if content is None:
        return None
    try:
        count, *epoch = map(int, content.split())
    except ValueError:
        return StopMark(-1, -1, is_old=not content)
    return StopMark(count, epoch[0] if epoch else -1)


def write_stop_mark(disk: Disk, mark: StopMark) -> None:
    """Blocks."""
    disk.replace_file(FILE, b"%d %d" % (mark.start_count, mark.broker_epoch))


def remove_stop_mark(disk: Disk) -> None:
    """Safe when the directory is flushed."""
    disk.remove(FILE)
