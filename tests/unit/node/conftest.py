"""A client that sends whatever bytes a test wants."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from zurau.counters import Counters
from zurau.node.run import Node
from zurau.node.settings import load
from zurau.testing import Broker
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.schema import Message


class RawClient:
    """A socket, with just enough knowledge to ask proper questions too."""

    def __init__(self, broker: Broker) -> None:
        self.socket = socket.create_connection((broker.host, broker.port), timeout=20)
        self._last_id = 0

    def send(self, request: Message, version: int) -> RequestHeader:
        self._last_id += 1
        header = RequestHeader(request.api_key, version, self._last_id, "raw")
        self.socket.sendall(b"".join(encode_request(header, request)))
        return header

    def receive(self, header: RequestHeader) -> Message:
        return decode_response(header, memoryview(self.receive_frame()))

    def ask(self, request: Message, version: int) -> Message:
        return self.receive(self.send(request, version))

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def is_closed_by_broker(self) -> bool:
        """Waits until the broker says something; True when that is goodbye."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive_exactly(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            piece = self.socket.recv(count - len(received))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            received += piece
        return received


@pytest.fixture
def connect_to() -> Iterator[Callable[[Broker], RawClient]]:
    clients = []

    def connect_to(broker: Broker) -> RawClient:
        clients.append(RawClient(broker))
        return clients[-1]

    yield connect_to
    for client in clients:
        client.socket.close()


@pytest.fixture
def connect(zurau_broker: Broker, connect_to: Callable[[Broker], RawClient]) -> Callable[[], RawClient]:
    return lambda: connect_to(zurau_broker)


class NodeThread:
    """A node on a loop of its own, for tests that look inside."""

    def __init__(self, directory: Path, loop_factory: Any, settings: dict[str, Any]) -> None:
        self._settings = {"dir": str(directory), "kafka": "127.0.0.1:0", **settings}
        self._loop_factory = loop_factory
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(20), "the node did not start"

    @property
    def counters(self) -> Counters:
        return self.node.broker.world.counters

    def call(self, function: Callable[[], Any]) -> Any:
        """What a function returns on the loop."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(20)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._enough.set)
        self._thread.join(20)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop, self._enough = asyncio.get_running_loop(), asyncio.Event()
        self.node = Node(load(self._settings))
        self.host, self.port = await self.node.start()
        self._ready.set()
        await self._enough.wait()
        await self.node.stop()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.Loop], ids=["asyncio", "uvloop"])
def start_node(request, tmp_path) -> Iterator[Callable[..., NodeThread]]:
    """Starts nodes with the settings that a test names, on each of the two loops."""
    started: list[NodeThread] = []

    def start(**settings: Any) -> NodeThread:
        started.append(NodeThread(tmp_path / str(len(started)), request.param, settings))
        return started[-1]

    yield start
    for node in started:
        node.stop()
