"""aiokafka as a process: `aiokafka_client.py SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.

Every client in this folder understands the same scenarios and prints the same JSON; driver.py lists them.
"""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code


def say(**event):
    print(json.dumps(event), flush=True)


async def produce(bootstrap, topic, count, codec="none", idempotent=False, timestamp_ms=None):
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        linger_ms=20,
        acks="all",
    )
    await producer.start()
    sent = [
        await producer.send(
            topic,
            key=f"key-{number}".encode(),
            value=value(number).encode(),
            headers=[("n", str(number).encode())],
            timestamp_ms=None if timestamp_ms is None else timestamp_ms + number,
        )
        for number in range(count)
    ]
    delivered = await asyncio.wait_for(asyncio.gather(*sent), 30)
    await producer.stop()
    say(delivered=[[record.partition, record.offset] for record in delivered])


def value(number):
    return f"value-{number}-" + "x" * (number % 50)


async def consume(bootstrap, topic, count):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    await consumer._client.add_topic(topic)
    await consumer._client.force_metadata_update()
    consumer.assign([TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))])
    records = [as_record(await asyncio.wait_for(consumer.getone(), 30)) for _ in range(count)]
    await consumer.stop()
    say(records=records)


def as_record(message):
    return {
        "partition": message.partition,
        "offset": message.offset,
        "key": None if message.key is None else message.key.decode(),
        "value": None if message.value is None else message.value.decode(),
        "headers": [[name, content.decode()] for name, content in message.headers],
    }


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        say(assigned=sorted(one.partition for one in assigned))

    def on_partitions_revoked(self, revoked):
        say(revoked=sorted(one.partition for one in revoked))


async def member(bootstrap, group, topic, session_timeout_ms=6000):
    """Joins, tells what it is given and what it reads, commits each poll, and leaves when its input ends."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=1000,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    leaving = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not leaving.done():
        for messages in (await consumer.getmany(timeout_ms=100)).values():
            for message in messages:
                say(record=as_record(message))
            try:
                await consumer.commit()
            except KafkaError as error:
                say(error=repr(error))
    await consumer.stop()
    say(left=True)


async def offsets(bootstrap, topic, timestamp_ms):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    partition = TopicPartition(topic, 0)
    found = await consumer.offsets_for_times({partition: timestamp_ms})
    after = await consumer.offsets_for_times({partition: timestamp_ms + 10_000_000})
    say(
        earliest=(await consumer.beginning_offsets([partition]))[partition],
        latest=(await consumer.end_offsets([partition]))[partition],
        at_time=found[partition].offset,
        after_all=after[partition],
    )
    await consumer.stop()


async def admin(bootstrap, topic):
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    seen = {}
    response = await client.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "60000"})])
    assert response.topic_errors[0][1] == 0, response
    seen["created"] = await partition_count(client, topic)
    response = await client.create_topics([NewTopic(topic, 2, 1)])
    seen["created_twice"] = for_code(response.topic_errors[0][1]).message
    await client.create_partitions({topic: NewPartitions(4)})
    seen["grown"] = await partition_count(client, topic)
    seen["retention"] = await retention(client, topic)
    await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "120000"})])
    seen["retention_altered"] = await retention(client, topic)
    await client.delete_topics([topic])
    seen["deleted"] = topic not in await client.list_topics()
    response = await client.delete_topics([topic])
    seen["deleted_twice"] = for_code(response.topic_error_codes[0][1]).message
    await client.close()
    say(**seen)


async def partition_count(client, topic):
    (described,) = await client.describe_topics([topic])
    return len(described["partitions"])


async def retention(client, topic):
    (response,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    entries = response.resources[0][4]
    return next(entry[1] for entry in entries if entry[0] == "retention.ms")


if __name__ == "__main__":
    scenario, address, arguments = sys.argv[1:]
    asyncio.run(globals()[scenario](address, **json.loads(arguments)))
