from __future__ import annotations

import pytest

from zurau.api.kafka import delete_records
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


@pytest.fixture
def broker(broker, settle):
    async def fill():
        await broker.controller.submit(CreateTopic("orders", TopicId(bytes(16))))
        compacted = CreateTopic("table", TopicId(bytes([1] * 16)), configs={"cleanup.policy": "compact"})
        await broker.controller.submit(compacted)
        await broker.opened(TopicId(bytes(16)))
        for number in range(5):
            batch = build_batch([NewRecord(key=None, value=b"%d" % number, timestamp=0)])
            broker.partition("orders", 0).append_own(batch)
        await broker.partition("orders", 0).wait_committed(5)

    settle(fill())
    return broker


@pytest.fixture
def delete(ask, broker):
    def run(topic, partition, offset, version=2):
        wanted = [DeleteRecordsPartition(partition_index=partition, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=wanted)], timeout_ms=0)
        (answered,) = ask(delete_records, request, version, broker).topics
        return answered.partitions[0]

    return run


@pytest.mark.parametrize("version", range(3))
def test_the_start_of_a_log_moves_up(delete, broker, version):
    result = delete("orders", 0, 3, version=version)
    assert (result.error_code, result.low_watermark) == (0, 3)
    assert broker.partition("orders", 0).log.start_offset == 3


def test_minus_one_means_everything_that_is_committed(delete):
    result = delete("orders", 0, -1)
    assert (result.error_code, result.low_watermark) == (0, 5)


@pytest.mark.parametrize("offset", [6, -2])
def test_offsets_that_the_log_does_not_reach_are_refused(delete, offset):
    assert delete("orders", 0, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("table", ErrorCode.POLICY_VIOLATION),
    ],
    ids=["unknown", "internal", "compacted"],
)
def test_topics_that_do_not_lose_records_this_way_are_refused(delete, topic, code):
    result = delete(topic, 0, 0)
    assert (result.error_code, result.low_watermark) == (code, -1)
