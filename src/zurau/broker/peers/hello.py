"""Who is at an address: what brokers ask before they know each other, each time on a connection of its own.

    hello | answer

A directory that is in no cluster yet finds out in this way whether there is one, and gets its id. A broker that is in
one says where it is, and hears where the others are: so one that has moved is found.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zurau.broker.peers.connection import PATIENCE_MS, Transport
from zurau.errors import ProtocolViolation
from zurau.ids import Address
from zurau.pending import Pending
from zurau.ports import Buffer, Clock
from zurau.settings import KIB
from zurau.wire.peer.frame_reader import PeerFrameReader
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: One buffer for each question: an answer names every broker of a cluster.
SCRATCH_BYTES = 16 * KIB
NOBODY = -1


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a broker listens for others."""

    broker: int
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Hello(msgspec.Struct, array_like=True, frozen=True):
    #: Which start of which process this is.
    incarnation: bytes
    directory_id: bytes
    #: Empty: it is in none.
    cluster_id: str = ""
    #: Its id; of a broker without a cluster, the one that it wants. `NOBODY`: any.
    broker: int = NOBODY
    #: Where it listens, as far as it knows.
    place: Place | None = None
    #: It wants to be given an id.
    joins: bool = False


class HelloAnswer(msgspec.Struct, array_like=True, frozen=True):
    incarnation: bytes
    cluster_id: str = ""
    broker: int = NOBODY
    #: The host that the hello came from.
    seen_as: str = ""
    #: The id that the asker has from now on, if it wanted one and got it.
    given_id: int = NOBODY
    #: Why it did not.
    problem: str = ""
    #: The brokers of the cluster, as far as they are known.
    places: tuple[Place, ...] = ()


#: Takes a hello and whom it came from, and gives the answer when there is one.
Answering = Callable[[Hello, str], Pending[HelloAnswer]]


def encode_hello(hello: Hello) -> list[Buffer]:
    return encode_frame(Kind.HELLO, [msgspec.msgpack.encode(hello)])


def decode_hello(frame: memoryview) -> Hello:
    try:
        return msgspec.msgpack.decode(decode_frame(frame)[1], type=Hello)
    except msgspec.MsgspecError as error:
        raise ProtocolViolation(f"a hello cannot be read: {error}") from error


def encode_answer(answer: HelloAnswer) -> list[Buffer]:
    return encode_frame(Kind.HELLO_ANSWER, [msgspec.msgpack.encode(answer)])


def decode_answer(frame: memoryview) -> HelloAnswer:
    kind, head, _ = decode_frame(frame)
    if kind != Kind.HELLO_ANSWER:
        raise ProtocolViolation(f"a frame of kind {kind} in answer to a hello")
    try:
        return msgspec.msgpack.decode(head, type=HelloAnswer)
    except msgspec.MsgspecError as error:
        raise ProtocolViolation(f"an answer to a hello cannot be read: {error}") from error


class HelloConnection:
    """A connection for one question, without the socket: driven like a `PeerConnection`."""

    def __init__(self, hello: Hello, clock: Clock) -> None:
        self._hello = hello
        self._transport: Transport | None = None
        self._reader = PeerFrameReader(bytearray(SCRATCH_BYTES), SCRATCH_BYTES)
        #: None: nobody answers there.
        self.answered: Pending[HelloAnswer | None] = Pending()
        self._patience = clock.call_later(PATIENCE_MS, self._end)

    def made(self, transport: Transport) -> None:
        self._transport = transport
        if self.answered.is_done:
            transport.abort()
        else:
            transport.write(encode_hello(self._hello))

    def get_buffer(self) -> memoryview:
        return self._reader.get_buffer()

    def received(self, count: int) -> None:
        if self.answered.is_done:
            return
        answer = None
        try:
            frames = self._reader.received(count)
            if not frames:
                return
            answer = decode_answer(frames[0])
        except ProtocolViolation:
            pass  # somebody is there, and it is not one of us
        self._end(answer)

    def gone(self, reason: str) -> None:  # noqa: ARG002 - as all connections are told
        self._end()

    def _end(self, answer: HelloAnswer | None = None) -> None:
        if self.answered.is_done:
            return
        self._patience.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.answered.resolve(answer)
