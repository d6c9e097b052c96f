"""What a disk lost or changed: a stretch of a log that was written and cannot be read any more.

Damage is never cut off and never passed over in silence: its bytes stay where they are, a read of its offsets is
answered with an error, and what lies behind it stays readable. `zurau log check` names every damaged range,
`zurau log repair` turns it into a plain gap and keeps a copy of its bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset


class DamagedRange(NamedTuple):
    """The offsets from `first_offset` up to, not including, `next_offset`, and where their bytes should be."""

    #: The partition's directory.
    directory: str
    first_offset: Offset
    next_offset: Offset
    #: The path of the segment that holds the damaged bytes, or, if there are none, in which they are missed.
    file: str
    position: int
    end_position: int
    reason: str

    def holds(self, offset: Offset) -> bool:
        return self.first_offset <= offset < self.next_offset

    @property
    def size_bytes(self) -> int:
        return self.end_position - self.position

    @property
    def offsets_text(self) -> str:
        last = self.next_offset - 1
        if last < self.first_offset:
            return "bytes that hold no offsets"
        return f"offset {last}" if last == self.first_offset else f"offsets {self.first_offset} to {last}"

    @property
    def place_text(self) -> str:
        if not self.size_bytes:
            return f"{self.file} ends before them, at byte {self.position}"
        return f"{self.file}, {self.size_bytes} bytes from {self.position} to {self.end_position}"

    def __str__(self) -> str:
        return f"{self.directory}: {self.offsets_text} damaged ({self.place_text}): {self.reason}"

    def error(self) -> CorruptData:
        """What whoever asks for one of its offsets is told."""
        return CorruptData(
            f"{self.directory} is damaged from offset {self.first_offset} to {self.next_offset - 1}; go on at "
            f"{self.next_offset}, or restore {self.file}"
        )


def gap_reason(next_offset: Offset) -> str:
    """Why offsets are missing between two segments."""
    return f"a segment file seems to be missing, or this one was cut short: the next begins at offset {next_offset}"


#: Said once with each damaged range that is found. Whether the rest is served depends on what kind of log it is.
ADVICE = (
    "restore the file from a copy, or stop the broker and run `zurau log repair`, which gives up these offsets and no "
    "others"
)
