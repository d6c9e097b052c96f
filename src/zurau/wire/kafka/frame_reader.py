"""Reads requests: frames whose first bytes tell whether they may be large."""

from __future__ import annotations

from zurau.errors import ProtocolViolation
from zurau.settings import MIB
from zurau.wire.frame_reader import SizedFrameReader

#: The key of the one API whose requests have records, as they begin.
PRODUCE = b"\0\0"
#: A request without records. One that commits 100,000 offsets has three megabytes; the subscriptions and assignments
#: of a group have to fit into one record. Told when it has begun to arrive, not when all of it has.
WITHOUT_RECORDS_BYTES_MAX = 16 * MIB


class FrameReader(SizedFrameReader):
    def _check_beginning(self, arrived: bytearray | memoryview) -> None:
        if self._size > WITHOUT_RECORDS_BYTES_MAX and self._arrived >= len(PRODUCE) and bytes(arrived[:2]) != PRODUCE:
            raise ProtocolViolation(
                f"a request of {self._size} bytes; one without records has {WITHOUT_RECORDS_BYTES_MAX} at most"
            )
