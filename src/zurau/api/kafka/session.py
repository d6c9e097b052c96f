"""Kafka's side of one connection, without the connection: bytes in, answers out, in the order of the requests.

Requests are answered one after the other, as Kafka does, with one exception: produce requests may be started while
earlier ones still wait for their flush, so that they share it.

Whoever has the bytes (`node/connection.py`, or a test) drives it:

    view = session.get_buffer()         where the next bytes shall go
    session.received(count)             after `count` bytes went there: there may be requests in the inbox now
    answer = session.start_next()       while `may_start`: what to send, if that is known and its turn
    session.more()                      when the inbox is empty: there may be more in what has arrived
    answer = session.next_answer()      the next one whose turn it is, whenever the link was told that one is ready
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import msgspec

from zurau.api.client import Client
from zurau.api.kafka.dispatch import PRODUCE, Answer, answer
from zurau.broker.broker import Broker
from zurau.pending import Pending
from zurau.settings import KIB, MIB
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.frames import FrameReader, RequestHeader, api_key_of

#: Produce requests that may wait for their flush together. Kafka's clients keep five in flight.
PRODUCES_IN_FLIGHT = 32
#: And their bytes: some are looked at by a worker, and stay in memory until then.
PRODUCE_BYTES_IN_FLIGHT = 64 * MIB
#: Cut at a time from what has arrived: each is an object until it is started, and a read may bring thousands.
FRAMES_MAX = 64
#: What a frame takes besides its bytes until it is started.
FRAME_BYTES = 400
#: A produce that waits for a worker is counted from this size on.
LARGE_FRAME_BYTES = 64 * KIB
#: A join may wait for half an hour. It has few fields: who holds most is closed first, and that should not be others.
JOIN_GROUP = 11
#: A request that waits takes up to eight times its frame (a fetch of many partitions), large fields only once.
DECODED_TIMES = 8
DECODED_BYTES_MAX = 8 * MIB


class Link(Protocol):
    """What a session may ask of the connection that it belongs to."""

    def answer_is_ready(self) -> None:
        """An answer is there that was waited for."""

    def holds_more(self) -> None:
        """`held_bytes` has grown."""

    def after_this_read(self, work: Callable[[], None]) -> None:
        """Have it done when the read that is under way has ended, and looks at its buffer no more."""


class _Started(msgspec.Struct, eq=False):
    """A request on its way to be answered."""

    answer: Pending[Answer]
    request_bytes: int
    #: What it is counted with in the memory of requests.
    held_bytes: int


class KafkaSession:
    """What one client has asked and is yet to be told. Raises `ProtocolViolation` for what no client may send."""

    __slots__ = (
        "_broker",
        "_client",
        "_header",
        "_link",
        "_outbox",
        "_outbox_bytes",
        "_outbox_held_bytes",
        "_reader",
        "_waits_only_for_produce",
        "get_buffer",
        "inbox",
    )

    def __init__(self, client: Client, link: Link, broker: Broker, scratch: bytearray) -> None:
        self._client = client
        self._link = link
        self._broker = broker
        self._reader = FrameReader(scratch, broker.settings.socket_request_max_bytes, FRAMES_MAX)
        self.get_buffer = self._reader.get_buffer
        self._header: RequestHeader | None = None
        #: Frames not yet started.
        self.inbox: deque[memoryview] = deque()
        #: Started and not yet sent, in the order of the requests, and what they take.
        self._outbox: deque[_Started] = deque()
        self._outbox_bytes = 0
        self._outbox_held_bytes = 0
        self._waits_only_for_produce = True

    # What is known of it

    @property
    def held_bytes(self) -> int:
        """Memory of requests that are not answered yet."""
        held_bytes = self._reader.held_bytes + self._outbox_held_bytes + self._client.connection.waiting_bytes
        if self.inbox:
            held_bytes += sum(map(len, self.inbox)) + FRAME_BYTES * len(self.inbox)
        return held_bytes

    @property
    def is_waiting(self) -> bool:
        """A long poll is open, or a join waits at its barrier: silence is not idleness."""
        return bool(self._outbox) and not self._outbox[0].answer.is_done

    @property
    def may_wait_long(self) -> bool:
        """For as long as the client asked to: what is flushed is not waited for like that."""
        return bool(self._outbox) and not self._waits_only_for_produce

    def describe(self) -> str:
        client_id = self._header and self._header.client_id
        host = self._client.caller.host
        return f"{host} ({client_id})" if client_id else host

    def describe_work(self) -> str:
        api = APIS[self._header.api_key].name if self._header is not None else "a first request"
        return f"{api} for {self.describe()}"

    # What happens to it

    def received(self, count: int) -> None:
        """Bytes were put into the buffer. Nothing more may be until the inbox is empty."""
        self.inbox.extend(self._reader.received(count))

    def more(self) -> bool:
        """Whether there are requests after all: what has arrived is not taken apart all at once."""
        if self._reader.has_more:
            self.inbox.extend(self._reader.more())
        return bool(self.inbox)

    def may_start(self) -> bool:
        """Whether the next request may be started before earlier ones are answered."""
        if not self._outbox:
            return True
        return (
            self._waits_only_for_produce
            and not self._client.connection.is_appending
            and len(self._outbox) < PRODUCES_IN_FLIGHT
            and self._outbox_bytes < PRODUCE_BYTES_IN_FLIGHT
            and api_key_of(self.inbox[0]) == PRODUCE
        )

    def start_next(self) -> Answer | None:
        """Start the next request of the inbox; its answer, if it is known and nothing is to leave before it."""
        frame = self.inbox.popleft()
        self._header, pending = answer(frame, self._client, self._broker)
        if pending.is_done and not self._outbox:
            return pending.result()
        self._wait_for(pending, frame)
        return None

    def next_answer(self) -> Answer | None:
        """The answer whose turn it is, if it is there."""
        if not self._outbox or not self._outbox[0].answer.is_done:
            return None
        started = self._outbox.popleft()
        self._outbox_bytes -= started.request_bytes
        self._outbox_held_bytes -= started.held_bytes
        return started.answer.result()

    def end(self) -> None:
        """Nobody waits for any answer any more: end what is under way and give back what it holds."""
        self.inbox.clear()
        self._reader.forget()
        outbox, self._outbox = self._outbox, deque()
        for started in outbox:
            started.answer.end()
        self._client.connection.end()
        self._outbox_bytes = self._outbox_held_bytes = 0

    def _wait_for(self, pending: Pending[Answer], frame: memoryview) -> None:
        """The answer leaves when it is there and those before it have left."""
        assert self._header is not None
        is_produce = self._header.api_key == PRODUCE
        self._waits_only_for_produce = is_produce and (self._waits_only_for_produce or not self._outbox)
        started = _Started(pending, len(frame), 0)
        self._outbox.append(started)
        self._outbox_bytes += started.request_bytes
        if self._header.api_key == JOIN_GROUP:
            self._hold(started, started.request_bytes)
        elif not is_produce:
            size = started.request_bytes
            self._hold(started, size + min((DECODED_TIMES - 1) * size, DECODED_BYTES_MAX))
        elif started.request_bytes >= LARGE_FRAME_BYTES:
            # Not now: the read that brought the frame is still under way and looks at it.
            memory = cast("bytearray", frame.obj)
            self._link.after_this_read(lambda: self._look_at_frame(started, memory))
        if not pending.is_done:
            pending.then(self._answered)

    def _look_at_frame(self, started: _Started, memory: bytearray) -> None:
        """Most produces are written when they are started, and only wait for a flush: their frames can go."""
        try:
            memory.clear()
        except BufferError:  # a worker has yet to look at its batches
            if started in self._outbox and not started.answer.is_done:
                self._hold(started, started.request_bytes)
                self._link.holds_more()

    def _hold(self, started: _Started, held_bytes: int) -> None:
        started.held_bytes = held_bytes
        self._outbox_held_bytes += held_bytes

    def _answered(self, _: Pending[Answer]) -> None:
        self._link.answer_is_ready()
