"""Too many: connections, requests, announcements. Whoever only wants to work is served meanwhile."""

from __future__ import annotations

import resource
import selectors
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from attack import FETCH_VERSION, WAIT_ALLOWED_S, Attacker, fetch_request, resident_mb, some_batch, wait_until
from broker_process import ZurauBroker

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest

#: ApiVersions v0, the smallest question there is.
QUESTION = struct.pack(">ihhih", 10, 18, 0, 1, -1)
HELLO = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")


class Busy(threading.Thread):
    """Some connections that ask as fast as they are answered, thousands of questions ahead."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__(daemon=True)
        self._selector = selectors.DefaultSelector()
        self._enough = threading.Event()
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self._sent: dict[socket.socket, int] = {}

    def run(self) -> None:
        questions = QUESTION * 2000
        while not self._enough.is_set():
            for key, events in self._selector.select(0.1):
                connection: socket.socket = key.fileobj  # type: ignore[assignment]
                if events & selectors.EVENT_READ:
                    connection.recv(1 << 20)
                if events & selectors.EVENT_WRITE:
                    sent = self._sent.get(connection, 0)
                    self._sent[connection] = (sent + connection.send(questions[sent:])) % len(questions)

    def finish(self) -> None:
        self._enough.set()
        self.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]


@pytest.fixture
def busy(broker):
    thread = Busy(broker.port, 10)
    thread.start()
    yield thread
    thread.finish()


def test_a_hundred_new_clients_of_a_busy_broker_are_answered_soon(broker, connect, busy, record_property) -> None:
    began, waits = time.monotonic(), []
    for client in [connect(broker) for _ in range(100)]:
        assert client.ask(HELLO, 3).error_code == ErrorCode.NONE
        waits.append(time.monotonic() - began)
    record_property("the last of a hundred new clients was answered after, s", round(waits[-1], 3))
    assert waits[-1] < WAIT_ALLOWED_S


def test_a_flood_of_requests_leaves_others_their_turn(broker, busy, watch) -> None:
    bystander = watch(broker)
    bystander.join(3)
    assert bystander.finish() < WAIT_ALLOWED_S


def test_more_connections_than_descriptors_make_nobodys_produce_fail(tmp_path, watch) -> None:
    broker = ZurauBroker(tmp_path, open_files=256)
    with broker:
        bystander = watch(broker)
        first = Attacker(broker.port)
        first.create_topic("many", partitions=60)
        crowd = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(300)]
        for partition in range(60):
            assert first.produce("many", some_batch(), partition).error_code == ErrorCode.NONE
        assert broker.log.read_text().count("refusing connections beyond") == 1
        assert "ulimit -n" in broker.log.read_text()
        for connection in crowd:
            connection.close()
        wait_until(lambda: is_answered(broker.port), "nobody is let in though there is room")
        first.leave()
        assert bystander.finish() < WAIT_ALLOWED_S


def is_answered(port: int) -> bool:
    try:
        client = Attacker(port)
        return client.ask(HELLO, 3).error_code == ErrorCode.NONE
    except ConnectionError:
        return False
    finally:
        client.leave()


def test_connections_that_come_and_go_leave_nothing_behind(broker, watch, record_property) -> None:
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    for number in range(3000):
        connection = socket.create_connection(("127.0.0.1", broker.port))
        if number % 3 == 0:
            connection.sendall(QUESTION[:7])
        elif number % 3 == 1:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    record_property("memory, MB", resident_mb(broker.pid) - before_mb)
    assert resident_mb(broker.pid) - before_mb < 50
    assert bystander.finish() < WAIT_ALLOWED_S


def test_large_frames_that_are_announced_and_never_sent_take_little_memory(broker, connect, watch) -> None:
    allow_many_sockets()
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    for attacker in [connect(broker) for _ in range(400)]:
        attacker.socket.sendall(struct.pack(">i", 100_000_000) + bytes(100))
    bystander.join(0.5)
    assert resident_mb(broker.pid) - before_mb < 60
    assert bystander.finish() < WAIT_ALLOWED_S


def test_many_large_frames_at_once_stay_within_the_budget(start_broker, connect, watch, record_property) -> None:
    broker = start_broker(queued_max_request_bytes=100 << 20)
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    senders = [threading.Thread(target=send_much, args=(connect(broker),)) for _ in range(10)]
    for sender in senders:
        sender.start()
    most_mb = 0.0
    while any(sender.is_alive() for sender in senders):
        bystander.join(0.02)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    record_property("most memory besides what it had, MB", most_mb)
    assert most_mb < 200
    assert bystander.finish() < WAIT_ALLOWED_S


def send_much(attacker: Attacker) -> None:
    """A frame of 100 MB, nearly."""
    with suppress(OSError):  # it is closed on the way
        attacker.socket.sendall(struct.pack(">i", 100_000_000))
        for _ in range(90):
            attacker.socket.sendall(bytes(1_000_000))


def test_tiny_requests_by_the_hundred_thousand_take_little_memory(broker, connect, watch, record_property) -> None:
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    senders = [connect(broker) for _ in range(100)]
    for _ in range(20):
        for sender in senders:
            with suppress(BlockingIOError):
                sender.socket.setblocking(False)
                sender.socket.send(QUESTION * 20_000)
        bystander.join(0.05)
    record_property("memory, MB", resident_mb(broker.pid) - before_mb)
    assert resident_mb(broker.pid) - before_mb < 150
    assert bystander.finish() < WAIT_ALLOWED_S


def test_thousands_of_polls_that_one_record_wakes_do_not_hold_the_loop(broker, connect, watch) -> None:
    allow_many_sockets()
    producer = connect(broker)
    producer.create_topic("t")
    bystander = watch(broker)
    pollers = [connect(broker) for _ in range(500)]
    headers = [poller.send(fetch_request("t", 0, max_wait_ms=60_000), FETCH_VERSION) for poller in pollers]
    assert producer.produce("t", some_batch()).error_code == ErrorCode.NONE
    for poller, header in zip(pollers, headers, strict=True):
        assert poller.receive(header).responses[0].partitions[0].records
    assert bystander.finish() < WAIT_ALLOWED_S


def allow_many_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
