"""What a journal says, without writing anything: for the broker's start, and for whoever examines a directory."""

from __future__ import annotations

from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.journal.frames import Unreadable, read_frames
from zurau.journal.records import Known, decode_records
from zurau.ports import Disk

FILE = "journal"


class Reading(NamedTuple):
    known: Known
    #: Each damaged place, for people to read.
    damage: list[str]


def read_journal(disk: Disk) -> Reading | None:
    """What the journal in a data directory says; None if there is none. A torn end is no damage."""
    content = disk.read_file(FILE)
    if content is None:
        return None
    known, damage = Known(), []
    for piece in read_frames(content):
        try:
            if isinstance(piece, Unreadable):
                if not piece.is_torn_end:
                    raise CorruptData(f"bytes {piece.start} to {piece.end} are damaged" if content else "it is empty")
            else:
                for record in decode_records(piece):
                    known.apply(record)
        except CorruptData as fault:
            known.forget_logs()
            damage.append(f"{disk.root / FILE}: {fault}")
    return Reading(known, damage)
