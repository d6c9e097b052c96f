"""One client's connection: frames in, answers out, in the same order.

Requests are answered one after the other, as Kafka does, with one exception: produce requests may be started while
earlier ones still wait for their flush, so that they share it. A client that reads slowly stops being served until it
has read; a client that sends nonsense is disconnected; one that sends thousands of requests gets a few of them
answered in each turn of the loop; nobody else notices any of it. When the connection is lost, so is everything that it
held: requests not yet started, handlers that wait, memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from zurau.api.kafka.call import Caller
from zurau.api.kafka.dispatch import PRODUCE, Answer, answer
from zurau.api.response_memory import ResponseShare
from zurau.errors import ProtocolViolation
from zurau.pending import Pending, Running
from zurau.ports import Buffer
from zurau.settings import KIB, MIB
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.frames import FrameReader, RequestHeader, api_key_of

if TYPE_CHECKING:
    import socket

    from zurau.node.listener import Listener

log = logging.getLogger("zurau.connection")

#: Answers up to this size are joined into one packet; larger pieces are sent without copying.
JOIN_BYTES = 32 * KIB
#: Produce requests that may wait for their flush together. Kafka's clients keep five in flight.
PRODUCES_IN_FLIGHT = 32
#: And their bytes: some are looked at by a worker, and stay in memory until then.
PRODUCE_BYTES_IN_FLIGHT = 64 * MIB
#: Requests of one client in one turn when nobody else waits; the more do, the fewer it is.
REQUESTS_PER_TURN = 64
#: Cut at a time from what has arrived: each is an object until it is started, and a read may bring thousands.
FRAMES_MAX = 64
#: What a frame takes besides its bytes until it is started.
FRAME_BYTES = 400
#: A produce that waits for a worker is counted from this size on.
LARGE_FRAME_BYTES = 64 * KIB
#: A request that waits takes up to eight times its frame (a fetch of many partitions), large fields only once.
DECODED_TIMES = 8
DECODED_BYTES_MAX = 8 * MIB


@dataclass(slots=True, eq=False)
class _Started:
    """A request on its way to be answered."""

    answer: Pending[Answer]
    request_bytes: int
    #: What it is counted with in the memory of requests.
    held_bytes: int


class Connection(asyncio.BufferedProtocol):
    """Answers one client."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._turns = listener.turns
        self._reader = FrameReader(listener.scratch, listener.max_frame_bytes, FRAMES_MAX)
        self._transport: asyncio.Transport | None = None
        self._caller: Caller | None = None
        self._header: RequestHeader | None = None
        #: Frames not yet started, and what they take.
        self._inbox: deque[memoryview] = deque()
        self._inbox_bytes = 0
        #: Started and not yet sent, in the order of the requests, and what they take.
        self._outbox: deque[_Started] = deque()
        self._outbox_bytes = 0
        self._outbox_held_bytes = 0
        self._waits_only_for_produce = True
        self._can_write = True
        self.is_reading = True
        self._is_serving = False
        self._is_in_line = False
        self._is_aborted = False
        #: Memory of requests that are not answered yet, as the listener counts it.
        self.held_bytes = 0
        self.responses = ResponseShare(listener.response_memory)
        #: For the listener, which looks now and then and notes when it saw activity: asking the clock for every read
        #: would cost more than it is worth.
        self.was_active = True
        self.seen_active_ms = 0.0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Whatever the system does not take at once is counted, and stops further requests.
        self._transport.set_write_buffer_limits(high=0)
        self._caller = self._listener.admit(self, self._transport)
        if self._caller is None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_aborted:
            return
        self._turns.begin()
        self.was_active = True
        try:
            frames = self._reader.received(nbytes)
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        if frames:
            self._inbox.extend(frames)
            if self._turns.line:
                self._stand_in_line()
            else:
                self._serve()
            if self._inbox:  # and no more are read until it is empty
                self._inbox_bytes = sum(map(len, self._inbox)) + FRAME_BYTES * len(self._inbox)
        self._account()
        self._turns.end(self)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._forget_requests()
        self._listener.forget(self)

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._turns.begin()
        self._can_write = True
        self.was_active = True
        self._listener.slow_readers.remove(self)
        self._send_ready()
        self._turns.end(self)

    # The work

    @property
    def is_waiting_for_answer(self) -> bool:
        """A long poll is open, or a join waits at its barrier: silence is not idleness."""
        return bool(self._outbox) and not self._outbox[0].answer.is_done

    @property
    def unsent_bytes(self) -> int:
        """What the system has not taken yet of answers."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def socket(self) -> socket.socket | None:
        return None if self._transport is None else self._transport.get_extra_info("socket")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._is_aborted = True
        self._forget_requests()
        if self._transport is not None:
            self._transport.abort()

    def resume(self, running: Running[Any]) -> None:
        """A handler that waited can go on: now if this turn is not over, or else in a later one."""
        if self._turns.is_over():
            self._turns.later(lambda: self._go_on(running))
        else:
            self._go_on(running)

    def describe(self) -> str:
        client_id = self._header and self._header.client_id
        host = self._caller.host if self._caller is not None else "?"
        return f"{host} ({client_id})" if client_id else host

    def __str__(self) -> str:
        return f"bytes of {self.describe()}"

    def describe_work(self) -> str:
        api = APIS[self._header.api_key].name if self._header is not None else "a first request"
        return f"{api} for {self.describe()}"

    def _go_on(self, running: Running[Any]) -> None:
        self._turns.doer = self
        running.advance()

    def _stand_in_line(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self._turns.later(self._take_turn)
        self._balance_reading()

    def _take_turn(self) -> None:
        self._is_in_line = False
        self._serve()
        self._account()

    def _serve(self) -> None:
        """Start requests while that is allowed; stop reading when it is not."""
        if self._is_serving or self._caller is None:
            return  # an answer that was ready at once called back from within the loop below
        self._is_serving = True
        turns = self._turns
        remaining = REQUESTS_PER_TURN // (len(turns.line) + 1)
        try:
            while self._inbox and self._may_start():
                turns.doer = self
                frame = self._inbox.popleft()
                self._header, pending = answer(frame, self._caller, self._listener.broker)
                if pending.is_done and not self._outbox:
                    self._send_answer(pending)
                else:
                    self._wait_for(pending, frame)
                remaining -= 1
                if not self._inbox and self._reader.has_more:
                    self._inbox.extend(self._reader.more())
                if self._inbox and (remaining <= 0 or turns.is_over()):
                    self._stand_in_line()
                    break
        except ProtocolViolation as violation:
            self._violated(violation)
        finally:
            self._is_serving = False
        if bool(self._inbox) is self.is_reading:
            self._balance_reading()
        if self._inbox_bytes:
            self._inbox_bytes = sum(map(len, self._inbox)) + FRAME_BYTES * len(self._inbox)
        if not self.is_reading and self._outbox and not self._waits_only_for_produce:
            self._listener.departed.watch(self)

    def _wait_for(self, pending: Pending[Answer], frame: memoryview) -> None:
        """The answer leaves when it is there and those before it have left."""
        assert self._header is not None
        is_produce = self._header.api_key == PRODUCE
        self._waits_only_for_produce = is_produce and (self._waits_only_for_produce or not self._outbox)
        started = _Started(pending, len(frame), 0)
        self._outbox.append(started)
        self._outbox_bytes += started.request_bytes
        if not is_produce:
            size = started.request_bytes
            self._hold(started, size + min((DECODED_TIMES - 1) * size, DECODED_BYTES_MAX))
        elif started.request_bytes >= LARGE_FRAME_BYTES:
            # Not now: the read that brought the frame is still under way and looks at it.
            self._listener.call_soon(self._look_at_frame, started, cast("bytearray", frame.obj))
        if not pending.is_done:
            pending.then(self._answered)

    def _look_at_frame(self, started: _Started, memory: bytearray) -> None:
        """Most produces are written when they are started, and only wait for a flush: their frames can go."""
        try:
            memory.clear()
        except BufferError:  # a worker has yet to look at its batches
            if started in self._outbox and not started.answer.is_done:
                self._hold(started, started.request_bytes)
                self._account()

    def _hold(self, started: _Started, held_bytes: int) -> None:
        started.held_bytes = held_bytes
        self._outbox_held_bytes += held_bytes

    def _answered(self, _: Pending[Answer]) -> None:
        self._send_ready()

    def _may_start(self) -> bool:
        if not self._can_write or self._transport is None or self._is_aborted or self._transport.is_closing():
            return False
        if not self._outbox:
            return True
        return (
            self._waits_only_for_produce
            and len(self._outbox) < PRODUCES_IN_FLIGHT
            and self._outbox_bytes < PRODUCE_BYTES_IN_FLIGHT
            and api_key_of(self._inbox[0]) == PRODUCE
        )

    def _balance_reading(self) -> None:
        """Take no more bytes from a client while its earlier requests wait to be started."""
        if self._transport is None or self._transport.is_closing() or bool(self._inbox) is not self.is_reading:
            return
        self.is_reading = not self._inbox
        if self.is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _send_ready(self) -> None:
        """Send every answer whose turn it is."""
        while self._outbox and self._outbox[0].answer.is_done and self._can_write and self._transport is not None:
            started = self._outbox.popleft()
            self._outbox_bytes -= started.request_bytes
            self._outbox_held_bytes -= started.held_bytes
            self._send_answer(started.answer)
        if self._inbox:
            self._serve()
            self._account()
        elif self.held_bytes:
            self._account()

    def _send_answer(self, pending: Pending[Answer]) -> None:
        try:
            pieces = pending.result()
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        except Exception:
            # Our own defect. Without an answer the order of responses is lost, so this client has to reconnect.
            log.exception("request failed; closing the connection of %s", self.describe())
            self.abort()
            return
        self._send(pieces)
        if not self._can_write:
            self._listener.slow_readers.add(self)
        elif self.responses.held_bytes:
            self.responses.settle(0)

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

    # What it holds

    def _account(self) -> None:
        if self._is_aborted:
            return
        held_bytes = self._reader.held_bytes + self._inbox_bytes + self._outbox_held_bytes
        if held_bytes != self.held_bytes:
            change, self.held_bytes = held_bytes - self.held_bytes, held_bytes
            self._listener.memory_changed(change)

    def _forget_requests(self) -> None:
        """Nobody waits for any answer any more: end what is under way and give back what it holds."""
        self._inbox.clear()
        self._reader.forget()
        outbox, self._outbox = self._outbox, deque()
        for started in outbox:
            started.answer.end()
        self._inbox_bytes = self._outbox_bytes = self._outbox_held_bytes = 0
        held_bytes, self.held_bytes = self.held_bytes, 0
        if held_bytes:
            self._listener.memory_changed(-held_bytes)
        self._listener.slow_readers.remove(self)

    def _violated(self, violation: ProtocolViolation) -> None:
        self._listener.violated(self, violation)
        self.abort()
