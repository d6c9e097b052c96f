"""Whatever a client sends, it gets a clear answer or a closed connection, and nobody else notices."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from zurau.records.builder import NewRecord, build_batch
from zurau.testing import Broker
from zurau.wire.kafka.codec import decode
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Connect = Callable[[], Any]

HELLO = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def produce(records: bytes, *, topic: str = "t", acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])],
    )


def batch(value: bytes = b"v") -> bytearray:
    return build_batch([NewRecord(key=None, value=value, timestamp=1_767_657_600_000)])


def create(client, topic: str = "t") -> None:
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True), 4)


def code_of(response) -> int:
    return response.responses[0].partition_responses[0].error_code


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 4) + b"\0\0\0\0",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        struct.pack(">ihhih", 10, 9999, 0, 1, -1),
        struct.pack(">ihhih", 10, 0, 999, 1, -1),
        struct.pack(">ihhih", 10, 3, 5, 1, 32000),
        struct.pack(">ihhihi", 14, 3, 5, 1, -1, 2**31 - 1),
    ],
    ids=["negative size", "huge size", "too short", "http", "unknown api", "unknown version", "client id", "array"],
)
def test_nonsense_closes_its_own_connection_and_no_other(connect: Connect, garbage: bytes):
    good, bad = connect(), connect()

    bad.socket.sendall(garbage)

    assert bad.is_closed_by_broker()
    assert good.ask(HELLO, 3).error_code == ErrorCode.NONE


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_form(connect: Connect):
    client = connect()
    client.socket.sendall(struct.pack(">ihhih", 10, 18, 99, 7, -1))

    frame = memoryview(client.receive_frame())

    assert bytes(frame[:4]) == struct.pack(">i", 7)
    response, end = decode(ApiVersionsResponse, 0, frame, 4)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert any(api.api_key == 18 and api.max_version == 4 for api in response.api_keys)
    assert end == len(frame)


def test_a_bad_checksum_is_refused_and_nothing_is_written(connect: Connect):
    client = connect()
    create(client)
    damaged = batch()
    damaged[-1] ^= 1

    assert code_of(client.ask(produce(bytes(damaged)), 9)) == ErrorCode.CORRUPT_MESSAGE
    assert client.ask(produce(bytes(batch())), 9).responses[0].partition_responses[0].base_offset == 0


@pytest.mark.parametrize("cut", [1, 30, 60, 70])
def test_a_batch_that_is_cut_short_is_refused(connect: Connect, cut: int):
    client = connect()
    create(client)

    assert code_of(client.ask(produce(bytes(batch(b"x" * 50))[:cut]), 9)) == ErrorCode.INVALID_RECORD


def test_two_batches_for_one_partition_are_refused(connect: Connect):
    client = connect()
    create(client)

    assert code_of(client.ask(produce(bytes(batch() + batch())), 9)) == ErrorCode.INVALID_RECORD


def test_no_records_at_all_are_refused(connect: Connect):
    client = connect()
    create(client)

    assert code_of(client.ask(produce(b""), 9)) == ErrorCode.INVALID_RECORD


def test_a_batch_over_the_limit_is_refused(connect: Connect):
    client = connect()
    create(client)

    assert code_of(client.ask(produce(bytes(batch(b"x" * 2_000_000))), 9)) == ErrorCode.MESSAGE_TOO_LARGE


def test_odd_acks_are_refused(connect: Connect):
    client = connect()
    create(client)

    assert code_of(client.ask(produce(bytes(batch()), acks=5), 9)) == ErrorCode.INVALID_REQUIRED_ACKS


def test_an_unknown_topic_is_refused(connect: Connect):
    response = connect().ask(produce(bytes(batch()), topic="nowhere"), 9)

    assert code_of(response) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ü", "x" * 250, "__consumer_offsets/../x"])
def test_a_bad_topic_name_is_refused_and_not_created(connect: Connect, name: str):
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)

    response = connect().ask(request, 9)

    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_client_that_wants_no_answer_gets_none(connect: Connect):
    client = connect()
    create(client)
    client.send(produce(bytes(batch()), acks=0), 9)

    assert client.ask(HELLO, 3).error_code == ErrorCode.NONE


def test_answers_leave_in_the_order_of_the_questions(connect: Connect):
    client = connect()
    create(client)
    headers = [client.send(produce(bytes(batch())), 9) for _ in range(20)]
    headers.append(client.send(HELLO, 3))

    offsets = [client.receive(header).responses[0].partition_responses[0].base_offset for header in headers[:-1]]

    assert offsets == list(range(20))
    assert client.receive(headers[-1]).error_code == ErrorCode.NONE


def test_a_half_sent_request_harms_nobody(connect: Connect):
    stuck, good = connect(), connect()
    stuck.socket.sendall(struct.pack(">i", 1000) + b"\0\x12")

    assert good.ask(HELLO, 3).error_code == ErrorCode.NONE


def test_a_client_that_never_reads_stops_being_served_and_harms_nobody(connect: Connect):
    lazy, good = connect(), connect()
    create(lazy)
    for _ in range(20):
        lazy.ask(produce(bytes(batch(b"x" * 900_000))), 9)
    fetch = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=50_000_000,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**30)])
        ],
    )
    for _ in range(50):
        lazy.send(fetch, 11)

    assert good.ask(HELLO, 3).error_code == ErrorCode.NONE


def test_too_many_connections_are_turned_away(connect_to):
    with Broker(max_connections=2) as broker:
        clients = [connect_to(broker) for _ in range(3)]

        assert clients[0].ask(HELLO, 3).error_code == ErrorCode.NONE
        assert clients[2].is_closed_by_broker()


def test_memory_for_unfinished_requests_is_bounded_by_closing_the_largest_holder(connect_to):
    with Broker(queued_max_request_bytes=2**20) as broker:
        greedy, modest = connect_to(broker), connect_to(broker)
        with suppress(ConnectionError):
            greedy.socket.sendall(struct.pack(">i", 50_000_000) + bytes(4_000_000))

        assert greedy.is_closed_by_broker()
        assert modest.ask(HELLO, 3).error_code == ErrorCode.NONE
