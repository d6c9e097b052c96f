"""Clients that are slow, silent, greedy or gone, on real sockets."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zurau.records.builder import NewRecord, build_batch
from zurau.settings import MIB
from zurau.testing import Broker
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, encode_request
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Connect = Callable[[], Any]

HELLO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
PATIENCE_S = 20


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


def memory_bytes() -> int:
    """What this process, with the broker in it, holds in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def create(client, topic: str = "t") -> None:
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True), 4)


def produce(client, size: int) -> None:
    batch = build_batch([NewRecord(key=None, value=bytes(size), timestamp=1_767_657_600_000)])
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data])
    response = client.ask(request, 9)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def fetch(*, max_wait_ms: int = 0, min_bytes: int = 0, offset: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**30)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=2**30, topics=topics)


def test_a_request_that_comes_byte_by_byte_is_answered(connect: Connect):
    client = connect()
    header = RequestHeader(HELLO.api_key, 3, 1, "slow")
    for byte in b"".join(encode_request(header, HELLO)):
        client.socket.sendall(bytes((byte,)))
    assert client.receive(header).error_code == ErrorCode.NONE


def test_a_client_that_closes_in_the_middle_of_a_request_harms_nobody(connect: Connect):
    leaving, staying = connect(), connect()
    leaving.socket.sendall(struct.pack(">i", 5000) + bytes(1000))
    leaving.socket.close()
    assert staying.ask(HELLO, 3).error_code == ErrorCode.NONE


def test_a_client_that_is_gone_before_its_answer_harms_nobody(connect: Connect):
    leaving, staying = connect(), connect()
    create(staying)
    leaving.send(fetch(max_wait_ms=60_000, min_bytes=1), 12)
    leaving.socket.close()
    produce(staying, 10)
    assert staying.ask(fetch(), 12).responses[0].partitions[0].high_watermark == 1


def test_three_hundred_clients_at_once_are_all_answered(connect: Connect):
    clients = [connect() for _ in range(300)]
    headers = [client.send(HELLO, 3) for client in clients]
    answers = [client.receive(header) for client, header in zip(clients, headers, strict=True)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}


def test_memory_is_bounded_by_what_a_client_that_stopped_reading_was_sent_last(connect: Connect):
    lazy, good = connect(), connect()
    create(good)
    for _ in range(50):
        produce(good, 1_000_000)
    before = memory_bytes()
    for _ in range(20):
        lazy.send(fetch(), 12)
    assert good.ask(fetch(), 12).responses[0].partitions[0].high_watermark == 50
    assert memory_bytes() - before < 300 * MIB  # twenty answers of 50 MB would take a gigabyte


def test_an_idle_connection_is_closed_and_a_long_poll_is_not(connect_to):
    with Broker(connections_max_idle_ms=200) as broker:
        idle, polling = connect_to(broker), connect_to(broker)
        create(polling)
        header = polling.send(fetch(max_wait_ms=1000, min_bytes=1), 12)
        assert idle.is_closed_by_broker()
        assert polling.receive(header).responses[0].partitions[0].error_code == ErrorCode.NONE


def test_clients_are_told_the_address_they_dialled(connect_to):
    with Broker() as broker:
        (told,) = connect_to(broker).ask(MetadataRequest(topics=[]), 9).brokers
        assert (told.host, told.port) == (broker.host, broker.port)


def test_clients_are_told_the_advertised_address(connect_to):
    with Broker(advertise="kafka.example:19092") as broker:
        (told,) = connect_to(broker).ask(MetadataRequest(topics=[]), 9).brokers
        assert (told.host, told.port) == ("kafka.example", 19092)


def test_a_closed_connection_leaves_no_descriptor_behind(connect_to):
    def open_sockets() -> int:
        links = [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return sum(1 for link in links if re.match("socket:", _target(link)))

    with Broker() as broker:
        before = open_sockets()
        for _ in range(20):
            client = connect_to(broker)
            assert client.ask(HELLO, 3).error_code == ErrorCode.NONE
            client.socket.close()
        wait_until(lambda: open_sockets() <= before)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def test_what_the_system_holds_of_a_connection_is_a_setting(start_node, connect_to):
    node = start_node(socket_receive_buffer_bytes=30_000, socket_send_buffer_bytes=40_000)
    connect_to(node).ask(HELLO, 3)

    def sizes() -> list[tuple[int, int]]:
        sockets = [each._transport.get_extra_info("socket") for each in node.node._connections._connections]
        options = socket.SO_RCVBUF, socket.SO_SNDBUF
        return [tuple(each.getsockopt(socket.SOL_SOCKET, option) for option in options) for each in sockets]

    assert node.call(sizes) in ([(30_000, 40_000)], [(60_000, 80_000)])  # Linux counts what it needs for itself too
