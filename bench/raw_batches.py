"""A bare socket that sends whole batches to some partitions in one request, and reads them back.

The request is made once, so that the client costs next to nothing beside the broker.
"""

from __future__ import annotations

import time

from raw_clients import RawConnection
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_PRODUCE_VERSION, _FETCH_VERSION, _CREATE_VERSION = 9, 12, 5


class RawBatches(RawConnection):
    """Makes a topic of its own. A request has `records` of `size` bytes for each of its partitions."""

    def __init__(self, port: int, topic: str, partitions: int, records: int, size: int, acks: int = -1) -> None:
        super().__init__(port)
        self._topic, self._partitions, self._records = topic, partitions, records
        self.ask(CreateTopicsRequest(topics=[CreatableTopic(topic, partitions, 1)]), _CREATE_VERSION)
        now_ms = int(time.time() * 1000)
        batch = build_batch([NewRecord(None, b"x" * size, timestamp=now_ms) for _ in range(records)])
        data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
        request = ProduceRequest(
            acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        self._frame = self.encode(request, _PRODUCE_VERSION)
        self.request_bytes = len(batch) * partitions
        answer = self.ask(request, _PRODUCE_VERSION)
        codes = {each.error_code for each in answer.responses[0].partition_responses}  # type: ignore[attr-defined]
        assert codes == {0}, f"the broker refused: {codes}"

    def produce(self) -> None:
        """One request, and wait for its answer."""
        self.send(self._frame)
        self.receive()

    def produce_many(self, count: int, in_flight: int = 5) -> None:
        """So many requests, a few of them on their way at a time, as Kafka's producers do."""
        for number in range(count):
            self.send(self._frame)
            if number >= in_flight:
                self.receive()
        for _ in range(min(count, in_flight)):
            self.receive()

    def fetch(self, offset: int, max_bytes: int) -> int:
        """Read from all partitions; returns how many bytes came."""
        asked = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
            for index in range(self._partitions)
        ]
        request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=self._topic, partitions=asked)])
        self.send(self.encode(request, _FETCH_VERSION))
        return len(self.receive())

    def fetch_all(self, requests: int, batches_each: int, batch_bytes: int) -> int:
        """What so many produce requests have written; returns how many bytes came."""
        return sum(
            self.fetch(first * self._records, batches_each * batch_bytes) for first in range(0, requests, batches_each)
        )
