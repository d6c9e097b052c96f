"""A connection and brokers that are not what they should be."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from zurau.client.cluster import parse_addresses
from zurau.client.cluster.connection import Connection
from zurau.client.errors import BrokerTooOld, ConnectionLost, TimedOut
from zurau.ids import Address
from zurau.wire.kafka.frames import decode_request, encode_response
from zurau.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsResponse
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse

Serve = Callable[[socket.socket], None]


@pytest.fixture
def stand_in() -> Iterator[Callable[[Serve], Address]]:
    """Starts a server that treats each connection as told."""
    listeners = []

    def start(serve: Serve) -> Address:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        return Address(*listener.getsockname())

    yield start
    for listener in listeners:
        listener.close()


def connect(address: Address, timeout_s: float = 5) -> Connection:
    return Connection(address, client_id="test", timeout_s=timeout_s)


def answer_versions(connection: socket.socket, offered: list[ApiVersion]) -> None:
    size = int.from_bytes(connection.recv(4), "big")
    header, _ = decode_request(memoryview(connection.recv(size)))
    connection.sendall(b"".join(encode_response(header, ApiVersionsResponse(api_keys=offered))))


def offer(api_key: int, first: int, last: int) -> ApiVersion:
    return ApiVersion(api_key=api_key, min_version=first, max_version=last)


def test_a_server_that_is_no_broker_is_recognised(stand_in):
    address = stand_in(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(ConnectionLost, match="does not answer like a Kafka broker"):
        connect(address)


def test_a_broker_that_hangs_up_is_a_lost_connection(stand_in):
    address = stand_in(lambda connection: connection.recv(1000))
    with pytest.raises(ConnectionLost, match="closed the connection"):
        connect(address)


def test_a_silent_broker_times_out(stand_in):
    stop = threading.Event()
    address = stand_in(lambda _: stop.wait(10))
    with pytest.raises(TimedOut, match="did not answer within"):
        connect(address, timeout_s=0.05)
    stop.set()


def test_a_closed_port_is_a_lost_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
    with pytest.raises(ConnectionLost, match="cannot connect"):
        connect(address)


def test_the_highest_common_version_is_used(stand_in):
    address = stand_in(lambda connection: answer_versions(connection, [offer(3, 1, 9), offer(1, 0, 99)]))
    connection = connect(address)
    assert connection.version_of(3) == 9
    assert connection.version_of(1) == 18
    connection.close()


def test_a_broker_without_a_common_version_is_too_old(stand_in):
    address = stand_in(lambda connection: answer_versions(connection, [offer(10, 0, 3)]))
    connection = connect(address)
    with pytest.raises(BrokerTooOld, match="speaks FindCoordinator 0 to 3 and this client 4 to 6"):
        connection.version_of(10)
    connection.close()


def test_a_request_the_broker_does_not_know_is_named(stand_in):
    address = stand_in(lambda connection: answer_versions(connection, []))
    connection = connect(address)
    with pytest.raises(BrokerTooOld, match="does not serve Metadata"):
        connection.send(MetadataRequest(topics=[]))
    connection.close()


def test_answers_come_in_the_order_of_the_requests(broker, topic):
    connection = connect(parse_addresses(broker.bootstrap)[0])
    connection.send(MetadataRequest(topics=[]))
    connection.send(MetadataRequest(topics=None))
    assert connection.in_flight == 2
    assert connection.receive(MetadataResponse).topics == []
    assert topic in [found.name for found in connection.receive(MetadataResponse).topics]
    connection.close()


def test_a_closed_connection_says_so(broker):
    connection = connect(parse_addresses(broker.bootstrap)[0])
    connection.close()
    with pytest.raises(ConnectionLost, match="is closed"):
        connection.request(MetadataRequest(topics=[]))


@pytest.fixture
def ctrl_c():
    """Ctrl-C interrupts, also where the tests run in the background of a shell, which ignores it there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_request_that_was_interrupted_leaves_no_answer_behind_for_the_next(stand_in, ctrl_c):
    main_thread = threading.main_thread().ident

    def interrupt(connection: socket.socket) -> None:
        answer_versions(connection, [offer(3, 1, 9)])
        connection.recv(1000)
        signal.pthread_kill(main_thread, signal.SIGINT)
        connection.recv(1000)

    connection = connect(stand_in(interrupt))
    with pytest.raises(KeyboardInterrupt):
        connection.request(MetadataRequest(topics=[]))
    assert not connection.is_open
