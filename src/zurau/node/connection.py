"""One client's connection: frames in, answers out, in the same order.

Requests are answered one after the other, as Kafka does, with one exception: produce requests may be started while
earlier ones still wait for their flush, so that they share it. A client that reads slowly stops being served until it
has read; a client that sends nonsense is disconnected; nobody else notices either.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from zurau.api.kafka.call import Caller
from zurau.api.kafka.dispatch import PRODUCE, Answer, answer
from zurau.errors import ProtocolViolation
from zurau.pending import Pending
from zurau.ports import Buffer
from zurau.settings import KIB
from zurau.wire.kafka.frames import FrameReader, api_key_of

if TYPE_CHECKING:
    from zurau.node.listener import Listener

log = logging.getLogger("zurau.connection")

#: Answers up to this size are joined into one packet; larger pieces are sent without copying.
JOIN_BYTES = 32 * KIB
#: Produce requests that may wait for their flush together. Kafka's clients keep five in flight.
PRODUCES_IN_FLIGHT = 32


class Connection(asyncio.BufferedProtocol):
    """Answers one client."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reader = FrameReader(listener.scratch, listener.max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._caller: Caller | None = None
        #: Frames not yet started.
        self._inbox: deque[memoryview] = deque()
        #: Started and not yet sent, in the order of the requests.
        self._outbox: deque[Pending[Answer]] = deque()
        self._waits_only_for_produce = True
        self._can_write = True
        self._is_reading = True
        self._is_serving = False
        #: Memory of requests not yet started, as the listener counts it.
        self.held_bytes = 0
        #: For the listener, which looks now and then and notes when it saw activity: asking the clock for every read
        #: would cost more than it is worth.
        self.was_active = True
        self.seen_active_ms = 0.0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._caller = self._listener.admit(self, self._transport)
        if self._caller is None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.was_active = True
        try:
            frames = self._reader.received(nbytes)
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        if frames:
            self._inbox.extend(frames)
            self._serve()
        self._account()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._inbox.clear()
        self._outbox.clear()
        self._listener.memory_changed(-self.held_bytes)
        self.held_bytes = 0
        self._listener.forget(self)

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self.was_active = True
        self._send_ready()

    # The work

    @property
    def is_waiting_for_answer(self) -> bool:
        """A long poll is open, or a join waits at its barrier: silence is not idleness."""
        return bool(self._outbox) and not self._outbox[0].is_done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _serve(self) -> None:
        """Start requests while that is allowed; stop reading when it is not."""
        if self._is_serving or self._caller is None:
            return  # an answer that was ready at once called back from within the loop below
        self._is_serving = True
        try:
            while self._inbox and self._may_start():
                header, pending = answer(self._inbox.popleft(), self._caller, self._listener.broker)
                self._waits_only_for_produce = header.api_key == PRODUCE and (
                    self._waits_only_for_produce or not self._outbox
                )
                self._outbox.append(pending)
                if pending.is_done:
                    self._send_ready()
                else:
                    pending.then(lambda _: self._send_ready())
        except ProtocolViolation as violation:
            self._violated(violation)
        finally:
            self._is_serving = False
        if bool(self._inbox) is self._is_reading:
            self._balance_reading()

    def _may_start(self) -> bool:
        if not self._can_write or self._transport is None:
            return False
        if not self._outbox:
            return True
        return self._waits_only_for_produce and len(self._outbox) < PRODUCES_IN_FLIGHT and self._next_is_produce()

    def _next_is_produce(self) -> bool:
        return api_key_of(self._inbox[0]) == PRODUCE

    def _balance_reading(self) -> None:
        """Take no more bytes from a client while its earlier requests wait to be started."""
        if self._transport is None or self._transport.is_closing():
            return
        self._is_reading = not self._inbox
        if self._is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _send_ready(self) -> None:
        """Send every answer whose turn it is."""
        while self._outbox and self._outbox[0].is_done and self._can_write and self._transport is not None:
            try:
                pieces = self._outbox.popleft().result()
            except ProtocolViolation as violation:
                self._violated(violation)
                return
            except Exception:
                # Our own defect. Without an answer the order of responses is lost, so this client has to reconnect.
                log.exception("request failed; closing the connection of %s", self._caller and self._caller.host)
                self.abort()
                return
            self._send(pieces)
        if self._inbox:
            self._serve()
            self._account()

    def _send(self, pieces: list[Buffer]) -> None:
        assert self._transport is not None
        if len(pieces) == 1:
            self._transport.write(pieces[0])
            return
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) <= JOIN_BYTES:
                small.append(piece)
            else:
                if small:
                    self._transport.write(b"".join(small))
                    small = []
                self._transport.write(piece)
        if small:
            self._transport.write(b"".join(small))

    def _account(self) -> None:
        held_bytes = self._reader.held_bytes
        if self._inbox:
            held_bytes += sum(map(len, self._inbox))
        if held_bytes != self.held_bytes:
            change, self.held_bytes = held_bytes - self.held_bytes, held_bytes
            self._listener.memory_changed(change)

    def _violated(self, violation: ProtocolViolation) -> None:
        log.warning("closing the connection of %s: %s", self._caller and self._caller.host, violation)
        self.abort()

    def abort(self) -> None:
        self._inbox.clear()
        if self._transport is not None:
            self._transport.abort()
