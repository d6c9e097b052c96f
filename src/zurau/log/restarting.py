"""Completing what a log was told last before a crash: to forget everything and to begin anew behind a snapshot.

Three things change then: where the log starts, its segments, and its epochs. Should a crash come between them, the log
would hold one log's start and another's epochs, and say that it agrees with logs of which it has nothing. So the
checkpoint first says what shall be, and until it says no more, whoever opens the log does it, from the beginning: of
the new log there is nothing yet that could be lost.
"""

from __future__ import annotations

from zurau.epochs import EpochHistory, EpochMark
from zurau.log import checkpoint as checkpoint_file
from zurau.log import epochs as epoch_file
from zurau.log.checkpoint import Checkpoint
from zurau.log.epochs import encode_epochs
from zurau.log.files import DELETED_SUFFIX, SWAP_SUFFIX, is_segment_file
from zurau.ports import Disk


def complete_restart(disk: Disk, directory: str, begun: Checkpoint) -> Checkpoint:
    """Returns what the checkpoint says then. Blocks."""
    assert begun.restart_epoch is not None
    for name in disk.list_directory(directory):
        path = f"{directory}/{name}"
        if (is_segment_file(name) or name.endswith(SWAP_SUFFIX)) and not disk.is_directory(path):
            disk.rename(path, path + DELETED_SUFFIX)
    epochs = EpochHistory([EpochMark(begun.restart_epoch, begun.start_offset)])
    disk.replace_file(f"{directory}/{epoch_file.FILE_NAME}", encode_epochs(epochs))  # and the names are safe with it
    done = begun._replace(restart_epoch=None)
    disk.replace_file(f"{directory}/{checkpoint_file.FILE_NAME}", done.content())
    return done
