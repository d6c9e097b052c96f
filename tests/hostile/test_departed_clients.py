"""Clients that ask for much and leave: nothing of them stays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from attack import FETCH_VERSION, WAIT_ALLOWED_S, Attacker, fetch_request, resident_mb, some_batch, wait_until

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

FOR_EVER = 2**31 - 1
CLIENTS = 24
HELLO = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
#: What four workers may be reading at that moment, and room besides. All polls together would hold 960 MB.
MEMORY_ALLOWED_MB = 400


def open_sockets(pid: int) -> int:
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has just been closed
            count += str(link.readlink()).startswith("socket:")
    return count


def fill(client: Attacker, topic: str, megabytes: int) -> None:
    client.create_topic(topic)
    batch = some_batch(bytes(1_000_000))
    for _ in range(megabytes):
        assert client.produce(topic, batch, acks=1).error_code == ErrorCode.NONE


def test_long_polls_of_clients_that_left_hold_no_memory(broker, connect, watch, record_property) -> None:
    fill(connect(broker), "big", 40)
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    pollers = [connect(broker) for _ in range(CLIENTS)]
    for poller in pollers:
        poller.send(fetch_request("big", 0, max_wait_ms=FOR_EVER, min_bytes=FOR_EVER), FETCH_VERSION)
    bystander.join(1)
    waiting_mb = resident_mb(broker.pid)
    for poller in pollers:
        poller.leave()
    bystander.join(1)
    record_property(
        "memory while they wait and after, MB", (waiting_mb - before_mb, resident_mb(broker.pid) - before_mb)
    )
    assert waiting_mb - before_mb < MEMORY_ALLOWED_MB
    assert resident_mb(broker.pid) - before_mb < MEMORY_ALLOWED_MB
    assert bystander.finish() < WAIT_ALLOWED_S


def test_a_client_that_left_while_nothing_was_read_from_it_is_noticed(broker, connect) -> None:
    staying, leaving = connect(broker), connect(broker)
    staying.create_topic("t")
    before = open_sockets(broker.pid)
    leaving.send(fetch_request("t", 0, max_wait_ms=FOR_EVER), FETCH_VERSION)
    leaving.send(HELLO, 3)  # has to wait for the poll, so the broker stops reading
    assert staying.ask(HELLO, 3).error_code == ErrorCode.NONE
    leaving.leave()
    wait_until(lambda: open_sockets(broker.pid) == before - 1, "the connection is still open")


def test_a_partition_that_one_poll_names_fifty_thousand_times_is_as_fast_as_ever(broker, connect, watch) -> None:
    attacker, producer = connect(broker), connect(broker)
    producer.create_topic("t")
    bystander = watch(broker)
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)] * 50_000
    topics = [FetchTopic(topic="t", partitions=wanted)]
    attacker.send(
        FetchRequest(max_wait_ms=FOR_EVER, min_bytes=FOR_EVER, max_bytes=FOR_EVER, topics=topics), FETCH_VERSION
    )
    for _ in range(200):
        assert producer.produce("t", some_batch()).error_code == ErrorCode.NONE
    attacker.leave()
    for _ in range(20):
        assert producer.produce("t", some_batch()).error_code == ErrorCode.NONE
    assert bystander.finish() < WAIT_ALLOWED_S


def test_clients_that_reset_their_connections_in_the_middle_of_answers_harm_nobody(broker, connect, watch) -> None:
    fill(connect(broker), "big", 20)
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    for _ in range(50):
        attacker = connect(broker)
        attacker.send(fetch_request("big", 0), FETCH_VERSION)
        attacker.socket.recv(1000)
        attacker.reset()
    wait_until(lambda: resident_mb(broker.pid) - before_mb < MEMORY_ALLOWED_MB, "memory stays in use")
    assert bystander.finish() < WAIT_ALLOWED_S
