"""One connection to another broker, without the socket.

    connection.made(transport)
    view = connection.get_buffer()       where the next bytes shall go
    connection.received(count)           after `count` bytes went there
    connection.gone(reason)              when it has ended, or could not be made

Who has dialled says who it is, the other answers with who that is, and from then on frames go both ways. The one that
does not want to talk says why in a last frame.

What the other side does not take is bounded: past that the connection ends, since sessions ask again, and a broker that
takes nothing must not fill our memory. So is what arrives, over all connections together (`frame_memory.py`). While a
large frame comes or goes, the listener hears of it now and then.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from zurau.broker.peers.acquaintance import reason_to_refuse
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId
from zurau.ports import Buffer, Handshake, Timer
from zurau.settings import KIB, MIB, SECOND_MS
from zurau.wire.peer.frame_reader import PeerFrameReader
from zurau.wire.peer.frames import Kind, kind_of
from zurau.wire.peer.handshake import decode_goodbye, decode_handshake, encode_goodbye, encode_handshake

if TYPE_CHECKING:
    from zurau.broker.peers.connections import PeerConnections

log = logging.getLogger("zurau.peers")

#: From the dialling, or from when it was accepted, to the handshake; and from the last word to the end.
PATIENCE_MS = 2 * SECOND_MS
#: No more is sent to a broker that has so much to take. A session has two responses of 4 MiB under way at most.
QUEUED_BYTES_MAX = 32 * MIB
#: The way of a frame of this size is watched.
LARGE_BYTES = 64 * KIB
#: How often the listener hears of a large frame that is under way.
PROGRESS_MS = 100


class Transport(Protocol):
    """A stream of bytes, as far as it is needed here."""

    def write(self, pieces: Sequence[Buffer]) -> None: ...

    def queued_bytes(self) -> int:
        """Written, and still in our memory."""

    def unsent_bytes(self) -> int:
        """Written, and not known to have arrived."""

    def pause(self) -> None:
        """Read no more, so that the other side keeps what it has to say."""

    def resume(self) -> None:
        """Read again."""

    def close(self) -> None:
        """When all that was written has left."""

    def abort(self) -> None:
        """Now. `gone` is not called before this returns."""


class PeerConnection:
    def __init__(self, peers: PeerConnections, where: str, dialled: BrokerId | None = None) -> None:
        self._peers = peers
        #: The address at the other end, for people to read.
        self.where = where
        #: Whom we wanted to talk to; None: somebody else wanted to talk to us.
        self.dialled = dialled
        #: Who is at the other end, once that is known.
        self.peer: Handshake | None = None
        self.connected_ms = 0.0
        self.is_closed = False
        self._transport: Transport | None = None
        self._reader = PeerFrameReader(peers.scratch, peers.max_frame_bytes)
        #: Bytes that were sent, and how many of them had arrived there at the last look.
        self._written = 0
        self._taken = 0
        #: Since when a large frame has been arriving, or since it was last told of.
        self._arriving_since_ms: float | None = None
        self._watch: Timer | None = None
        #: It has memory for the frame that is arriving, or waits for it.
        self._has_asked_for_memory = False
        self._held_up: Timer | None = None
        self._patience: Timer | None = peers.clock.call_later(PATIENCE_MS, self._out_of_patience)

    # What the transport says

    def made(self, transport: Transport) -> None:
        self._transport = transport
        if self.is_closed:
            transport.abort()
        elif self.dialled is not None:
            self._write(encode_handshake(self._peers.handshake()))

    def get_buffer(self) -> memoryview:
        return self._reader.get_buffer()

    def received(self, count: int) -> None:
        if self.is_closed:
            return
        try:
            self._take(self._reader.received(count))
        except ProtocolViolation as violation:
            self._peers.counters.protocol_violations += 1
            self.refuse(str(violation))
        self._see_to_memory()
        if self._reader.arriving_bytes < LARGE_BYTES or self.peer is None:
            self._arriving_since_ms = None
            return
        now_ms = self._peers.clock.monotonic_ms()
        if self._arriving_since_ms is None:
            self._arriving_since_ms = now_ms
        elif now_ms >= self._arriving_since_ms + PROGRESS_MS:
            self._arriving_since_ms = now_ms
            self._peers.listener.progressed(self.peer.broker)

    def _see_to_memory(self) -> None:
        """For a large frame there must be memory, and when it was heard that is given back."""
        arriving_bytes = self._reader.arriving_bytes
        if self._has_asked_for_memory:
            if not arriving_bytes:
                self._has_asked_for_memory = False
                self._peers.frame_memory.give_back(self)
        elif arriving_bytes >= LARGE_BYTES:
            self._has_asked_for_memory = True
            if not self._peers.frame_memory.take(self, arriving_bytes):
                assert self._transport is not None, "what was not made says nothing"
                self._transport.pause()
                self._hold_up()

    def _hold_up(self) -> None:
        """It is not the other side that is slow."""
        self._held_up = self._peers.clock.call_later(PROGRESS_MS, self._hold_up)
        if self.peer is not None:
            self._peers.listener.progressed(self.peer.broker)

    def let_in(self) -> None:
        """There is memory for the frame that is arriving."""
        assert self._transport is not None, "what was not made has no frame"
        self._stop_holding_up()
        self._transport.resume()

    def _stop_holding_up(self) -> None:
        if self._held_up is not None:
            self._held_up.cancel()
            self._held_up = None

    def gone(self, reason: str) -> None:
        """May be called more than once, and when the transport has never been made."""
        self._close()
        self._peers.gone(self, reason)

    # Frames

    def send(self, frame: Sequence[Buffer]) -> None:
        """Once the other side is known."""
        if self.is_closed:
            return
        assert self._transport is not None, "who is known is connected"
        queued_bytes = self._transport.queued_bytes()
        if queued_bytes > QUEUED_BYTES_MAX:
            self._peers.warn(f"{self} does not take {queued_bytes} bytes that are for it; connecting anew")
            self.abort()
        elif self._write(frame) >= LARGE_BYTES and self._watch is None:
            self._taken = self._written - self._transport.unsent_bytes()
            self._watch = self._peers.clock.call_later(PROGRESS_MS, self._look)

    def _write(self, frame: Sequence[Buffer]) -> int:
        assert self._transport is not None, "written before the connection was made"
        size = sum(map(len, frame))
        self._written += size
        self._transport.write(frame)
        return size

    def _take(self, frames: list[memoryview]) -> None:
        for frame in frames:
            if self.is_closed:
                return
            kind = kind_of(frame)
            if kind == Kind.GOODBYE:
                self._heard_goodbye(decode_goodbye(frame))
            elif self.peer is None and kind == Kind.HELLO and self.dialled is None:
                self._peers.hello(frame, self)
            elif self.peer is None:
                self._greet(decode_handshake(frame))
            elif kind == Kind.HANDSHAKE:
                raise ProtocolViolation("a second handshake")
            else:
                self._peers.listener.received(self.peer.broker, frame)

    def _heard_goodbye(self, reason: str) -> None:
        said = f"{self} has ended the connection: {reason}"
        if self.peer is None:
            self._peers.warn(said)
        else:  # it stops, or it has said in its own log what is wrong
            log.info("%s", said)
        self.abort()

    def _greet(self, theirs: Handshake) -> None:
        mine = self._peers.handshake()
        reason = reason_to_refuse(mine, theirs, self.dialled, self.where) or self._peers.reason_to_refuse(theirs)
        if reason is not None:
            self.refuse(reason)
            return
        self._stop_patience()
        if self.dialled is None:
            self._write(encode_handshake(mine))
        self.peer = theirs
        self._peers.greeted(self, theirs)
        self._take(self._reader.handshake_done())

    def _look(self) -> None:
        """Whether the other side takes what it is sent."""
        assert self._transport is not None, "nothing was sent"
        assert self.peer is not None, "nothing was sent"
        unsent_bytes = self._transport.unsent_bytes()
        taken, before = self._written - unsent_bytes, self._taken
        self._taken = taken
        if not unsent_bytes:
            self._watch = None
            return
        self._watch = self._peers.clock.call_later(PROGRESS_MS, self._look)
        if taken > before:
            self._peers.listener.progressed(self.peer.broker)

    def answer_and_close(self, frame: Sequence[Buffer]) -> None:
        """To somebody who has asked one question, and is not known otherwise."""
        if not self.is_closed:
            self._write(frame)
            self._close_when_sent()

    # The end

    def refuse(self, reason: str) -> None:
        self._peers.warn(f"ending the connection of {self}: {reason}")
        self.leave(reason)

    def leave(self, reason: str) -> None:
        """Say why, and close when that has left, or after a while."""
        if self.is_closed:
            return
        if self._transport is not None:
            self._write(encode_goodbye(reason))
        self._close_when_sent()

    def _close_when_sent(self) -> None:
        self._close()
        if self._transport is not None:
            self._transport.close()
            self._patience = self._peers.clock.call_later(PATIENCE_MS, self._transport.abort)

    def abort(self) -> None:
        self._close()
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        """Nothing is said or heard any more."""
        self.is_closed = True
        self._reader.forget()
        self._stop_patience()
        self._stop_holding_up()
        if self._has_asked_for_memory:
            self._has_asked_for_memory = False
            self._peers.frame_memory.give_back(self)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _out_of_patience(self) -> None:
        reason = f"no handshake within {PATIENCE_MS} ms"
        self.abort()
        if self._transport is None:
            self.gone(reason)
        else:
            self._peers.warn(f"ending the connection of {self}: {reason}")

    def _stop_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def __str__(self) -> str:
        broker = self.peer.broker if self.peer is not None else self.dialled
        return self.where if broker is None else f"broker {broker} at {self.where}"
