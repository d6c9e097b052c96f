"""A client that sends whatever bytes a test wants."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

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
