"""A disk that takes its time with what some ask for, and others who want something else of it."""

from __future__ import annotations

import threading

import pytest

from zurau.node.disk import RealDisk, RealFile
from zurau.node.run import BACKGROUND_THREADS, WORKER_THREADS
from zurau.records.builder import NewRecord, build_batch
from zurau.testing import Broker
from zurau.wire.kafka.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

#: More than there are threads of any kind.
CROWD = 2 * (WORKER_THREADS + BACKGROUND_THREADS)
LARGE_BYTES = 900_000
PATIENCE_S = 60


class Gate:
    """Holds up whoever replaces a file (log starts among others), or makes one for a log, while it is closed."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.opened.set()
        #: One for each that has come to it while it was closed.
        self.arrivals = threading.Semaphore(0)

    def pass_through(self) -> None:
        if not self.opened.is_set():
            self.arrivals.release()
            assert self.opened.wait(PATIENCE_S)


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    replace_file = RealDisk.replace_file

    def replace_in_time(disk: RealDisk, path: str, content: bytes) -> None:
        gate.pass_through()
        replace_file(disk, path, content)

    open_file = RealDisk.open

    def open_in_time(disk: RealDisk, path: str, *, create: bool = True) -> RealFile:
        if create and path.endswith(".log"):
            gate.pass_through()
        return open_file(disk, path, create=create)

    monkeypatch.setattr(RealDisk, "replace_file", replace_in_time)
    monkeypatch.setattr(RealDisk, "open", open_in_time)
    yield gate
    gate.opened.set()


def delete_first(partition: int) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=1)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic("many", [wanted])], timeout_ms=60_000)


def test_a_large_read_does_not_wait_for_log_starts_that_are_written(tmp_path, gate, connect_to):
    with Broker(dir=str(tmp_path), flush="fsync") as broker:
        broker.create_topic("many", partitions=CROWD)
        broker.create_topic("large")
        client = connect_to(broker)
        client.ask(produce("many", range(CROWD), build_batch([NewRecord(key=None, value=b"x", timestamp=1)] * 2)), 9)
        client.ask(produce("large", [0], build_batch([NewRecord(key=None, value=b"x" * LARGE_BYTES, timestamp=1)])), 9)
        gate.opened.clear()
        crowd = [connect_to(broker) for _ in range(CROWD)]
        asked = [one.send(delete_first(partition), 2) for partition, one in enumerate(crowd)]
        for _ in range(BACKGROUND_THREADS):
            assert gate.arrivals.acquire(timeout=PATIENCE_S)

        (topic,) = client.ask(fetch("large"), 12).responses

        assert len(topic.partitions[0].records) > LARGE_BYTES
        gate.opened.set()
        answers = [one.receive(header).topics[0].partitions[0] for one, header in zip(crowd, asked, strict=True)]
        assert [(answer.error_code, answer.low_watermark) for answer in answers] == [(0, 1)] * CROWD


def test_others_do_not_wait_for_the_files_of_many_new_partitions(tmp_path, gate, connect_to):
    with Broker(dir=str(tmp_path), flush="fsync") as broker:
        broker.create_topic("many", partitions=CROWD)
        broker.create_topic("large")
        batch = build_batch([NewRecord(key=None, value=b"x", timestamp=1)])
        client, other = connect_to(broker), connect_to(broker)
        other.ask(produce("large", [0], batch), 9)
        gate.opened.clear()
        asked = client.send(produce("many", range(CROWD), batch), 9)
        assert gate.arrivals.acquire(timeout=PATIENCE_S)

        (topic,) = other.ask(produce("large", [0], batch), 9).responses

        assert (topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset) == (0, 1)
        gate.opened.set()
        (topic,) = client.receive(asked).responses
        assert {(each.error_code, each.base_offset) for each in topic.partition_responses} == {(0, 0)}


def produce(topic: str, partitions, batch: bytearray) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=bytes(batch)) for index in partitions]
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(topic, data)])


def fetch(topic: str) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=4 << 20)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=4 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
