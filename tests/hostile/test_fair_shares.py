"""Many clients ask for what takes long; another one's short question is not answered behind all of theirs.

Nothing is measured in seconds: when the short one is answered, most of the long ones are not.
"""

from __future__ import annotations

import select

import pytest
from attack import PRODUCE_VERSION, Attacker, produce_request, some_batch
from test_bombs import LIST_OFFSETS_VERSION, bomb, many_headers, one_record

from zurau.records.compression import Compression
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

CROWD = 60


@pytest.fixture
def attacker(broker, connect) -> Attacker:
    attacker = connect(broker)
    attacker.create_topic("bombs")
    attacker.create_topic("plain")
    return attacker


@pytest.fixture
def crowd(broker, connect):
    """Has many clients ask the same at once; returns how many of them are answered."""

    def crowd(request, version: int):
        clients = [connect(broker) for _ in range(CROWD)]
        for client in clients:
            client.send(request, version)
        select.select([client.socket for client in clients], [], [])  # all are there, and the first is answered
        return lambda: len(select.select([client.socket for client in clients], [], [], 0)[0])

    return crowd


def search(topic: str) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=1)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [wanted])])


def test_a_search_by_time_does_not_wait_for_many_that_search_a_bomb(broker, attacker, connect, crowd):
    assert attacker.produce("bombs", bomb(many_headers(50_000_000), Compression.ZSTD)).error_code == ErrorCode.NONE
    assert attacker.produce("plain", some_batch()).error_code == ErrorCode.NONE
    other = connect(broker)
    answered = crowd(search("bombs"), LIST_OFFSETS_VERSION)
    found = other.ask(search("plain"), LIST_OFFSETS_VERSION).topics[0].partitions[0]
    assert (found.error_code, found.offset) == (ErrorCode.NONE, 0)
    assert answered() < CROWD / 2


@pytest.mark.parametrize("topic", ["plain", "bombs"], ids=["to another partition", "to the same partition"])
def test_a_compressed_batch_does_not_wait_for_many_bombs(broker, attacker, connect, crowd, topic):
    other = connect(broker)
    answered = crowd(produce_request("bombs", bomb(one_record(60_000_000), Compression.ZSTD)), PRODUCE_VERSION)
    batch = bomb(one_record(900_000), Compression.GZIP)
    assert other.produce(topic, batch).error_code == ErrorCode.NONE
    assert answered() < CROWD / 2
