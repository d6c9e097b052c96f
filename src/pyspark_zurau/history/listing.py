"""Which files a Parquet lake consists of at one moment, while an archive writes to it and compaction merges files.

A batch of the archive counts from the moment its journal is written, though its files are moved one by one afterwards;
they are taken from where they are. A merged file and those it stands for may both be there for a moment, so a row may
be in two files; it is never in none, if two looks at the directories see the same.
"""

from __future__ import annotations

import json

from pyarrow.fs import FileSelector, FileSystem

from pyspark_zurau.history.store import is_there
from zurau.errors import ZurauError

#: Where files of a batch wait, and its journal.
STAGING = ".staging"
LOOKS_MAX = 20


class LakeBusy(ZurauError):
    """The directories changed with every look."""


def list_files(lake: FileSystem) -> list[str]:
    seen = _look(lake)
    for _ in range(LOOKS_MAX):
        again = _look(lake)
        if again == seen:
            return sorted(seen)
        seen = again
    raise LakeBusy(f"the lake changed with each of {LOOKS_MAX} looks; let fewer compactions run at the same time")


def _look(lake: FileSystem) -> set[str]:
    visible = {
        file.path
        for file in lake.get_file_info(FileSelector("", recursive=True))
        if file.path.endswith(".parquet") and not any(part.startswith((".", "_")) for part in file.path.split("/"))
    }
    return visible | _decided(lake)


def _decided(lake: FileSystem) -> set[str]:
    """Files of batches that have a journal and are not in their places yet."""
    found = set()
    for journal in lake.get_file_info(FileSelector(STAGING, allow_not_found=True)):
        if not journal.path.endswith(".json"):
            continue
        try:
            with lake.open_input_stream(journal.path) as opened:
                moves = json.loads(opened.read())
        except FileNotFoundError:
            continue
        found |= {staged for staged, _ in moves if is_there(lake, staged)}
    return found
