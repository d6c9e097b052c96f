"""What is in the directories of `stored/`, and how they were written.

A release must open what an earlier one wrote. So small directories are kept as releases left them, one after a stop in
good order and one after `kill -9`: from the first on that keeps a journal (those of the one before are in
`tests/unit/broker/old_release`). To add those of another checkout:

    PYTHONPATH=CHECKOUT/src .venv/bin/python tests/compatibility/stored_directory.py tests/compatibility/stored/NAME
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from broker_process import ZurauBroker
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

#: With settings that nothing expires by: the directories get old.
TOPICS = {
    "plain": {"retention.ms": "-1", "segment.bytes": "1048576"},
    "packed": {"retention.ms": "-1", "compression.type": "zstd"},
    "latest": {"cleanup.policy": "compact", "max.message.bytes": "100000"},
    "head-deleted": {"retention.ms": "-1"},
    "added-to": {"retention.ms": "-1"},
}
PARTITIONS = 3
RECORDS = 300
KEYS = 20
#: Of `head-deleted`, in each partition.
DELETED = 40
GROUP = "readers"
#: Where the group is, in each partition of `plain`.
COMMITTED = 60


def value(topic: str, number: int) -> bytes:
    """Those of `plain` fill more than one segment in each partition."""
    return f"{topic} {number} {'.' * (15_000 if topic == 'plain' else number % 100)}".encode()


def key(number: int) -> bytes:
    return b"%d" % (number % KEYS)


def numbers_of(partition: int) -> list[int]:
    return [number for number in range(RECORDS) if partition_of(number) == partition]


def partition_of(number: int) -> int:
    return number % KEYS % PARTITIONS


def fill(bootstrap: str) -> None:
    """Make the topics, and put in what the tests look for."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in TOPICS.items()]
    for made in admin.create_topics(topics).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 7})
    for name in TOPICS:
        for number in range(RECORDS):
            producer.produce(
                name, value(name, number), key(number), partition_of(number), headers=[("number", b"%d" % number)]
            )
    assert producer.flush(60) == 0
    heads = [TopicPartition("head-deleted", partition, DELETED) for partition in range(PARTITIONS)]
    for deleted in admin.delete_records(heads).values():
        deleted.result(30)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    positions = [TopicPartition("plain", partition, COMMITTED) for partition in range(PARTITIONS)]
    consumer.assign(positions)
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()


def first_offset(bootstrap: str, topic: str, partition: int) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    place = TopicPartition(topic, partition)
    return admin.list_offsets({place: OffsetSpec.earliest()})[place].result(30).offset


def main() -> None:
    target = Path(sys.argv[1])
    target.parent.mkdir(exist_ok=True)
    for end in ("stop", "kill"):
        with tempfile.TemporaryDirectory() as scratch:
            broker = ZurauBroker(Path(scratch))
            broker.start()
            fill(broker.bootstrap)
            getattr(broker, end)()
            with tarfile.open(f"{target}-{end}.tar.xz", "w:xz") as archive:
                archive.add(broker.directory / "data", "data")


if __name__ == "__main__":
    main()
