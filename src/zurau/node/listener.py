"""One door of the broker: where it listens, what is spoken there, and who comes in."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from zurau.api.client import Client, ConnectionState
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.ids import Address
from zurau.node.acceptor import Acceptor, bind, size_buffers
from zurau.node.connection import Connection, Session
from zurau.node.connections import Connections
from zurau.node.settings import ListenerSettings

#: Makes the session that speaks the protocol of a listener with a client.
OpenSession = Callable[[Client, Connection], Session]


class Listener:
    """Takes an address first, so that a broker that cannot have it touches nothing, and listens when all is ready."""

    def __init__(self, settings: ListenerSettings) -> None:
        self.settings = settings
        #: With its real port, once it listens.
        self.address = settings.address
        self._sockets: list[socket.socket] = []
        self._acceptor: Acceptor | None = None
        self._open_session: OpenSession | None = None

    async def bind(self) -> None:
        host, port = self.settings.address
        self._sockets = await bind(host, port, self.settings.flag)

    @property
    def advertised(self) -> Address:
        """Where other brokers tell clients to come. Bound to all addresses, it has to be told by `--advertise`."""
        return self.settings.advertise or Address(*self._sockets[0].getsockname()[:2])

    def listen(self, connections: Connections, open_session: OpenSession) -> None:
        """Let clients in."""
        self._open_session = open_session
        settings = connections.broker.settings
        for bound in self._sockets:  # every connection that is accepted there has what it has
            size_buffers(bound, settings.socket_receive_buffer_bytes, settings.socket_send_buffer_bytes)
        self._acceptor = Acceptor(
            self._sockets,
            connections.turns,
            connections.may_enter,
            lambda: Connection(connections, self),
            connections.one_less,
        )
        self._acceptor.start()
        self.address = Address(*self._sockets[0].getsockname()[:2])

    async def stop(self) -> None:
        """Let nobody in any more. Those who are in stay."""
        if self._acceptor is not None:
            await self._acceptor.stop()
        for bound in self._sockets:
            bound.close()

    def open_session(self, connection: Connection, transport: asyncio.Transport) -> Session:
        """Get to know a new client."""
        assert self._open_session is not None, "clients come in when it listens"
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if peer is None or local is None:  # reset while it was being accepted, as port scanners do
            transport.abort()
            peer = local = ("somebody who has gone", 0)
        state = ConnectionState()
        client = Client(
            Caller(ANONYMOUS, peer[0], self.settings.name, state),
            self.settings.advertise or Address(local[0], local[1]),
            connection.resume,
            connection.responses,
            state,
        )
        return self._open_session(client, connection)
