"""The names of a log's files, and the renames that must not go wrong.

| file                                     | what it is                                             |
|------------------------------------------|--------------------------------------------------------|
| `00000000000000000042.log`               | the batches from offset 42 on                          |
| `….index`, `….timeindex`                 | its indexes                                            |
| `….log.deleted`                          | no longer in the log; a worker removes it              |
| `….log.cleaned`                          | a compaction is writing it; without worth after a crash |
| `….log.swap`                             | a compaction is done with it; it replaces the old one  |
| `….log.aside`                            | a copy of records that another segment holds; kept     |
| `….log.200.damaged`                      | bytes that a repair took out, from position 200; kept  |
| `leader-epoch-checkpoint`                | see epochs                                             |
| `damaged-ranges`                         | see known_damage                                       |
| `log-checkpoint`                         | see checkpoint                                         |
"""

from __future__ import annotations

import re

from zurau.ids import Offset
from zurau.ports import Disk

LOG_SUFFIX = ".log"
OFFSET_SUFFIX = ".index"
TIME_SUFFIX = ".timeindex"
SUFFIXES = (LOG_SUFFIX, OFFSET_SUFFIX, TIME_SUFFIX)
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"
#: Kept for people to look at; nobody else does.
ASIDE_SUFFIX = ".aside"
DAMAGED_SUFFIX = ".damaged"
LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX)


_SEGMENT_FILE = re.compile(r"\d{20}\.(log|index|timeindex)", re.ASCII)


def is_segment_file(name: str) -> bool:
    """Whether a name is one of a segment's. Whatever else lies in the directory is somebody else's."""
    return _SEGMENT_FILE.fullmatch(name) is not None


def segment_stem(directory: str, base_offset: Offset) -> str:
    """The path that a segment's files have in common."""
    return f"{directory}/{base_offset:020}"


def rename_away(disk: Disk, stem: str) -> list[str]:
    """Take a segment's files out of the log; returns what can be removed."""
    paths = [stem + suffix for suffix in SUFFIXES if disk.exists(stem + suffix)]
    for path in paths:
        disk.rename(path, path + DELETED_SUFFIX)
    return [path + DELETED_SUFFIX for path in paths]


def empty_file(disk: Disk, path: str) -> None:
    """If it is there."""
    if disk.exists(path):
        file = disk.open(path, create=False)
        file.truncate(0)
        file.close()


def complete_swap(disk: Disk, stem: str) -> None:
    """Put the `.swap` files of a segment in the place of the old ones, the log last."""
    for suffix in reversed(SUFFIXES):
        if disk.exists(stem + suffix + SWAP_SUFFIX):
            disk.rename(stem + suffix + SWAP_SUFFIX, stem + suffix)
        elif suffix != LOG_SUFFIX:
            disk.remove(stem + suffix)  # it may belong to the old log; if not, it is made again
