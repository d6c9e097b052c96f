"""confluent-kafka (librdkafka) as a process: `confluent_client.py SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.

Every client in this folder understands the same scenarios and prints the same JSON; driver.py lists them. This one
runs on confluent-kafka 1.9 as well as on today's, and on the Pythons that those have wheels for.
"""

import json
import sys
import threading

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic


def say(**event):
    print(json.dumps(event), flush=True)


def produce(bootstrap, topic, count, codec="none", idempotent=False, timestamp_ms=None):
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "linger.ms": 20,
            "message.timeout.ms": 30_000,
        }
    )
    delivered = []

    def on_delivery(error, message):
        if error is not None:
            raise SystemExit(f"not delivered: {error}")
        delivered.append([message.partition(), message.offset()])

    for number in range(count):
        stamp = {} if timestamp_ms is None else {"timestamp": timestamp_ms + number}
        producer.produce(
            topic,
            key=f"key-{number}",
            value=value(number),
            headers={"n": str(number)},
            on_delivery=on_delivery,
            **stamp,
        )
    if producer.flush(30) > 0:
        raise SystemExit("records were left in the queue")
    say(delivered=delivered)


def value(number):
    return f"value-{number}-" + "x" * (number % 50)


def consume(bootstrap, topic, count):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    records = []
    while len(records) < count:
        message = consumer.poll(30)
        if message is None:
            raise SystemExit(f"nothing more came after {len(records)} records")
        if message.error():
            raise SystemExit(str(message.error()))
        records.append(as_record(message))
    consumer.close()
    say(records=records)


def as_record(message):
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": None if message.key() is None else message.key().decode(),
        "value": None if message.value() is None else message.value().decode(),
        "headers": [[name, content.decode()] for name, content in message.headers() or []],
    }


def member(bootstrap, group, topic, session_timeout_ms=6000, **options):
    """Joins, tells what it is given and what it reads, commits each record, and leaves when its input ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": 500,
            "topic.metadata.refresh.interval.ms": 1000,
            **options,
        }
    )
    held = set()
    is_incremental = "cooperative" in options.get("partition.assignment.strategy", "")

    def on_assign(_, given):
        held.update(one.partition for one in given)
        say(assigned=sorted(held))

    def on_revoke(_, taken):
        held.difference_update(one.partition for one in taken)
        if is_incremental:
            say(assigned=sorted(held))
        else:
            say(revoked=sorted(one.partition for one in taken))

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
    leaving = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), leaving.set()), daemon=True).start()
    while not leaving.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            if message.error().code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                say(error=str(message.error()))
            continue
        say(record=as_record(message))
        consumer.commit(message, asynchronous=False)
    consumer.close()
    say(left=True)


def offsets(bootstrap, topic, timestamp_ms):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    earliest, latest = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], timeout=10)
    (after,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms + 10_000_000)], timeout=10)
    consumer.close()
    say(earliest=earliest, latest=latest, at_time=found.offset, after_all=None if after.offset < 0 else after.offset)


def admin(bootstrap, topic):
    client = AdminClient({"bootstrap.servers": bootstrap})
    seen = {}
    wait(
        client.create_topics(
            [NewTopic(topic, num_partitions=2, replication_factor=-1, config={"retention.ms": "60000"})]
        )
    )
    seen["created"] = len(client.list_topics(timeout=10).topics[topic].partitions)
    seen["created_twice"] = refusal(client.create_topics([NewTopic(topic, num_partitions=2, replication_factor=-1)]))
    wait(client.create_partitions([NewPartitions(topic, 4)]))
    seen["grown"] = len(client.list_topics(timeout=10).topics[topic].partitions)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    seen["retention"] = wait(client.describe_configs([resource]))["retention.ms"].value
    altered = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "120000"})
    wait(client.alter_configs([altered]))
    seen["retention_altered"] = wait(client.describe_configs([resource]))["retention.ms"].value
    wait(client.delete_topics([topic], operation_timeout=10))
    seen["deleted"] = topic not in client.list_topics(timeout=10).topics
    seen["deleted_twice"] = refusal(client.delete_topics([topic]))
    say(**seen)


def wait(futures):
    (future,) = futures.values()
    return future.result(timeout=20)


def refusal(futures):
    (future,) = futures.values()
    try:
        future.result(timeout=20)
    except confluent_kafka.KafkaException as refused:
        return refused.args[0].name()
    return None


if __name__ == "__main__":
    scenario, address, arguments = sys.argv[1:]
    globals()[scenario](address, **json.loads(arguments))
