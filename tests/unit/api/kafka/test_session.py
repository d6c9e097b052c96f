"""Kafka's side of a connection without a connection: bytes in, answers out, in order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from zurau.api.kafka.session import FRAMES_MAX, KafkaSession
from zurau.broker.settings import BrokerSettings
from zurau.errors import ProtocolViolation
from zurau.log.settings import LogSettings
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from zurau.wire.kafka.schema import Message

HELLO = ApiVersionsRequest()
POLL = FetchRequest(
    max_wait_ms=10_000,
    min_bytes=1,
    topics=[
        FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)])
    ],
)
VERSIONS = {HELLO.api_key: 3, POLL.api_key: 12, ProduceRequest.api_key: 9, JoinGroupRequest.api_key: 2}


class Driver:
    """Gives a session its bytes, and keeps what it answers, by number."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self.session = KafkaSession(CLIENT, self, broker.broker, bytearray(1 << 16))
        self._headers: list[RequestHeader] = []
        self.answered: list[int] = []

    def send(self, *requests: Message) -> None:
        frames = b""
        for request in requests:
            header = RequestHeader(request.api_key, VERSIONS[request.api_key], len(self._headers), "a client")
            self._headers.append(header)
            frames += b"".join(encode_request(header, request))
        self.session.get_buffer()[: len(frames)] = frames
        self.session.received(len(frames))
        self._go_on()

    def answer_is_ready(self) -> None:
        while (answer := self.session.next_answer()) is not None:
            self._keep(answer)
        self._go_on()

    def holds_more(self) -> None: ...

    def after_this_read(self, work: Callable[[], None]) -> None:
        work()

    def _go_on(self) -> None:
        while (self.session.inbox or self.session.more()) and self.session.may_start():
            answer = self.session.start_next()
            if answer is not None:
                self._keep(answer)

    def _keep(self, answer) -> None:
        frame = memoryview(b"".join(answer))[4:]
        number = int.from_bytes(frame[:4], "big")
        decode_response(self._headers[number], frame)
        self.answered.append(number)


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t")
    return client


@pytest.fixture
def driver(broker, client) -> Driver:
    return Driver(broker)


def produce(client: SimulatedClient, partitions: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=n, records=bytes(client.batch(b"v"))) for n in range(partitions)]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def test_requests_of_one_read_are_answered_in_their_order(driver):
    driver.send(HELLO, HELLO, HELLO)
    assert driver.answered == [0, 1, 2]


def test_nothing_is_started_behind_a_poll_that_waits(driver, broker, client):
    driver.send(POLL, HELLO)
    broker.clock.advance(1)
    assert (driver.answered, len(driver.session.inbox)) == ([], 1)
    assert (driver.session.is_waiting, driver.session.may_wait_long) == (True, True)
    client.produce("t", client.batch(b"v"))
    broker.clock.advance(1)
    assert driver.answered == [0, 1]


def test_produces_are_started_together_and_answered_in_their_order(driver, broker, client):
    broker.broker.world.flusher.delay_ms = 100
    driver.send(produce(client), produce(client), produce(client), HELLO)
    assert len(driver.session.inbox) == 1, "all but the last wait for one flush"
    assert (driver.session.is_waiting, driver.session.may_wait_long) == (True, False)
    broker.clock.advance(300)
    assert driver.answered == [0, 1, 2, 3]


def test_a_produce_that_takes_several_turns_to_write_is_not_overtaken(driver, broker, client):
    client.create_topic("wide", partitions=3)
    wide = produce(client, partitions=3)
    wide.topic_data[0] = replace(wide.topic_data[0], name="wide")
    driver.send(wide, produce(client))
    assert len(driver.session.inbox) == 1
    broker.clock.advance(100)
    assert driver.answered == [0, 1]


def test_what_waits_is_counted_and_given_back_when_the_connection_ends(driver, broker):
    driver.send(POLL, HELLO)
    broker.clock.advance(1)
    assert driver.session.held_bytes > 0
    assert len(broker.broker.partition("t", 0)._readers) == 1
    driver.session.end()
    assert driver.session.held_bytes == 0
    assert len(broker.broker.partition("t", 0)._readers) == 0


def test_a_join_that_waits_is_counted_with_the_bytes_that_it_came_in(driver, broker):
    broker.tell(FindCoordinatorRequest(key="readers"), 3)
    broker.clock.advance(1000)
    large = JoinGroupRequestProtocol(name="range", metadata=bytes(10_000))
    join = JoinGroupRequest(group_id="readers", session_timeout_ms=10_000, protocol_type="consumer", protocols=[large])
    driver.send(join)
    broker.clock.advance(1)
    assert driver.answered == []
    assert 10_000 < driver.session.held_bytes < 11_000


def test_what_one_read_brings_is_taken_apart_piece_by_piece(driver, broker):
    driver.send(POLL, *[HELLO] * 3 * FRAMES_MAX)
    assert len(driver.session.inbox) == FRAMES_MAX - 1
    broker.clock.advance(10_001)
    assert driver.answered == list(range(3 * FRAMES_MAX + 1))


def test_who_asks_and_what_is_named(driver):
    assert driver.session.describe_work() == "a first request for 127.0.0.1"
    driver.send(HELLO)
    assert driver.session.describe_work() == "ApiVersions for 127.0.0.1 (a client)"


def test_nonsense_is_the_clients_fault(driver):
    driver.session.get_buffer()[:4] = b"\xff\xff\xff\xff"
    with pytest.raises(ProtocolViolation):
        driver.session.received(4)
