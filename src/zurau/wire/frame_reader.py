"""Cuts what arrives on a connection into frames, without doing the reading.

    view = reader.get_buffer()          where the next bytes shall go
    frames = reader.received(count)     after `count` bytes went there

Between frames a connection owns no memory: all connections of a listener read into one scratch buffer, which works
because the bytes are taken out of it before another connection is given it. Small frames are copied out of there. The
rest of a frame that has arrived in part is read straight into that frame's own memory.

That memory grows with what has arrived, not with what was announced, so announcing much and sending nothing costs the
peer more than it costs us. It grows in place and by a few megabytes at a time, so no single step takes long.

Every protocol here whose frames begin with their size as int32 is read by this: Kafka's, and that between brokers.

Thousands of frames may arrive in one read. A reader with `frames_max` cuts that many; the rest stays in one piece until
`more` is asked for.
"""

from __future__ import annotations

import struct

from zurau.errors import ProtocolViolation

_SIZE = struct.Struct(">i")

#: What a frame that has only been announced is given.
FIRST_BYTES = 16 * 1024
#: A frame's memory is at most this many times what has arrived of it, and grows by so much at most.
GROWTH = 4
GROWTH_BYTES_MAX = 4 * 1024 * 1024


class SizedFrameReader:
    """Turns one connection's bytes into frames without their sizes, each in writable memory of its own."""

    def __init__(self, scratch: bytearray | memoryview, max_frame_bytes: int, frames_max: int | None = None) -> None:
        assert len(scratch) > _SIZE.size, "the scratch buffer must hold more than a size"
        self._scratch = memoryview(scratch)
        self._max_frame_bytes = max_frame_bytes
        self._frames_max = frames_max
        #: Whole frames, and perhaps the beginning of one, that are not cut yet.
        self._uncut: memoryview | None = None
        #: The beginning of a size, when a read ended within one.
        self._held = b""
        #: The frame that is arriving, when at least its size has: memory for `arrived` bytes of `size` and some more.
        self._frame: bytearray | None = None
        self._arrived = 0
        self._size = 0

    @property
    def held_bytes(self) -> int:
        """The memory of what is not cut yet, or of the frame that is arriving."""
        if self._uncut is not None:
            return len(self._uncut)
        return 0 if self._frame is None else len(self._frame)

    @property
    def has_more(self) -> bool:
        """Frames have arrived that are not cut yet: take them with `more` before anything else is read."""
        return self._uncut is not None

    def more(self) -> list[memoryview]:
        """The next frames of what has arrived."""
        uncut, self._uncut = self._uncut, None
        return [] if uncut is None else self._cut(uncut)

    def forget(self) -> None:
        """Nothing that has arrived is wanted any more."""
        self._frame = self._uncut = None
        self._held = b""

    def get_buffer(self) -> memoryview:
        """Where to put the next bytes. Never empty; valid until `received` is called."""
        assert self._uncut is None, "there is more to be cut"
        if self._frame is not None:
            if self._arrived == len(self._frame):
                self._grow(self._frame)
            return memoryview(self._frame)[self._arrived :]
        held = len(self._held)
        self._scratch[:held] = self._held
        return self._scratch[held:]

    def received(self, count: int) -> list[memoryview]:
        """The frames that are complete now that `count` bytes more were put into the buffer."""
        if self._frame is None:
            return self._cut(self._scratch[: len(self._held) + count])
        self._arrived += count
        self._check_beginning(self._frame)
        if self._arrived == self._size:
            complete, self._frame = memoryview(self._frame), None
            return [complete]
        return []

    def _cut(self, data: memoryview) -> list[memoryview]:
        """Copy every complete frame out of the scratch buffer, and begin the one that is not."""
        frames: list[memoryview] = []
        position, end = 0, len(data)
        while end - position >= _SIZE.size:
            if len(frames) == self._frames_max:
                rest = data[position:]
                self._uncut = rest if data.obj is not self._scratch.obj else memoryview(bytes(rest))
                self._held = b""
                return frames
            size = self._checked_size(data, position)
            position += _SIZE.size
            if size > end - position:
                self._size = size
                self._arrived = end - position
                self._held = b""
                self._frame = self._room_for(data[position:])
                return frames
            frames.append(memoryview(bytearray(data[position : position + size])))
            position += size
        self._held = bytes(data[position:])
        return frames

    def _checked_size(self, data: memoryview, position: int) -> int:
        size: int = _SIZE.unpack_from(data, position)[0]
        if not 0 <= size <= self._max_frame_bytes:
            raise ProtocolViolation(f"a frame of {size} bytes; the largest allowed has {self._max_frame_bytes}")
        return size

    def _check_beginning(self, arrived: bytearray | memoryview) -> None:
        """For protocols that can tell by the first bytes of a large frame that they do not want the rest."""

    def _more_bytes(self) -> int:
        """How much more memory an arriving frame is given, at most."""
        return min((GROWTH - 1) * self._arrived, GROWTH_BYTES_MAX)

    def _room_for(self, arrived: memoryview) -> bytearray:
        """Memory for the arriving frame, beginning with what is there of it."""
        self._check_beginning(arrived)
        frame = bytearray(min(self._size, max(FIRST_BYTES, self._arrived + self._more_bytes())))
        frame[: self._arrived] = arrived
        return frame

    def _grow(self, frame: bytearray) -> None:
        """Make room for more of the arriving frame. Nobody looks at it now: the last read is over."""
        more = min(self._size - self._arrived, self._more_bytes())
        try:
            frame.extend(bytes(more))
        except BufferError:  # somebody does after all
            self._frame = bytearray(self._arrived + more)
            self._frame[: self._arrived] = frame
