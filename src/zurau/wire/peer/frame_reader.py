"""Cuts what another broker sends into frames.

Nobody is believed before the handshake: until then a frame is small, and there is one. What comes right behind the
handshake waits until that is understood.
"""

from __future__ import annotations

from zurau.errors import ProtocolViolation
from zurau.settings import KIB, MIB
from zurau.wire.frame_reader import SizedFrameReader
from zurau.wire.peer.frames import HEADER_BYTES, check_beginning

#: A handshake with a dozen listeners has a few hundred bytes.
HANDSHAKE_BYTES_MAX = 16 * KIB
#: The head is decoded in one go. One that names 100,000 partitions has eight megabytes.
HEAD_BYTES_MAX = 64 * MIB
#: A frame whose head is right gets so much memory at once: what is announced then is what a broker is sending, and to
#: grow in smaller steps costs more than anything else here.
KNOWN_GROWTH_BYTES = 8 * MIB


class PeerFrameReader(SizedFrameReader):
    def __init__(self, scratch: bytearray | memoryview, max_frame_bytes: int) -> None:
        super().__init__(scratch, HANDSHAKE_BYTES_MAX, frames_max=1)
        self._max_bytes_later = max_frame_bytes
        #: Of the frame that is arriving, whether its head is there and right.
        self._is_head_checked = False

    @property
    def arriving_bytes(self) -> int:
        """The size of a frame of which a part has arrived; 0: none."""
        return self._size if self._frame is not None else 0

    def handshake_done(self) -> list[memoryview]:
        """Frames may be large from now on, and many. Returns those that have come with the handshake."""
        self._max_frame_bytes = self._max_bytes_later
        self._frames_max = None
        return self.more()

    def _cut(self, data: memoryview) -> list[memoryview]:
        self._is_head_checked = False
        return super()._cut(data)

    def _checked_size(self, data: memoryview, position: int) -> int:
        try:
            return super()._checked_size(data, position)
        except ProtocolViolation as violation:
            raise ProtocolViolation(
                f"{violation}. If a broker has taken a batch of that size, start all with its socket.request.max.bytes"
            ) from None

    def _more_bytes(self) -> int:
        return KNOWN_GROWTH_BYTES if self._is_head_checked else super()._more_bytes()

    def _check_beginning(self, arrived: bytearray | memoryview) -> None:
        if self._is_head_checked or self._arrived < HEADER_BYTES:
            return
        with memoryview(arrived)[: self._arrived] as beginning:
            end = check_beginning(self._size, beginning, HEAD_BYTES_MAX)
            self._is_head_checked = end is not None
