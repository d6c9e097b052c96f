"""What tests mostly ask of a simulated broker, in one line each.

`produce`, `fetch` and the like let time pass until the answer is there; their namesakes in `..._later` do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zurau.ids import NO_TOPIC_ID
from zurau.pending import Pending
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import Record, iter_records
from zurau.settings import MIB
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

GROUP = "readers"


class SimulatedClient:
    """Asks about one topic at a time, partition 0 unless told otherwise."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker

    def create_topic(self, name: str, configs: Mapping[str, str] | None = None, *, partitions: int = 1) -> int:
        """The error code."""
        wanted = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=wanted)
        response = self.broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
        return int(response.topics[0].error_code)

    def delete_topic(self, name: str) -> int:
        return int(
            self.broker.tell(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5).responses[0].error_code
        )

    def batch(self, *values: bytes, **facts: Any) -> bytes:
        """A batch of records without keys, as of now."""
        now_ms = self.broker.clock.now_ms()
        return bytes(build_batch([NewRecord(None, value, timestamp=now_ms) for value in values], **facts))

    def produce(self, topic: str, batch: bytes, **circumstances: Any) -> Any:
        """What is said of partition 0 or `index`; None for acks=0."""
        response = self.broker.wait(self.produce_later(topic, batch, **circumstances))
        return None if response is None else response.responses[0].partition_responses[0]

    def produce_later(
        self,
        topic: str,
        batch: bytes,
        *,
        index: int = 0,
        acks: int = -1,
        timeout_ms: int = 5000,
        version: int = 9,
    ) -> Pending[Any]:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
        request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=timeout_ms, topic_data=[data])
        return self.broker.ask(request, version)

    def fetch(self, topic: str, offset: int = 0, **circumstances: Any) -> Any:
        """What is said of partition 0 or `index`."""
        return self.broker.wait(self.fetch_later(topic, offset, **circumstances)).responses[0].partitions[0]

    def fetch_later(
        self,
        topic: str,
        offset: int = 0,
        *,
        index: int = 0,
        topic_id: bytes = NO_TOPIC_ID,
        partition_max_bytes: int = MIB,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        version: int = 12,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        **rest: Any,
    ) -> Pending[Any]:
        wanted = FetchPartition(
            partition=index,
            current_leader_epoch=current_leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_fetched_epoch,
            partition_max_bytes=partition_max_bytes,
        )
        topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics, **rest)
        return self.broker.ask(request, version)

    def read(self, topic: str, index: int = 0) -> list[bytes | None]:
        """All values in the order of their offsets, of which none may be missing."""
        values: list[bytes | None] = []
        while records := records_in(self.fetch(topic, len(values), index=index).records):
            assert [record.offset for record in records] == list(range(len(values), len(values) + len(records)))
            values += [record.value for record in records]
        return values

    def commit(self, topic: str, offset: int) -> int:
        """Commit an offset of partition 0; returns the error code."""
        item = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[item])]
        request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        return int(self.broker.tell(request, 7).topics[0].partitions[0].error_code)

    def committed(self, topic: str) -> int:
        """The committed offset of partition 0, or -1."""
        topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
        response = self.broker.tell(OffsetFetchRequest(group_id=GROUP, topics=topics), 5)
        return int(response.topics[0].partitions[0].committed_offset)


def records_in(batches: Any) -> list[Record]:
    """The records of some whole batches."""
    return [record for _, batch in iter_batches(batches or b"") for record in iter_records(batch)]
