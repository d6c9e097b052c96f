"""Directories that the release before replication has written open with nothing lost.

They are stored in `old_release/`, one of a broker that was stopped and one of a broker that was killed, each with what
clients read from it then. Both had been started twice, with segments of 2 kB: `prices` is compacted, records of
`orders` were deleted, the configs of `orders` changed, a topic `gone` was deleted, and two groups have committed.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.ids import TopicPartition
from zurau.log.settings import LogSettings
from zurau.records.batch import stamp
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.simulation.disk import SimulatedDisk
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

STORED = Path(__file__).parent / "old_release"
TOPIC_RESOURCE = 2
#: The source of a config that was set for this topic.
TOPIC_SOURCE = 1
PARTITIONS = ["orders-0", "orders-1", "orders-2", "prices-0", "prices-1"]


@pytest.fixture(params=["stopped", "killed"])
def variant(request) -> str:
    return request.param


@pytest.fixture
def before(variant) -> dict[str, Any]:
    """What clients of the old release read."""
    return json.loads((STORED / f"{variant}.json").read_text())


@pytest.fixture
def broker(variant) -> SimulatedBroker:
    """Today's broker on a copy of the directory."""
    disk = SimulatedDisk(1)
    with tarfile.open(fileobj=io.BytesIO((STORED / f"{variant}.tar.gz").read_bytes())) as stored:
        for member in stored:
            path = member.name.removeprefix("./")
            if member.isdir() and path != ".":
                disk.make_directory(path)
            elif member.isfile():
                disk.replace_file(path, stored.extractfile(member).read())
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=2), disk)


@pytest.fixture
def client(broker) -> SimulatedClient:
    return SimulatedClient(broker)


def read(client: SimulatedClient, name: str) -> list[list]:
    topic, index = name.rsplit("-", 1)
    partition = client.broker.broker.partitions[TopicPartition(topic, int(index))]
    records, offset = [], partition.log.start_offset
    while fetched := records_in(client.fetch(topic, offset, index=int(index)).records):
        records += [r for r in fetched if r.offset >= offset]
        offset = fetched[-1].offset + 1
    return [[r.offset, r.timestamp, r.key.decode(), r.value.decode()] for r in records]


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_record_is_where_it_was(before, client, name):
    assert read(client, name) == before["records"][name]["records"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_logs_begin_and_end_where_they_did(before, broker, name):
    topic, index = name.rsplit("-", 1)
    partition = broker.broker.partitions[TopicPartition(topic, int(index))]
    stored = before["records"][name]
    assert (partition.log.start_offset, partition.high_watermark) == (stored["start"], stored["end"])
    assert partition.log.damage == []


def test_the_cluster_and_its_topics_are_the_same(before, broker):
    image = broker.broker.image
    assert sorted(name for name in image.topics if not name.startswith("__")) == before["topics"]
    assert broker.broker.identity.cluster_id == before["cluster_id"]


def test_configs_are_as_they_were_set(before, broker):
    for topic, configs in before["configs"].items():
        wanted = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None)
        (result,) = broker.tell(DescribeConfigsRequest(resources=[wanted]), 1).results
        assert {each.name: each.value for each in result.configs if each.config_source == TOPIC_SOURCE} == configs


def test_committed_offsets_are_known(before, broker):
    for group, commits in before["committed"].items():
        for topic, index, offset, note in commits:
            asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[index])
            response = broker.tell(OffsetFetchRequest(group_id=group, topics=[asked]), 5)
            (found,) = response.topics[0].partitions
            # The client that wrote these notes ended each with a zero, and cut it off when it read them.
            assert (found.committed_offset, found.metadata) == (offset, note and note + "\0")


def test_a_producer_that_repeats_its_last_batch_is_recognised(broker, client):
    """As the release before remembered it: nothing is written twice."""
    partition = broker.broker.partitions[TopicPartition("orders", 1)]
    *_, last = partition.log.headers(partition.log.start_offset)
    batch = bytearray(partition.read(last.base_offset, 1, last.next_offset, may_block=True))
    stamp(batch, 0, -1)
    again = client.produce("orders", bytes(batch), index=1)
    assert last.producer_id >= 0
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, last.base_offset)
    assert partition.log.end_offset == last.next_offset


def test_it_is_written_to_and_all_of_it_survives_a_power_failure(before, broker, client):
    stored = before["records"]["orders-2"]
    appended = client.produce("orders", client.batch(b"new"), index=2)
    assert (appended.error_code, appended.base_offset) == (ErrorCode.NONE, stored["end"])
    broker.lose_power()
    broker.start()
    fetched = records_in(client.fetch("orders", stored["end"], index=2).records)
    assert [record.value for record in fetched][-1:] == [b"new"]
    assert broker.broker.partitions[TopicPartition("orders", 2)].log.start_offset == stored["start"]
