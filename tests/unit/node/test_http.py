"""The HTTP door on real sockets, on both event loops: what one client does costs nobody else anything."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection

import pytest

from zurau.node.connection import LINGER_MS
from zurau.settings import MIB

PATIENCE_S = 30


@pytest.fixture
def node(start_node):
    return start_node(http="127.0.0.1:0", http_body_max_bytes=MIB)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


@pytest.fixture
def connect() -> Iterator[Callable[..., HTTPConnection]]:
    made: list[HTTPConnection] = []

    def connect(node) -> HTTPConnection:
        made.append(HTTPConnection(*node.node.http_address, timeout=PATIENCE_S))
        return made[-1]

    yield connect
    for connection in made:
        connection.close()


def raw(node) -> socket.socket:
    return socket.create_connection(node.node.http_address, timeout=PATIENCE_S)


def ask(connection: HTTPConnection, method: str, path: str, body: object = None) -> tuple[int, object]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {} if body is None else {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    return response.status, json.loads(answer) if answer else None


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(1 << 16):
        received += piece
    return received


def test_many_requests_on_one_connection_are_answered(node, connect):
    connection = connect(node)
    assert ask(connection, "POST", "/topics", {"topic": "t", "partitions": 2})[0] == 201
    for _ in range(50):
        assert ask(connection, "GET", "/topics") == (200, {"topics": ["t"]})
    assert node.counters.connections == 1


def test_thousands_of_requests_at_once_are_answered_in_turns_and_others_in_between(node, connect):
    count = 2000
    with raw(node) as greedy:
        greedy.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" * count)
        assert ask(connect(node), "GET", "/health/live")[0] == 200
        received = b""
        while received.count(b'{"status":"live"}') < count:
            received += greedy.recv(1 << 16)
    assert received.count(b"HTTP/1.1 200") == count


def test_a_body_as_large_as_the_limit_is_taken_and_a_larger_one_told_so_while_it_is_being_sent(node, connect):
    connection = connect(node)
    large = {"topic": "t", "x": "y" * (MIB - len('{"topic": "t", "x": ""}'))}
    status, answer = ask(connection, "POST", "/topics", large)
    assert status == 400
    assert "unknown field `x`" in str(answer), "it was taken whole, and looked at"
    with raw(node) as sender:
        size = 8 * MIB
        sender.sendall(b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
        # Closed at once, with these bytes unread, it would be reset, and the answer lost.
        sender.sendall(bytes(4 * MIB))
        received = read_all(sender)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"REQUEST_ENTITY_TOO_LARGE" in received
    wait_until(lambda: node.counters.request_bytes == 0)


def test_a_client_that_sends_on_for_ever_after_the_last_answer_is_closed(node):
    with raw(node) as sender:
        sender.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_all(sender).startswith(b"HTTP/1.1 404 ")
        assert LINGER_MS / 1000 < PATIENCE_S
        wait_until(lambda: node.counters.connections == 0)


def test_a_body_that_never_comes_is_counted_as_memory_of_requests_and_given_back(node, connect):
    with raw(node) as sender:
        sender.sendall(b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n" + bytes(400_000))
        wait_until(lambda: node.counters.request_bytes >= 400_000)
        assert ask(connect(node), "GET", "/health/live")[0] == 200
    wait_until(lambda: node.counters.request_bytes == 0)


def test_bodies_share_the_memory_of_all_requests_and_the_largest_holder_has_to_go(start_node):
    node = start_node(http="127.0.0.1:0", queued_max_request_bytes=MIB)
    head = b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n"
    with raw(node) as largest, raw(node) as other:
        largest.sendall(head + bytes(800_000))
        wait_until(lambda: node.counters.request_bytes >= 800_000)
        other.sendall(head + bytes(400_000))
        wait_until(lambda: node.counters.closed_for_request_memory == 1)
        with suppress(ConnectionError):
            assert read_all(largest) == b""
        assert node.counters.request_bytes <= MIB


def test_a_client_that_takes_no_answers_is_not_read_any_further(node, connect):
    connection = connect(node)
    ask(connection, "POST", "/topics", {"topic": "t", "partitions": 1000})
    question = b"GET /topics/t/partitions HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with raw(node) as slow:
        slow.setblocking(False)
        sent = 0
        with suppress(BlockingIOError):
            while sent < 64 * MIB:
                sent += slow.send(question * 1000)
        assert sent < 64 * MIB
        assert ask(connection, "GET", "/health/live")[0] == 200
        assert node.counters.response_bytes < 16 * MIB
    wait_until(lambda: node.counters.response_bytes == 0)


def test_nonsense_is_answered_and_the_connection_ends(node):
    with raw(node) as client:
        client.sendall(b"\x00\x00\x00\x1a\x00\x12\x00\x03\r\n\r\n")
        assert read_all(client).startswith(b"HTTP/1.1 400 ")


def test_http_and_kafka_count_as_connections_of_one_broker(start_node):
    node = start_node(http="127.0.0.1:0", max_connections=1)
    with socket.create_connection((node.host, node.port), timeout=PATIENCE_S):
        wait_until(lambda: node.counters.connections == 1)
        with raw(node) as refused:
            assert refused.recv(1) == b""


def test_a_topic_made_through_one_door_is_seen_through_the_other(zurau_broker_with_http):
    broker, connection = zurau_broker_with_http
    ask(connection, "POST", "/topics", {"topic": "orders", "partitions": 3})
    broker.produce("orders", "one", partition=2)
    assert [record.value for record in broker.consume("orders")] == [b"one"]
    broker.create_topic("payments")
    assert ask(connection, "GET", "/topics")[1] == {"topics": ["orders", "payments"]}


@pytest.fixture
def zurau_broker_with_http():
    from zurau.testing import Broker

    with Broker(http="127.0.0.1:0") as broker:
        connection = HTTPConnection(*broker.http_address, timeout=PATIENCE_S)
        yield broker, connection
        connection.close()


def test_the_ready_line_names_the_address_and_an_address_that_is_taken_is_wrong(tmp_path):
    command = [sys.executable, "-m", "zurau", "serve", "--kafka", "127.0.0.1:0", "--http"]
    process = subprocess.Popen(
        [*command, "127.0.0.1:0", "--dir", str(tmp_path / "a")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ready = process.stdout.readline()
    found = re.search(r"http=(127\.0\.0\.1:\d+) ", ready)
    assert found, ready
    taken = subprocess.run(
        [*command, found[1], "--dir", str(tmp_path / "b")], capture_output=True, text=True, timeout=60, check=False
    )
    assert taken.returncode != 0
    assert "choose another address with --http HOST:PORT" in taken.stderr
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_without_the_door_nothing_of_it_is_imported(tmp_path):
    program = f"""
import asyncio, sys
from zurau.node.run import Node
from zurau.node.settings import load

async def serve(**settings):
    node = Node(load({{"dir": {str(tmp_path)!r}, "kafka": "127.0.0.1:0"}} | settings))
    await node.start()
    found = [name for name in sys.modules if name == "h11" or name.startswith("zurau.api.http")]
    await node.stop()
    return found

assert asyncio.run(serve()) == [], "a broker without it is smaller"
assert asyncio.run(serve(http="127.0.0.1:0")), "this test looks for the right names"
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode == 0


def test_a_client_that_waits_for_records_is_told_and_one_that_leaves_is_forgotten(node, connect):
    connection = connect(node)
    producer = ask(connection, "POST", "/producer/register", {"topic": "t"})[1]
    question = (
        b"GET /topics/t/partitions/0/records?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    with raw(node) as waits:
        with raw(node) as leaves:
            for client in (waits, leaves):
                client.sendall(question)
            wait_until(lambda: len(readers(node)) == 2)
        wait_until(lambda: len(readers(node)) == 1)
        assert ask(connection, "POST", "/producer/produce", {"topic": "t", "message": "news", **producer})[0] == 200
        assert b'"message":"news"' in read_all(waits)
    assert len(readers(node)) == 0


def readers(node):
    return node.node.broker.partitions[("t", 0)]._readers
