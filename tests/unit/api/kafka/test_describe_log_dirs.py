from __future__ import annotations

import pytest

from zurau.api.kafka import describe_log_dirs
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


@pytest.fixture
def broker(broker, settle):
    async def create():
        await broker.controller.submit(CreateTopic("orders", TopicId(bytes(16)), partition_count=2))

    settle(create())
    return broker


def sizes(response):
    (result,) = response.results
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_partition_is_shown_with_its_bytes(ask, broker, version):
    batch = build_batch([NewRecord(key=None, value=b"x" * 100, timestamp=0)])
    broker.partition("orders", 1).append_own(batch)
    shown = sizes(ask(describe_log_dirs, DescribeLogDirsRequest(), version, broker))
    assert shown == {
        ("orders", 0): 0,
        ("orders", 1): len(batch),
        ("__consumer_offsets", 0): 0,
    }


def test_only_what_was_asked_for_and_is_here_is_shown(ask, broker):
    wanted = [DescribableLogDirTopic(topic="orders", partitions=[1, 9])]
    shown = sizes(ask(describe_log_dirs, DescribeLogDirsRequest(topics=wanted), 4, broker))
    assert shown == {("orders", 1): 0}


def test_the_directory_and_its_free_space_are_shown(ask, broker, tmp_path):
    (result,) = ask(describe_log_dirs, DescribeLogDirsRequest(topics=[]), 4, broker).results
    assert (result.error_code, result.log_dir) == (0, str(tmp_path))
    assert result.usable_bytes > 0
