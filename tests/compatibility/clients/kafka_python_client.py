"""kafka-python as a process: `kafka_python_client.py SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.

Every client in this folder understands the same scenarios and prints the same JSON; driver.py lists them. This one
runs on kafka-python 2.0.2, which many still have, as well as on today's.
"""

import json
import sys
import threading
import warnings

warnings.simplefilter("ignore")  # what old libraries say on new Pythons

from kafka import KafkaConsumer, KafkaProducer, TopicPartition, __version__  # noqa: E402
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic  # noqa: E402
from kafka.consumer.subscription_state import ConsumerRebalanceListener  # noqa: E402
from kafka.errors import KafkaError  # noqa: E402

IS_OLD = __version__.startswith("2.")


def say(**event):
    print(json.dumps(event), flush=True)


def produce(bootstrap, topic, count, codec="none", idempotent=False, timestamp_ms=None):
    options = {} if IS_OLD else {"enable_idempotence": idempotent}
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        acks="all",
        **options,
    )
    sent = [
        producer.send(
            topic,
            key=f"key-{number}".encode(),
            value=value(number).encode(),
            headers=[("n", str(number).encode())],
            timestamp_ms=None if timestamp_ms is None else timestamp_ms + number,
        )
        for number in range(count)
    ]
    producer.flush(30)
    delivered = [future.get(30) for future in sent]
    producer.close(10)
    say(delivered=[[record.partition, record.offset] for record in delivered])


def value(number):
    return f"value-{number}-" + "x" * (number % 50)


def consume(bootstrap, topic, count):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    consumer.assign([TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))])
    records = []
    for message in consumer:
        records.append(as_record(message))
        if len(records) == count:
            break
    consumer.close()
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


def member(bootstrap, group, topic, session_timeout_ms=6000):
    """Joins, tells what it is given and what it reads, commits each poll, and leaves when its input ends."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=500,
        metadata_max_age_ms=1000,
    )
    consumer.subscribe([topic], listener=Listener())
    leaving = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), leaving.set()), daemon=True).start()
    while not leaving.is_set():
        for messages in consumer.poll(timeout_ms=100).values():
            for message in messages:
                say(record=as_record(message))
        if consumer.assignment():
            try:
                consumer.commit()
            except KafkaError as error:
                say(error=repr(error))
    consumer.close()
    say(left=True)


def offsets(bootstrap, topic, timestamp_ms):
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
    after = consumer.offsets_for_times({partition: timestamp_ms + 10_000_000})[partition]
    say(
        earliest=consumer.beginning_offsets([partition])[partition],
        latest=consumer.end_offsets([partition])[partition],
        at_time=found.offset,
        after_all=after,
    )
    consumer.close()


def admin(bootstrap, topic):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    seen = {}
    client.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "60000"})])
    seen["created"] = partition_count(client, topic)
    seen["created_twice"] = refusal(lambda: client.create_topics([NewTopic(topic, 2, 1)]))
    client.create_partitions({topic: NewPartitions(4)})
    seen["grown"] = partition_count(client, topic)
    seen["retention"] = retention(client, topic)
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "120000"})])
    seen["retention_altered"] = retention(client, topic)
    client.delete_topics([topic])
    seen["deleted"] = topic not in client.list_topics()
    seen["deleted_twice"] = refusal(lambda: client.delete_topics([topic]))
    consumer.close()
    client.close()
    say(**seen)


def partition_count(client, topic):
    return len(client.describe_topics([topic])[0]["partitions"])


def retention(client, topic):
    described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    if not IS_OLD:
        return described["topic"][topic]["retention.ms"]["value"]
    (_, _, _, _, entries) = described[0].resources[0]
    return next(entry[1] for entry in entries if entry[0] == "retention.ms")


def refusal(call):
    try:
        call()
    except KafkaError as refused:
        return refused.message
    return None


if __name__ == "__main__":
    scenario, address, arguments = sys.argv[1:]
    globals()[scenario](address, **json.loads(arguments))
