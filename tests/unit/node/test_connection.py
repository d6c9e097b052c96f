"""What a connection holds, and that it ends with it, on both event loops."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from zurau.api.kafka import heartbeat
from zurau.api.kafka.handlers import HANDLERS
from zurau.ids import Address
from zurau.node import run
from zurau.node.closed_peers import is_closed_by_peer
from zurau.node.settings import ListenerSettings
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

HELLO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
PATIENCE_S = 20
FOR_EVER = 2**31 - 1


@pytest.fixture
def node(start_node):
    return start_node()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


def create(client, topic: str = "t") -> None:
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True), 4)


def produce(client, size: int) -> None:
    batch = build_batch([NewRecord(key=None, value=bytes(size), timestamp=1_767_657_600_000)])
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
    response = client.ask(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data]), 9)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def fetch(*, max_wait_ms: int = 0, min_bytes: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**30)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=2**30, topics=topics)


def waiters(node, topic: str = "t") -> int:
    return node.call(lambda: len(node.node.broker.partition(topic, 0)._readers))


def test_a_long_poll_ends_with_its_connection(node, connect_to):
    staying, leaving = connect_to(node), connect_to(node)
    create(staying)
    leaving.send(fetch(max_wait_ms=FOR_EVER, min_bytes=FOR_EVER), 12)
    wait_until(lambda: waiters(node) == 1)
    leaving.socket.close()
    wait_until(lambda: waiters(node) == 0)
    wait_until(lambda: node.counters.connections == 1)


def test_a_long_poll_ends_with_its_connection_though_nothing_is_read_from_it(node, connect_to):
    staying, leaving = connect_to(node), connect_to(node)
    create(staying)
    leaving.send(fetch(max_wait_ms=FOR_EVER, min_bytes=1), 12)
    leaving.send(HELLO, 3)
    wait_until(lambda: waiters(node) == 1)
    leaving.socket.close()
    wait_until(lambda: waiters(node) == 0)


def test_a_poll_that_waits_is_counted_with_the_memory_of_requests_until_it_is_answered(node, connect_to):
    client = connect_to(node)
    create(client)
    header = client.send(fetch(max_wait_ms=500, min_bytes=1), 12)
    wait_until(lambda: node.counters.request_bytes > 0)
    client.receive(header)
    wait_until(lambda: node.counters.request_bytes == 0)


def test_what_arrived_of_a_frame_is_given_back_when_the_client_leaves(node, connect_to):
    client = connect_to(node)
    client.socket.sendall(struct.pack(">i", 1_000_000) + bytes(100_000))
    wait_until(lambda: node.counters.request_bytes >= 100_000)
    client.socket.close()
    wait_until(lambda: node.counters.request_bytes == 0)


def test_an_answer_that_was_taken_holds_nothing(node, connect_to):
    client = connect_to(node)
    create(client)
    for _ in range(5):
        produce(client, 1_000_000)
    assert len(client.ask(fetch(), 12).responses[0].partitions[0].records) > 5_000_000
    wait_until(lambda: node.counters.response_bytes == 0)


def test_an_answer_that_nobody_takes_is_counted_until_the_client_leaves(node, connect_to):
    lazy, good = connect_to(node), connect_to(node)
    create(good)
    for _ in range(30):
        produce(good, 1_000_000)
    lazy.send(fetch(), 12)
    wait_until(lambda: node.counters.response_bytes > 10_000_000)
    lazy.socket.close()
    wait_until(lambda: node.counters.response_bytes == 0)


def test_ten_thousand_requests_at_once_are_answered_in_order_and_others_in_between(node, connect_to):
    flooding, other = connect_to(node), connect_to(node)
    questions = [struct.pack(">ihhih", 10, 18, 0, number, -1) for number in range(10_000)]
    flooding.socket.sendall(b"".join(questions[:5000]))
    assert other.ask(HELLO, 3).error_code == ErrorCode.NONE
    flooding.socket.sendall(b"".join(questions[5000:]))
    answers = [flooding.receive_frame()[:4] for _ in range(10_000)]
    assert answers == [struct.pack(">i", number) for number in range(10_000)]


def test_a_client_that_is_gone_is_known_to_the_kernel(node, connect_to):
    client = connect_to(node)
    client.ask(HELLO, 3)
    (connection,) = node.node._connections._connections
    assert not node.call(lambda: is_closed_by_peer(connection.socket()))
    assert is_closed_by_peer(None)


def test_nonsense_is_counted_and_logged_once_a_second(node, connect_to, caplog):
    for _ in range(20):
        client = connect_to(node)
        client.socket.sendall(struct.pack(">i", -1))
        assert client.is_closed_by_broker()
    assert node.counters.protocol_violations == 20
    assert 1 <= sum("closing the connection" in message for message in caplog.messages) < 20


def test_connections_beyond_the_limit_are_refused_and_room_is_given_again(start_node, connect_to, caplog):
    node = start_node(max_connections=2)
    first, second = connect_to(node), connect_to(node)
    assert first.ask(HELLO, 3).error_code == second.ask(HELLO, 3).error_code == ErrorCode.NONE
    assert connect_to(node).is_closed_by_broker()
    assert node.counters.connections_refused == 1
    assert "max.connections=2 is reached" in caplog.text
    first.socket.close()
    wait_until(lambda: node.counters.connections == 1)
    assert connect_to(node).ask(HELLO, 3).error_code == ErrorCode.NONE


def test_several_listeners_share_one_limit_and_each_tells_its_own_address(start_node, connect_to, monkeypatch):
    record = ListenerSettings("INSIDE", Address("127.0.0.1", 0), None, "--kafka")
    monkeypatch.setattr(run, "listeners_of", lambda _: (record, replace(record, name="OUTSIDE")))
    node = start_node(max_connections=2)
    ports = [listener.address.port for listener in node.node._listeners]
    clients = [connect_to(SimpleNamespace(host="127.0.0.1", port=port)) for port in ports]
    assert [client.ask(MetadataRequest(topics=[]), 9).brokers[0].port for client in clients] == ports
    assert node.counters.connections == 2
    assert connect_to(SimpleNamespace(host="127.0.0.1", port=ports[0])).is_closed_by_broker()


def test_the_watchdog_names_what_held_the_loop(node, connect_to, caplog, monkeypatch):
    hold_the_loop(monkeypatch, seconds=0.2)
    client = connect_to(node)

    def is_named() -> bool:
        client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
        return "by Heartbeat for 127.0.0.1 (raw)" in caplog.text

    wait_until(is_named)
    assert node.counters.slow_steps >= 1
    assert node.counters.slowest_step_ms >= 200


def hold_the_loop(monkeypatch, seconds: float) -> None:
    """A defect of ours: a handler that blocks."""

    def blocking(request: Any, call: Any) -> Any:
        time.sleep(seconds)
        return heartbeat.handle(request, call)

    monkeypatch.setitem(vars(HANDLERS[HeartbeatRequest.api_key]), "handle", blocking)
