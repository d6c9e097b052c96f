"""The client for asyncio, against a broker."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from zurau.client.admin import NewTopic
from zurau.client.aio import AsyncAdmin, AsyncConsumer, AsyncGroupConsumer, AsyncProducer
from zurau.client.errors import BrokerRefused, ClientError, ProduceFailed
from zurau.client.groups.admin import GroupAdmin
from zurau.client.groups.membership import GroupSettings
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition

QUICK = GroupSettings(heartbeat_interval_s=0.05)


@pytest.fixture
def filled(cluster, topic):
    """Ten records in each partition."""
    with Producer(cluster) as producer:
        for number in range(30):
            producer.send(topic, b"%d" % number, partition=number % 3)
    return topic


async def read(consumer: AsyncConsumer | AsyncGroupConsumer, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        values += [int(record.value or b"") for _, records, _ in await consumer.poll() for record in records]
    return values


async def from_start(consumer: AsyncConsumer, topic: str) -> None:
    await consumer.assign(dict.fromkeys(await consumer.partitions_of(topic), 0))


def test_a_written_record_is_read_from_where_its_metadata_says(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster) as producer, AsyncConsumer(cluster) as consumer:
            written = await producer.send_and_wait(topic, b"hello", key=b"k", headers=[("h", b"1")], timestamp_ms=7)
            await consumer.assign({written.partition: written.offset})
            async for partition, record in consumer:
                assert partition == written.partition
                assert (record.key, record.value, record.offset, record.timestamp) == (
                    b"k",
                    b"hello",
                    written.offset,
                    7,
                )
                assert [*record.headers] == [("h", b"1")]
                break

    asyncio.run(work())


def test_many_tasks_write_through_one_thread_and_every_record_arrives_once(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster) as producer, AsyncConsumer(cluster) as consumer:
            before = threading.active_count()
            places = await asyncio.gather(*(producer.send_and_wait(topic, b"%d" % each) for each in range(500)))
            assert len(set(places)) == 500
            assert threading.active_count() <= before + 1
            await from_start(consumer, topic)
            assert sorted(await read(consumer, 500)) == list(range(500))

    asyncio.run(work())


def test_records_of_one_task_keep_their_order(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster) as producer, AsyncConsumer(cluster) as consumer:
            for number in range(300):
                await producer.send(topic, b"%d" % number, partition=1)
            await producer.flush()
            await consumer.assign({TopicPartition(topic, 1): 0})
            assert await read(consumer, 300) == list(range(300))

    asyncio.run(work())


def test_records_that_linger_are_sent_by_a_flush(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster, ProducerSettings(linger_s=3600)) as producer:
            record = await producer.send(topic, b"x", partition=0)
            await producer.flush()
            assert (await record).offset == 0

    asyncio.run(work())


def test_a_record_that_is_refused_raises_and_the_others_are_written(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster) as producer:
            good = await producer.send(topic, b"good", partition=0)
            refused = await producer.send(topic, b"nowhere", partition=99)
            with pytest.raises(ProduceFailed, match="no partition 99"):
                await refused
            assert (await good).offset == 0
            assert (await producer.send_and_wait(topic, b"after", partition=0)).offset == 1

    asyncio.run(work())


def test_a_flush_raises_what_became_of_a_record_that_nobody_waits_for(cluster, topic):
    async def work() -> None:
        async with AsyncProducer(cluster) as producer:
            record = await producer.send(topic, b"nowhere", partition=99)
            with pytest.raises(ProduceFailed):
                await producer.flush()
            assert record.exception() is not None

    asyncio.run(work())


def test_a_topic_that_may_not_be_made_is_refused(cluster, unique):
    async def work() -> None:
        async with AsyncProducer(cluster, ProducerSettings(may_create_topics=False)) as producer:
            with pytest.raises(BrokerRefused, match="no such topic"):
                await producer.send_and_wait(unique("absent"), b"x")

    asyncio.run(work())


@pytest.mark.parametrize("buffer_bytes", [1, 64, 4096])
def test_writing_waits_while_too_much_is_not_acknowledged(cluster, topic, buffer_bytes):
    async def work() -> None:
        async with AsyncProducer(cluster, ProducerSettings(linger_s=0, buffer_bytes=buffer_bytes)) as producer:
            records = [await producer.send(topic, b"x" * 20, partition=0) for _ in range(100)]
            assert [record.offset for record in await asyncio.gather(*records)] == list(range(100))

    asyncio.run(work())


def test_a_producer_left_by_an_error_tells_whoever_still_waits(cluster, topic):
    async def work() -> None:
        waiting = None
        with suppress(ZeroDivisionError):
            async with AsyncProducer(cluster, ProducerSettings(linger_s=3600)) as producer:
                waiting = await producer.send(topic, b"x")
                raise ZeroDivisionError
        assert waiting is not None
        with pytest.raises(ProduceFailed, match="closed"):
            await waiting
        with pytest.raises(ProduceFailed, match="closed"):
            await producer.send(topic, b"x")

    asyncio.run(work())


def test_a_poll_that_is_cancelled_loses_nothing(cluster, filled):
    async def work() -> None:
        async with AsyncConsumer(cluster) as consumer:
            await from_start(consumer, filled)
            polling = asyncio.create_task(consumer.poll())
            await asyncio.sleep(0)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            assert sorted(await read(consumer, 30)) == list(range(30))

    asyncio.run(work())


def test_an_iteration_that_stops_leaves_the_rest_for_a_poll(cluster, filled):
    async def work() -> None:
        async with AsyncConsumer(cluster) as consumer:
            await consumer.assign({TopicPartition(filled, 0): 0})
            seen = []
            async for _, record in consumer:
                seen.append(int(record.value or b""))
                if len(seen) == 4:
                    break
            assert consumer.positions == {TopicPartition(filled, 0): 4}
            assert seen + await read(consumer, 6) == list(range(0, 30, 3))

    asyncio.run(work())


def test_a_seek_goes_before_what_has_arrived(cluster, filled):
    async def work() -> None:
        async with AsyncConsumer(cluster) as consumer:
            partition = TopicPartition(filled, 0)
            await consumer.assign({partition: 0})
            await anext(aiter(consumer))
            await consumer.seek(partition, 8)
            assert await read(consumer, 2) == [24, 27]

    asyncio.run(work())


def test_the_loop_is_free_while_a_consumer_waits(cluster, topic):
    async def work() -> None:
        async with AsyncConsumer(cluster) as consumer, AsyncProducer(cluster) as producer:
            await from_start(consumer, topic)
            reading = asyncio.create_task(read(consumer, 1))
            await producer.send_and_wait(topic, b"5")
            assert await reading == [5]

    asyncio.run(work())


@pytest.mark.parametrize("way", ["commit", "close"])
def test_a_group_commits_what_was_handed_out_and_no_more(cluster, filled, unique, way):
    group = unique("group")

    async def work() -> list[int]:
        async with AsyncGroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
            seen = [int((await anext(consumer))[1].value or b"") for _ in range(7)]
            if way == "commit":
                await consumer.commit()
                assert sum(GroupAdmin(cluster).offsets(group).values()) == 7
            return seen

    async def go_on() -> list[int]:
        async with AsyncGroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
            return await read(consumer, 23)

    seen = asyncio.run(work())
    assert sum(GroupAdmin(cluster).offsets(group).values()) == 7
    assert sorted(seen + asyncio.run(go_on())) == list(range(30))


def test_two_members_share_the_partitions(cluster, filled, unique):
    group = unique("group")

    async def work() -> None:
        one = AsyncGroupConsumer(cluster, group, [filled], settings=QUICK)
        two = AsyncGroupConsumer(cluster, group, [filled], settings=QUICK)
        async with one, two:

            def is_shared() -> bool:
                return bool(one.assignment and two.assignment) and len(one.assignment + two.assignment) == 3

            async def read_on(member: AsyncGroupConsumer) -> None:
                while not is_shared():
                    await member.poll(0.05)

            await asyncio.gather(read_on(one), read_on(two))
            assert sorted(one.assignment + two.assignment) == cluster.partitions_of(filled)

    asyncio.run(work())


def test_topics_are_made_changed_and_removed(cluster, unique):
    name = unique("made")

    async def work() -> None:
        async with AsyncAdmin(cluster) as admin:
            assert len((await admin.create_topic(NewTopic(name, 2))).partitions) == 2
            assert len((await admin.add_partitions(name, 3)).partitions) == 3
            await admin.change_topic_settings(name, {"retention.ms": "1000"})
            assert {one.name: one.value for one in await admin.topic_settings(name)}["retention.ms"] == "1000"
            assert name in {topic.name for topic in await admin.list_topics()}
            assert name in (await admin.describe_cluster()).topics
            await admin.delete_topic(name)
            with pytest.raises(ClientError):
                await admin.describe_topic(name)

    asyncio.run(work())
