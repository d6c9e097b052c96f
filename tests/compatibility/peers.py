"""Two brokers that are asked the same, on bare sockets: what they answer, or that they hang up."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from zurau.wire.kafka.schema import Message

PATIENCE_S = 30.0
#: How long an answer to an odd question may take, before it counts as none.
ODD_PATIENCE_S = 4.0
CREATE_TOPICS_VERSION = 5
FETCH_VERSION = 12


class HungUp(Exception):
    """The broker closed the connection instead of answering."""


class NoAnswer(Exception):
    """The broker neither answered nor closed the connection."""


class Peer:
    """One connection to a broker."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        self._port = port
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_id = 0

    def another(self) -> Peer:
        """A fresh connection to the same broker, for one odd question."""
        return Peer(self._port, ODD_PATIENCE_S)

    def close(self) -> None:
        self._socket.close()

    def send(self, request: Message, version: int) -> RequestHeader:
        self._last_id += 1
        header = RequestHeader(request.api_key, version, self._last_id, "odd")
        self.send_bytes(b"".join(encode_request(header, request)))
        return header

    def send_bytes(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def ask(self, request: Message, version: int) -> Any:
        header = self.send(request, version)
        return decode_response(header, memoryview(self.receive_frame()))

    def _receive_exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                piece = self._socket.recv(count - len(received))
            except ConnectionError:
                piece = b""
            except TimeoutError:
                raise NoAnswer from None
            if not piece:
                raise HungUp
            received += piece
        return bytes(received)

    # What most questions need

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        """Make a topic, and return when each of its partitions can be read."""
        wanted = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        topic = CreatableTopic(name, partitions, 1, [], wanted)
        (made,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CREATE_TOPICS_VERSION).topics
        assert made.error_code == ErrorCode.NONE, made
        deadline = time.monotonic() + PATIENCE_S
        for partition in range(partitions):
            while self.fetch(name, partition).error_code != ErrorCode.NONE:
                assert time.monotonic() < deadline, f"{name}-{partition} is not ready"
                time.sleep(0.02)

    def fetch(self, topic: str, partition: int, offset: int = 0) -> Any:
        """The answer for one partition, at once."""
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
        )
        return self.ask(request, FETCH_VERSION).responses[0].partitions[0]


def produce_request(topic: str, partition: int, batch: bytes | None, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(topic, [data])])
