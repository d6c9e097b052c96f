"""What HTTP clients can send or leave unread, while a client of Kafka's protocol only wants to work."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from attack import PATIENCE_S, WAIT_ALLOWED_S, resident_mb

MIB = 1 << 20
ATTACKERS = 10
HEAD = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BUDGET_MB = 64
#: Besides the budgets of requests and answers: pieces of both, what the allocator keeps.
SLACK_MB = 120


@pytest.fixture
def broker(start_broker):
    return start_broker(http="127.0.0.1:0")


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    opened: list[socket.socket] = []

    def connect(broker, receive_bytes: int | None = None) -> socket.socket:
        opened.append(socket.socket())
        if receive_bytes is not None:
            opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened[-1].settimeout(PATIENCE_S)
        opened[-1].connect(("127.0.0.1", broker.http_port))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def whole(path: str, body: bytes) -> bytes:
    return f"{HEAD.format(path)}Content-Length: {len(body)}\r\n\r\n".encode() + body


def ask(client: socket.socket, path: str, **values: object) -> dict:
    client.sendall(whole(path, json.dumps(values).encode()))
    received = b""
    while b"\r\n\r\n" not in received or not received.endswith(b"}"):
        received += client.recv(1 << 16)
    return json.loads(received.partition(b"\r\n\r\n")[2])


def send_all(clients: list[socket.socket], content: bytes) -> None:
    """At the same time, as far as it is taken; whatever is answered is read."""

    def send(client: socket.socket) -> None:
        with suppress(OSError):
            client.sendall(content)

    def read(client: socket.socket) -> None:
        with suppress(OSError):
            while client.recv(1 << 16):
                pass

    senders = [threading.Thread(target=send, args=[client], daemon=True) for client in clients]
    readers = [threading.Thread(target=read, args=[client], daemon=True) for client in clients]
    for thread in (*senders, *readers):
        thread.start()
    for thread in senders:
        thread.join(PATIENCE_S)
    for client in clients:
        with suppress(OSError):
            client.shutdown(socket.SHUT_WR)
    for thread in readers:
        thread.join(PATIENCE_S)


def chunks_of_a_byte() -> bytes:
    head = f"{HEAD.format('/topics')}Transfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"


FLOODS = {
    "thousands of requests": b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3000,
    "a body in chunks of a byte": chunks_of_a_byte(),
    "names without end in JSON beside a query": whole("/topics?partitions=1", b'{"a":0' + b',"a":0' * 300_000 + b"}"),
    "forms of percent signs": whole("/topics", b"topic=" + b"%41" * 20_000).replace(b"json", b"x-www-form-urlencoded")
    * 20,
    "lists in lists": whole("/topics", b'{"topic":' + b"[" * 1_000_000) * 4,
    "headers without end": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2500 + b"Host: localhost\r\n\r\n",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_nobody_else_notices_what_one_sends(broker, connect, watch, flood):
    bystander = watch(broker)
    send_all([connect(broker) for _ in range(ATTACKERS)], FLOODS[flood])
    assert bystander.finish() < WAIT_ALLOWED_S


def test_nobody_else_notices_calls_of_a_thousand_messages(broker, connect, watch):
    producer = ask(connect(broker), "/producer/register", topic="t")["producer_id"]
    messages = [{"message": "x" * 100, "key": "k" * 100}] * 1000
    call = whole(
        "/producer/produce", json.dumps({"topic": "t", "producer_id": producer, "messages": messages}).encode()
    )
    bystander = watch(broker)
    send_all([connect(broker) for _ in range(ATTACKERS)], call * 10)
    assert bystander.finish() < WAIT_ALLOWED_S


def test_those_who_do_not_read_stay_within_the_budget(start_broker, connect, watch, record_property):
    broker = start_broker(http="127.0.0.1:0", queued_max_response_bytes=BUDGET_MB * MIB)
    ask(connect(broker), "/topics", topic="wide", partitions=1000)
    bystander, before_mb, most_mb = watch(broker), resident_mb(broker.pid), 0.0
    question = b"GET /topics/wide/partitions HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
    for client in [connect(broker, receive_bytes=4096) for _ in range(60)]:
        client.sendall(question)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    for _ in range(20):
        bystander.join(0.05)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    record_property("most memory besides what it had, MB", most_mb)
    assert most_mb < BUDGET_MB + SLACK_MB
    assert bystander.finish() < WAIT_ALLOWED_S


def test_bodies_that_never_end_stay_within_the_budget(start_broker, connect, watch, record_property):
    broker = start_broker(http="127.0.0.1:0", queued_max_request_bytes=BUDGET_MB * MIB)
    bystander, before_mb, most_mb = watch(broker), resident_mb(broker.pid), 0.0
    beginning = f"{HEAD.format('/topics')}Content-Length: 2000000\r\n\r\n".encode() + bytes(1_900_000)
    for client in [connect(broker) for _ in range(100)]:
        with suppress(ConnectionError):
            client.sendall(beginning)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    record_property("most memory besides what it had, MB", most_mb)
    assert most_mb < BUDGET_MB + SLACK_MB
    assert bystander.finish() < WAIT_ALLOWED_S
