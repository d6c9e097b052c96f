"""The network of a cluster under test: every connection goes through a proxy, which can be told to let nothing pass.

A cut is silence, as when a cable is pulled: nothing arrives, and nobody is told. What was under way arrives when it is
healed, unless somebody gave up in the meantime. Who dials a broker is read off the first thing that it says, so one
proxy in front of each broker is enough to cut any two apart.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from zurau.broker.peers.hello import decode_hello
from zurau.errors import ProtocolViolation
from zurau.wire.peer.frames import Kind, kind_of
from zurau.wire.peer.handshake import decode_handshake

#: Whoever is no broker.
CLIENTS = 0
HOST = "127.0.0.1"
READ_BYTES = 1 << 16
_SIZE = struct.Struct(">i")
T = TypeVar("T")


class ReservedPort:
    """A port that is nobody else's: bound, without listening, so that a broker can listen there again and again."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, 0))
        self.number: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        return f"{HOST}:{self.number}"

    def close(self) -> None:
        self._socket.close()


class Direction:
    """One way between two places."""

    def __init__(self) -> None:
        self.may_pass = asyncio.Event()
        self.may_pass.set()
        self.delay_s = 0.0


class Network:
    """Its proxies run on a loop of their own, in a thread. Places are broker ids, and `CLIENTS`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="zurau-network", daemon=True)
        self._thread.start()
        self._directions: dict[tuple[int, int], Direction] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    def open(self, to: int, port: int, *, for_clients: bool) -> str:
        """A proxy in front of a broker's port; returns its address."""

        async def listen() -> str:
            server = await asyncio.start_server(
                lambda reader, writer: self._begin(self._carry(reader, writer, to, port, for_clients)), HOST, 0
            )
            self._servers.append(server)
            return f"{HOST}:{server.sockets[0].getsockname()[1]}"

        return self._run(listen())

    def cut(self, source: int, target: int) -> None:
        """Nothing that `source` says reaches `target`."""
        self._call(self._direction(source, target).may_pass.clear)

    def slow(self, source: int, target: int, delay_s: float) -> None:
        """What `source` says reaches `target` later."""

        def change() -> None:
            self._direction(source, target).delay_s = delay_s

        self._call(change)

    def heal(self) -> None:
        def change() -> None:
            for direction in self._directions.values():
                direction.may_pass.set()
                direction.delay_s = 0.0

        self._call(change)

    def close(self) -> None:
        if self._loop.is_closed():
            return

        async def end() -> None:
            for server in self._servers:
                server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # On the loop

    def _direction(self, source: int, target: int) -> Direction:
        return self._directions.setdefault((source, target), Direction())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to: int, port: int, for_clients: bool
    ) -> None:
        """One connection, from its first word to its end."""
        ends = [writer]
        try:
            said, source = (b"", CLIENTS) if for_clients else await _first_frame(reader)
            there, back = self._direction(source, to), self._direction(to, source)
            await there.may_pass.wait()
            if reader.at_eof():  # it has given up; what it said then would disturb what it says now
                return
            target_reader, target_writer = await asyncio.open_connection(HOST, port)
            ends.append(target_writer)
            target_writer.write(said)
            await asyncio.gather(_pump(reader, target_writer, there), _pump(target_reader, writer, back))
        except (OSError, asyncio.IncompleteReadError, ProtocolViolation):
            pass  # one of the two is gone, and the other is told by the end of the connection
        finally:
            for end in ends:
                end.close()

    # From other threads

    def _call(self, change: Callable[[], None]) -> None:
        async def run() -> None:
            change()

        self._run(run())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _first_frame(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    """The handshake or the hello, and whose it is."""
    size = await reader.readexactly(_SIZE.size)
    frame = await reader.readexactly(min(_SIZE.unpack(size)[0], READ_BYTES))
    said = memoryview(frame)
    return size + frame, (decode_hello if kind_of(said) == Kind.HELLO else decode_handshake)(said).broker


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
    try:
        while data := await reader.read(READ_BYTES):
            if direction.delay_s:
                await asyncio.sleep(direction.delay_s)
            await direction.may_pass.wait()
            writer.write(data)
            await writer.drain()
        await direction.may_pass.wait()
    finally:
        with suppress(OSError):
            writer.close()
