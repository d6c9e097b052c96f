"""The client for asyncio through the death and the sleep of a leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from zurau.client.aio import AsyncConsumer, AsyncProducer
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.producer import ProducerSettings
from zurau.ids import TopicPartition
from zurau.testing import Cluster

TASKS, EACH = 8, 40


@pytest.fixture
def three() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


async def write_through(place: ClusterClient, topic: str, fault: Callable[[], None]) -> list[bytes]:
    """Tasks write; in the middle something happens to a broker. What the topic holds afterwards."""

    async def write(producer: AsyncProducer, task: int) -> None:
        for number in range(EACH):
            await producer.send_and_wait(topic, b"%d-%d" % (task, number), partition=0)
            if (task, number) == (0, EACH // 2):
                await asyncio.to_thread(fault)

    settings = ProducerSettings(linger_s=0, delivery_timeout_s=120)
    async with AsyncProducer(place, settings) as producer, AsyncConsumer(place) as consumer:
        await asyncio.gather(*(write(producer, task) for task in range(TASKS)))
        await consumer.assign({TopicPartition(topic, 0): 0})
        end = (await consumer.end_offsets([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]
        found: list[bytes] = []
        while consumer.positions[TopicPartition(topic, 0)] < end:
            found += [record.value or b"" for _, records, _ in await consumer.poll() for record in records]
        return found


@pytest.mark.parametrize("fault", ["killed", "paused"])
def test_what_tasks_wrote_is_there_once_and_in_order_though_the_leader_is(three, fault):
    topic = f"tasks-{fault}"
    three.create_topic(topic)
    leader = three.leader_of(topic)
    act = three.kill if fault == "killed" else three.pause
    with ClusterClient(three.bootstrap, timeout_s=30) as place:
        found = asyncio.run(write_through(place, topic, lambda: act(leader)))
    for task in range(TASKS):
        written = [value for value in found if value.startswith(b"%d-" % task)]
        assert written == [b"%d-%d" % (task, number) for number in range(EACH)]
