"""Which files a Parquet lake consists of at one moment, while an archive writes to it and compaction merges files.

A batch of the archive counts from the moment its journal is written, though its files are moved one by one afterwards;
they are taken from where they are. A merged file and those it stands for may both be there for a moment, so a row may
be in two files; it is never in none, if two looks at the directories see the same.
"""

from __future__ import annotations

import json
from pathlib import Path

from zurau.errors import ZurauError

#: Where files of a batch wait, and its journal.
STAGING = ".staging"
LOOKS_MAX = 20


class LakeBusy(ZurauError):
    """The directories changed with every look."""


def list_files(lake: Path) -> list[Path]:
    seen = _look(lake)
    for _ in range(LOOKS_MAX):
        again = _look(lake)
        if again == seen:
            return sorted(seen)
        seen = again
    raise LakeBusy(f"{lake} changed with each of {LOOKS_MAX} looks; let fewer compactions run at the same time")


def _look(lake: Path) -> set[Path]:
    visible = {
        file
        for file in lake.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(lake).parts)
    }
    return visible | _decided(lake)


def _decided(lake: Path) -> set[Path]:
    """Files of batches that have a journal and are not in their places yet."""
    found = set()
    for journal in (lake / STAGING).glob("*.json"):
        try:
            moves = json.loads(journal.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        found |= {lake / staged for staged, _ in moves if (lake / staged).exists()}
    return found
