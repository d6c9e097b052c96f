"""Bare sockets that append one record and wait for its acknowledgement: no client library stands in between.

Each has `append()`, which returns when the record was acknowledged. They are made for one payload, so that the
request is encoded once and what is measured is the broker.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Protocol

from subjects import NATS, REDIS, Running
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from zurau.wire.kafka.schema import Message

TOPIC = "bench"
_METADATA_VERSION = 9
_PRODUCE_VERSION = 9
#: A topic that was made a moment ago may not have been heard of everywhere.
_PASSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class RawClient(Protocol):
    def append(self) -> None: ...

    def close(self) -> None: ...


def connect(subject: Running, payload: bytes, acks: int = 1) -> RawClient:
    if subject.name == REDIS:
        return RawRedis(subject.port, payload)
    if subject.name == NATS:
        return RawNats(subject.port, payload)
    return RawKafka(subject.port, payload, acks)


class RawConnection:
    """Requests and answers of Kafka's protocol."""

    def __init__(self, port: int) -> None:
        self._socket = _dial(port)

    def encode(self, request: Message, version: int) -> bytes:
        return b"".join(encode_request(RequestHeader(request.api_key, version, 1, "bench"), request))

    def ask(self, request: Message, version: int) -> Message:
        self.send(self.encode(request, version))
        header = RequestHeader(request.api_key, version, 1, "bench")
        return decode_response(header, memoryview(self.receive()))

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        (size,) = struct.unpack(">i", _receive(self._socket, 4))
        return _receive(self._socket, size)

    def close(self) -> None:
        self._socket.close()


class RawKafka(RawConnection):
    """Produce to partition 0 of a topic that is made on first sight."""

    def __init__(self, port: int, payload: bytes, acks: int = 1, *, make_topic: bool = True) -> None:
        super().__init__(port)
        if make_topic:
            self._make_topic()
        batch = build_batch([NewRecord(None, payload, timestamp=int(time.time() * 1000))])
        topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[topic])
        self._header = RequestHeader(ProduceRequest.api_key, _PRODUCE_VERSION, 1, "bench")
        self.frame = b"".join(encode_request(self._header, request))
        while (code := self._append_checked()) in _PASSING:
            time.sleep(0.002)
        if code:
            raise RuntimeError(f"the broker answered with error code {code}")

    def append(self) -> None:
        self.send(self.frame)
        self.receive()

    def _append_checked(self) -> int:
        """As `append`, and look at the answer."""
        self.send(self.frame)
        answer = decode_response(self._header, memoryview(self.receive()))
        (topic,) = answer.responses  # type: ignore[attr-defined]
        return int(topic.partition_responses[0].error_code)

    def _make_topic(self) -> None:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
        while True:
            answer = self.ask(asked, _METADATA_VERSION)
            (topic,) = answer.topics  # type: ignore[attr-defined]
            if topic.error_code == 0 and topic.partitions and topic.partitions[0].error_code == 0:
                return
            time.sleep(0.002)


class RawRedis:
    """XADD to one stream."""

    def __init__(self, port: int, payload: bytes) -> None:
        self._socket = _dial(port)
        words = [b"XADD", TOPIC.encode(), b"*", b"v", payload]
        self._request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.append()

    def append(self) -> None:
        self._socket.sendall(self._request)
        answer = self._socket.recv(4096)
        if not answer.startswith(b"$"):
            raise RuntimeError(answer.decode())

    def close(self) -> None:
        self._socket.close()


class RawNats:
    """Publish to one stream, with the acknowledgement sent to our inbox."""

    def __init__(self, port: int, payload: bytes) -> None:
        self._socket = _dial(port)
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # INFO
        self._socket.sendall(b'CONNECT {"verbose":false,"headers":true,"lang":"raw","version":"1"}\r\nSUB inbox 1\r\n')
        stream = json.dumps({"name": TOPIC, "subjects": [TOPIC], "storage": "file"}).encode()
        created = self._ask(b"$JS.API.STREAM.CREATE.%s" % TOPIC.encode(), stream)
        if b'"error"' in created and b"already in use" not in created:
            raise RuntimeError(created.decode())
        self._request = b"PUB %s inbox %d\r\n%s\r\n" % (TOPIC.encode(), len(payload), payload)
        self.append()

    def append(self) -> None:
        self._socket.sendall(self._request)
        self._message()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def _ask(self, subject: bytes, payload: bytes) -> bytes:
        self._socket.sendall(b"PUB %s inbox %d\r\n%s\r\n" % (subject, len(payload), payload))
        return self._message()

    def _message(self) -> bytes:
        while True:
            line = self._lines.readline()
            if line.startswith(b"PING"):
                self._socket.sendall(b"PONG\r\n")
            elif line.startswith((b"MSG", b"HMSG")):
                return self._lines.read(int(line.split()[-1]) + 2)
            elif not line or line.startswith(b"-ERR"):
                raise RuntimeError(line.decode())


def _dial(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket, count: int) -> bytes:
    chunks = []
    while count:
        chunk = connection.recv(count)
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
