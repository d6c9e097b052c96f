"""One client that writes or reads as fast as it can, in a process of its own, and says what it cost.

    python bench/load.py confluent-kafka produce 127.0.0.1:9092 TOPIC COUNT SIZE [PARTITIONS]

The last line of its output is JSON: seconds of wall clock, from the first record to the last acknowledgement (or
the last record read), and seconds of CPU in the same span.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PIPELINE = 1000


@contextmanager
def timed() -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    print(json.dumps({"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}))


def kafka_produce(bootstrap: str, topic: str, count: int, size: int, partitions: int = 1) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256_000,
        }
    )
    payload = b"x" * size
    producer.list_topics(topic, timeout=30)
    with timed():
        for number in range(count):
            while True:
                try:
                    producer.produce(topic, payload, partition=number % partitions)
                    break
                except BufferError:
                    producer.poll(0.01)
        left = producer.flush(120)
    if left:
        sys.exit(f"{left} records were not delivered")


def kafka_consume(bootstrap: str, topic: str, count: int, _size: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            # By default it sleeps whenever it is 100,000 records ahead, as it always is of a quick broker.
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 64_000,
            "fetch.message.max.bytes": 4_000_000,
        }
    )
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    with timed():
        consumer.assign([TopicPartition(topic, 0, 0)])
        read = 0
        while read < count:
            messages = consumer.consume(min(10_000, count - read), timeout=30)
            if not messages:
                sys.exit(f"nothing came for 30 s after {read} records")
            read += len(messages)
    consumer.close()


def redis_produce(bootstrap: str, topic: str, count: int, size: int) -> None:
    import redis

    client = redis.Redis(port=int(bootstrap.rpartition(":")[2]))
    record = {b"v": b"x" * size}
    with timed():
        for _ in range(count // PIPELINE):
            pipeline = client.pipeline(transaction=False)
            for _ in range(PIPELINE):
                pipeline.xadd(topic, record)
            pipeline.execute()
    client.close()


def redis_consume(bootstrap: str, topic: str, count: int, _size: int) -> None:
    import redis

    client = redis.Redis(port=int(bootstrap.rpartition(":")[2]))
    with timed():
        last, read = b"0", 0
        while read < count:
            ((_, entries),) = client.xread({topic: last}, count=PIPELINE)
            read += len(entries)
            last = entries[-1][0]
    client.close()


async def _nats_produce(bootstrap: str, topic: str, count: int, size: int) -> None:
    import nats

    connection = await nats.connect(f"nats://{bootstrap}")
    stream = connection.jetstream()
    await stream.add_stream(name=topic, subjects=[topic])
    payload = b"x" * size
    with timed():
        for _ in range(count // PIPELINE):
            acks = [await stream.publish_async(topic, payload) for _ in range(PIPELINE)]
            await asyncio.gather(*acks)
    await connection.close()


async def _nats_consume(bootstrap: str, topic: str, count: int, _size: int) -> None:
    import nats

    connection = await nats.connect(f"nats://{bootstrap}")
    stream = connection.jetstream()
    subscription = await stream.pull_subscribe(topic, config=nats.js.api.ConsumerConfig(ack_policy="none"))
    with timed():
        read = 0
        while read < count:
            read += len(await subscription.fetch(PIPELINE, timeout=30))
    await connection.close()


def nats_produce(*arguments: object) -> None:
    asyncio.run(_nats_produce(*arguments))  # type: ignore[arg-type]


def nats_consume(*arguments: object) -> None:
    asyncio.run(_nats_consume(*arguments))  # type: ignore[arg-type]


LOADS = {
    f"{client} {direction}": globals()[f"{prefix}_{direction}"]
    for (client, prefix), direction in itertools.product(
        {"confluent-kafka": "kafka", "redis-py": "redis", "nats-py": "nats"}.items(), ("produce", "consume")
    )
}

if __name__ == "__main__":
    client, direction, address, name, *numbers = sys.argv[1:]
    LOADS[f"{client} {direction}"](address, name, *map(int, numbers))
