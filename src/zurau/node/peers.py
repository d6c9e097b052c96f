"""Real sockets for the connections between brokers (`broker/peers`).

They have a listener of their own, apart from that of clients: nobody here is idle for too long, reads in turns or has a
share of anybody's memory. Two brokers that have nothing to say to each other stay connected. Whether the other machine
is still there is then asked by the system, so that its place is free when it comes back with a new disk.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from zurau.broker.peers.connection import PATIENCE_MS, PeerConnection
from zurau.broker.peers.connections import Address, PeerConnections, address_text
from zurau.broker.peers.hello import Hello, HelloAnswer, HelloConnection
from zurau.counters import Counters
from zurau.ids import Address as NamedAddress
from zurau.ids import BrokerId
from zurau.node.acceptor import Acceptor
from zurau.node.turns import LoopTurns
from zurau.pending import Pending
from zurau.ports import Buffer, Clock, Handshake, PeerListener, Randomness

#: A silent peer is asked after so many seconds, so often; one that does not confirm what it was sent is given up.
KEEPALIVE = {"TCP_KEEPIDLE": 3, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 5, "TCP_USER_TIMEOUT": 8000}
#: How long a stop waits until what was sent has left.
GOODBYE_S = 0.5


AnyConnection = PeerConnection | HelloConnection


class SocketTransport:
    """What a connection needs of an asyncio transport."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._socket: socket.socket = transport.get_extra_info("socket")
        with suppress(OSError):  # it may be gone already
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # Not every system has all of them.
            for option, value in [(getattr(socket, it), KEEPALIVE[it]) for it in KEEPALIVE if hasattr(socket, it)]:
                self._socket.setsockopt(socket.IPPROTO_TCP, option, value)

    def write(self, pieces: Sequence[Buffer]) -> None:
        self._transport.writelines(pieces)

    def queued_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def unsent_bytes(self) -> int:
        """With what the system holds because the other side has not confirmed it."""
        held = array.array("i", [0])
        with suppress(OSError, ValueError):  # no such question on this system, or the socket is closed
            fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, held)
        return self.queued_bytes() + held[0]

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


class PeerProtocol(asyncio.BufferedProtocol):
    """Hands on what asyncio calls. `connect` says to whom, once the address at the other end is known."""

    def __init__(self, sockets: PeerSockets, connect: Callable[[str], AnyConnection | None]) -> None:
        self._sockets = sockets
        self._connect = connect
        self._connection: AnyConnection | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._sockets.open[self] = None
        peer = transport.get_extra_info("peername")
        # Without a name it was reset while it was being accepted, as port scanners do.
        self._connection = self._connect(address_text(*peer[:2])) if peer is not None else None
        if self._connection is None:
            self.abort()
        else:
            self._connection.made(SocketTransport(self._transport))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        assert self._connection is not None, "nothing is read from a connection that was aborted"
        return self._connection.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        assert self._connection is not None, "nothing is read from a connection that was aborted"
        self._sockets.turns.begin()
        self._connection.received(nbytes)
        self._sockets.turns.end(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._connection.gone(str(exc) if exc is not None else "it was closed")
        self._sockets.closed(self)

    def abort(self) -> None:
        assert self._transport is not None, "only what was made is aborted"
        self._transport.abort()

    def __str__(self) -> str:
        return f"bytes of {self._connection}"


class PeerSockets:
    """Listens for brokers, dials them, and is `Peers`."""

    def __init__(
        self,
        handshake: Callable[[], Handshake],
        listener: PeerListener,
        clock: Clock,
        randomness: Randomness,
        turns: LoopTurns,
        counters: Counters,
    ) -> None:
        self.turns = turns
        self._clock = clock
        self.connections = PeerConnections(handshake, listener, clock, randomness, self._dial, counters)
        #: Every socket that is connected.
        self.open: dict[PeerProtocol, None] = {}
        self._all_closed: asyncio.Event | None = None
        self._acceptor: Acceptor | None = None
        self._dialling: set[asyncio.Task[None]] = set()

    def listen(self, sockets: list[socket.socket]) -> Address:
        """Start to accept at what `bind` took; returns the address with its real port."""
        accept = self.connections.accepted
        self._acceptor = Acceptor(
            sockets, self.turns, lambda: True, lambda: PeerProtocol(self, accept), failed=lambda: None
        )
        self._acceptor.start()
        host, port = sockets[0].getsockname()[:2]
        return host, port

    def set_addresses(self, addresses: Mapping[BrokerId, Address]) -> None:
        self.connections.set_addresses(addresses)

    def send(self, to: BrokerId, frame: Sequence[Buffer]) -> None:
        self.connections.send(to, frame)

    async def stop(self) -> None:
        """Accept and dial no more, say goodbye, and close everything, once that has left or after a while."""
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is not None:
            await acceptor.stop()
        self._all_closed = asyncio.Event()
        self.connections.stop()
        for task in self._dialling:
            task.cancel()
        if self.open:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), GOODBYE_S)
        for protocol in list(self.open):
            protocol.abort()
        if self._dialling:
            await asyncio.wait(self._dialling)
        await asyncio.sleep(0)  # what was aborted is closed in the next round

    def closed(self, protocol: PeerProtocol) -> None:
        del self.open[protocol]
        if self._all_closed is not None and not self.open:
            self._all_closed.set()

    def ask(self, address: NamedAddress, hello: Hello) -> Pending[HelloAnswer | None]:
        """Who is at an address, on a connection of its own."""
        connection = HelloConnection(hello, self._clock)
        self._dial(address, connection)
        return connection.answered

    def _dial(self, address: Address, connection: AnyConnection) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(address, connection))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _connect(self, address: Address, connection: AnyConnection) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE_MS / 1000):
                await loop.create_connection(lambda: PeerProtocol(self, lambda _: connection), *address)
        except (OSError, OverflowError, UnicodeError) as error:  # the latter two: that is no port, or no host
            connection.gone(str(error) or "it takes too long")
