"""One client's connection, whatever protocol it speaks: bytes in, answers out, and what it may take of the broker.

What the bytes mean and in which order they are answered is the session's business. Here a client that reads slowly
stops being served until it has read; a client that sends nonsense is disconnected; one that sends thousands of requests
gets a few of them answered in each turn of the loop; nobody else notices any of it. When the connection is lost, so is
everything that it held: requests not yet started, handlers that wait, memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any, Protocol, cast

from zurau.api.response_memory import ResponseShare
from zurau.errors import ProtocolViolation, raise_if_broken
from zurau.pending import Running
from zurau.ports import Buffer
from zurau.settings import KIB

if TYPE_CHECKING:
    import socket

    from zurau.node.connections import Connections
    from zurau.node.listener import Listener

log = logging.getLogger("zurau.connection")

#: Answers up to this size are joined into one packet; larger pieces are sent without copying.
JOIN_BYTES = 32 * KIB
#: Requests of one client in one turn when nobody else waits; the more do, the fewer it is.
REQUESTS_PER_TURN = 64
#: How long a client may go on sending after the last answer.
LINGER_MS = 2000


class Session(Protocol):
    """One protocol's side of a connection, without I/O. Raises `ProtocolViolation` when the client breaks its rules.

    It tells the connection when an answer is ready (`answer_is_ready`) and when it holds more (`holds_more`).
    """

    @property
    def inbox(self) -> Sized:
        """Requests that are not started yet."""

    @property
    def held_bytes(self) -> int:
        """Memory of requests that are not answered yet."""

    @property
    def is_waiting(self) -> bool:
        """A request is under way, so silence is not idleness."""

    @property
    def may_wait_long(self) -> bool:
        """It is one that may take as long as the client likes."""

    def get_buffer(self) -> memoryview:
        """Where the next bytes shall go. Not asked for while there are requests in the inbox."""

    def received(self, count: int) -> None:
        """Bytes were put there."""

    def more(self) -> bool:
        """Asked when the inbox is empty: whether there are requests after all in what has arrived."""

    def may_start(self) -> bool:
        """Whether the first of the inbox may be started before earlier ones are answered."""

    def start_next(self) -> list[Buffer] | None:
        """Start the next request; returns its answer if that can be sent now."""

    def next_answer(self) -> list[Buffer] | None:
        """The next answer that can be sent now."""

    def end(self) -> None:
        """The connection is lost: end what is under way, and give back what it holds."""

    def describe(self) -> str: ...

    def describe_work(self) -> str: ...


class Connection(asyncio.BufferedProtocol):
    """Serves one client."""

    def __init__(self, connections: Connections, listener: Listener) -> None:
        self._connections = connections
        self._listener = listener
        self._turns = connections.turns
        self._transport: asyncio.Transport | None = None
        self._session: Session
        self._can_write = True
        self.is_reading = True
        self._is_serving = False
        self._is_in_line = False
        self._is_aborted = False
        #: What the client sends is not looked at any more.
        self._is_deaf = False
        #: Memory of requests that are not answered yet, as it is counted.
        self.held_bytes = 0
        self.responses = ResponseShare(connections.response_memory)
        #: For whoever closes idle connections, and looks now and then: asking the clock for every read would cost more
        #: than it is worth.
        self.was_active = True
        self.seen_active_ms = 0.0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Whatever the system does not take at once is counted, and stops further requests.
        self._transport.set_write_buffer_limits(high=0)
        self._connections.add(self)
        self._session = self._listener.open_session(self, self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._session.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_deaf:
            return
        self._turns.begin()
        self.was_active = True
        session = self._session
        try:
            session.received(nbytes)
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        if session.inbox:
            if self._turns.line:
                self._stand_in_line()
            else:
                self._serve()
        self._account()
        self._turns.end(self)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._forget_requests()
        self._connections.forget(self)

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._turns.begin()
        self._can_write = True
        self.was_active = True
        self._connections.slow_readers.remove(self)
        self.answer_is_ready()
        self._turns.end(self)

    # What the session calls

    def answer_is_ready(self) -> None:
        """Send every answer whose turn it is."""
        session = self._session
        while self._can_write and self._transport is not None:
            try:
                pieces = session.next_answer()
            except Exception as error:  # noqa: BLE001 - told from each other there
                raise_if_broken(error)
                self._failed(error)
                break
            if pieces is None:
                break
            self._send_answer(pieces)
        if session.inbox:
            self._serve()
            self._account()
        elif self.held_bytes:
            self._account()

    def holds_more(self) -> None:
        self._account()

    def after_this_read(self, work: Callable[[], None]) -> None:
        self._connections.call_soon(work)

    def finish(self) -> None:
        """The session serves nothing more: close when the client has what it was sent, and has seen that it ends.

        To close at once, with bytes unread, would make the system reset the connection, and the client might lose what
        it was told. So what it still sends is thrown away for a while.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._is_deaf = True
        if not self.is_reading:
            self.is_reading = True
            transport.resume_reading()
        transport.write_eof()
        self._connections.clock.call_later(LINGER_MS, self.close)

    # What others ask of it

    @property
    def is_waiting_for_answer(self) -> bool:
        """A long poll is open, or a join waits at its barrier: silence is not idleness."""
        return self._session.is_waiting

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
        self._is_aborted = self._is_deaf = True
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
        return self._session.describe()

    def __str__(self) -> str:
        return f"bytes of {self.describe()}"

    def describe_work(self) -> str:
        return self._session.describe_work()

    # The work

    def _go_on(self, running: Running[Any]) -> None:
        self._turns.doer = self
        try:
            running.advance()
        except Exception as error:  # noqa: BLE001 - a broken invariant: nothing else comes out of it
            # Not raised: whoever made it go on may be a replica, which would take the blame.
            self._connections.broken(error)
        self._account()

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
        if self._is_serving:
            return  # an answer that was ready at once called back from within the loop below
        self._is_serving = True
        turns, session = self._turns, self._session
        remaining = REQUESTS_PER_TURN // (len(turns.line) + 1)
        try:
            while session.inbox and self._may_send() and session.may_start():
                turns.doer = self
                pieces = session.start_next()
                if pieces is not None:
                    self._send_answer(pieces)
                remaining -= 1
                if (session.inbox or session.more()) and (remaining <= 0 or turns.is_over()):
                    self._stand_in_line()
                    break
        except Exception as error:  # noqa: BLE001 - told from each other there
            raise_if_broken(error)
            self._failed(error)
        finally:
            self._is_serving = False
        if bool(session.inbox) is self.is_reading:
            self._balance_reading()
        if not self.is_reading and session.may_wait_long:
            self._connections.closed_peers.watch(self)

    def _may_send(self) -> bool:
        transport = self._transport
        return self._can_write and transport is not None and not self._is_aborted and not transport.is_closing()

    def _balance_reading(self) -> None:
        """Take no more bytes from a client while its earlier requests wait to be started."""
        has_requests = bool(self._session.inbox)
        if self._transport is None or self._transport.is_closing() or has_requests is not self.is_reading:
            return
        self.is_reading = not has_requests
        if self.is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _send_answer(self, pieces: list[Buffer]) -> None:
        self._send(pieces)
        if not self._can_write:
            self._connections.slow_readers.add(self)
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

    # How it ends

    def _failed(self, error: Exception) -> None:
        """A request could not be answered: the client's fault, or else a defect of ours."""
        if isinstance(error, ProtocolViolation):
            self._violated(error)
            return
        # Without an answer the order of responses is lost, so this client has to reconnect.
        log.error("request failed; closing the connection of %s", self.describe(), exc_info=error)
        self.abort()

    def _violated(self, violation: ProtocolViolation) -> None:
        self._connections.violated(self, violation)
        self.abort()

    def _account(self) -> None:
        if self._is_aborted:
            return
        held_bytes = self._session.held_bytes
        if held_bytes != self.held_bytes:
            change, self.held_bytes = held_bytes - self.held_bytes, held_bytes
            self._connections.memory_changed(change)

    def _forget_requests(self) -> None:
        """Nobody waits for any answer any more."""
        self._session.end()
        held_bytes, self.held_bytes = self.held_bytes, 0
        if held_bytes:
            self._connections.memory_changed(-held_bytes)
        self._connections.slow_readers.remove(self)
