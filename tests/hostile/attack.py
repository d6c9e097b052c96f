"""The two sides of an attack, on bare sockets: one sends what it likes, the other only wants to work."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from zurau.wire.kafka.schema import Message

#: What the tests allow, and five times what is promised: the machine may be busy with other tests.
WAIT_ALLOWED_S = 5.0
PATIENCE_S = 120.0

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CREATE_TOPICS_VERSION = 5


class Attacker:
    """A socket with just enough knowledge to ask proper questions too."""

    def __init__(self, port: int, receive_bytes: int | None = None) -> None:
        """`receive_bytes`: what the system shall take for this client before it reads; usually that is megabytes."""
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_id = 0

    def send(self, request: Message, version: int) -> RequestHeader:
        """Send a request and do not wait for the answer."""
        self._last_id += 1
        header = RequestHeader(request.api_key, version, self._last_id, "attacker")
        self.socket.sendall(b"".join(encode_request(header, request)))
        return header

    def receive(self, header: RequestHeader) -> Any:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return decode_response(header, memoryview(self._receive_exactly(size)))

    def ask(self, request: Message, version: int) -> Any:
        return self.receive(self.send(request, version))

    def leave(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Leave without a goodbye."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Make a topic; `max_message_bytes="1000"` is the config max.message.bytes."""
        wanted = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=wanted
        )
        (made,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CREATE_TOPICS_VERSION).topics
        assert made.error_code == ErrorCode.NONE, made

    def produce(self, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = -1) -> Any:
        """The answer for one batch."""
        answer = self.ask(produce_request(topic, batch, partition, acks), PRODUCE_VERSION)
        return answer.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int, partition: int = 0, max_wait_ms: int = 0) -> Any:
        """The answer for one partition."""
        answer = self.ask(fetch_request(topic, offset, partition, max_wait_ms=max_wait_ms), FETCH_VERSION)
        return answer.responses[0].partitions[0]

    def _receive_exactly(self, count: int) -> bytearray:
        received = bytearray()
        while len(received) < count:
            piece = self.socket.recv(min(1 << 20, count - len(received)))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            received += piece
        return received


class Bystander(threading.Thread):
    """Produces and fetches one record after the other, and remembers its longest wait."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(daemon=True)
        self._client = Attacker(port)
        self._topic = topic
        self._client.create_topic(topic)
        self._enough = threading.Event()
        self._rounds = 0
        self._waiting_since: float | None = None
        self._longest_wait_s = 0.0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                began = self._waiting_since = time.monotonic()
                self._one_round()
                self._waiting_since = None
                self._longest_wait_s = max(self._longest_wait_s, time.monotonic() - began)
                self._rounds += 1
        except BaseException as error:  # raised again in the thread of the test
            self.failure = error

    @property
    def longest_wait_s(self) -> float:
        """One that is not over yet counts too."""
        since = self._waiting_since
        return max(self._longest_wait_s, time.monotonic() - since if since is not None else 0.0)

    def finish(self) -> float:
        """Stop, and return the longest wait. Raises what went wrong meanwhile."""
        self._enough.set()
        self.join(PATIENCE_S)
        self._client.leave()
        if self.failure is not None:
            raise self.failure
        assert not self.is_alive(), f"the bystander still waits, for {self.longest_wait_s:.1f} s now"
        assert self._rounds, "the bystander was never answered"
        return self.longest_wait_s

    def _one_round(self) -> None:
        produced = self._client.produce(self._topic, some_batch())
        assert produced.error_code == ErrorCode.NONE, produced
        fetched = self._client.fetch(self._topic, produced.base_offset)
        assert fetched.error_code == ErrorCode.NONE, fetched
        assert fetched.records, "what was acknowledged cannot be read"


def some_batch(value: bytes = b"v", count: int = 1, key: bytes | None = None) -> bytearray:
    now_ms = int(time.time() * 1000)
    return build_batch([NewRecord(key=key, value=value, timestamp=now_ms) for _ in range(count)])


def produce_request(topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch_request(
    topic: str, offset: int, partition: int = 0, *, max_wait_ms: int = 0, min_bytes: int = 1, max_bytes: int = 1 << 30
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def resident_mb(pid: int) -> float:
    """The memory that a process holds right now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def wait_until(condition: Any, what: str, patience_s: float = PATIENCE_S) -> None:
    """Returns when `condition()` is true."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s in vain: {what}"
        time.sleep(0.01)
