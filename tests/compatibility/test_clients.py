"""Every client library, unchanged and as a process of its own, does with the broker what it does with Kafka."""

from __future__ import annotations

import time
from itertools import groupby

import pytest
from driver import CLIENTS, Client, Member, named, wait_until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
REFERENCE = CLIENTS[0]
COUNT = 200


def value(number: int) -> str:
    return f"value-{number}-" + "x" * (number % 50)


def in_order(records):
    """Records as they lie in each partition, by partition."""
    by_place = sorted(records, key=lambda record: (record["partition"], record["offset"]))
    return {partition: list(group) for partition, group in groupby(by_place, key=lambda record: record["partition"])}


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_with_each_codec_is_read_back(client, codec, bootstrap, topic):
    client.run("produce", bootstrap, topic=topic, count=COUNT, codec=codec)
    records = REFERENCE.run("consume", bootstrap, topic=topic, count=COUNT)["records"]
    assert [record["offset"] for record in records] == list(range(COUNT))
    assert [record["key"] for record in records] == [f"key-{number}" for number in range(COUNT)]
    assert [record["value"] for record in records] == [value(number) for number in range(COUNT)]
    assert [record["headers"] for record in records] == [[["n", str(number)]] for number in range(COUNT)]


def test_batches_of_every_codec_in_one_topic_are_consumed(client, bootstrap, topic):
    for codec in CODECS:
        REFERENCE.run("produce", bootstrap, topic=topic, count=50, codec=codec)
    records = client.run("consume", bootstrap, topic=topic, count=250)["records"]
    assert [record["offset"] for record in records] == list(range(250))
    assert [record["value"] for record in records] == [value(number) for number in range(50)] * len(CODECS)


def test_every_acknowledged_record_is_where_the_client_was_told(client, bootstrap, make_topic):
    topic = make_topic(partitions=3)
    answer = client.run("produce", bootstrap, topic=topic, count=COUNT, idempotent=client.name != "kafka-python-2.0.2")
    records = REFERENCE.run("consume", bootstrap, topic=topic, count=COUNT)["records"]
    if "delivered" in answer:
        told = sorted(map(tuple, answer["delivered"]))
        assert told == sorted((record["partition"], record["offset"]) for record in records)
    else:
        assert {offset for _, offset in answer["base_offsets"]} == {0}
    for partition in in_order(records).values():
        assert [record["offset"] for record in partition] == list(range(len(partition)))


def test_offsets_are_found_by_place_and_time(client, bootstrap, topic):
    now_ms = int(time.time() * 1000)
    REFERENCE.run("produce", bootstrap, topic=topic, count=100, timestamp_ms=now_ms)
    answer = client.run("offsets", bootstrap, topic=topic, timestamp_ms=now_ms + 60)
    assert answer == {"earliest": 0, "latest": 100, "at_time": 60, "after_all": None}


def test_topics_are_made_grown_changed_and_deleted(client, bootstrap):
    answer = client.run("admin", bootstrap, topic=f"admin-{client.name}-{time.monotonic_ns()}")
    assert answer == {
        "created": 2,
        "created_twice": "TOPIC_ALREADY_EXISTS",
        "grown": 4,
        "retention": "60000",
        "retention_altered": "120000",
        "deleted": True,
        "deleted_twice": answer["deleted_twice"],
    }
    # Old librdkafka has another word for the same code.
    assert answer["deleted_twice"] in {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PART"}


def test_members_share_partitions_as_they_come_and_leave(client, join, bootstrap, make_topic):
    topic = make_topic(partitions=4)
    first = join("shared-" + topic, topic)
    wait_until("the first member has everything", lambda: first.assigned == {0, 1, 2, 3})
    second = join("shared-" + topic, topic)
    wait_until("both have two partitions", lambda: holds(first, second) and len(first.assigned) == 2)
    second.leave()
    wait_until("the first has everything again", lambda: first.assigned == {0, 1, 2, 3})
    assert second.has_left


def test_partitions_of_a_dead_member_go_to_the_living(client, join, bootstrap, make_topic):
    topic = make_topic(partitions=4)
    first = join("bereft-" + topic, topic)
    second = join("bereft-" + topic, topic)
    wait_until("both have two partitions", lambda: holds(first, second) and len(first.assigned) == 2)
    second.die()
    wait_until("the living one has everything", lambda: first.assigned == {0, 1, 2, 3})
    REFERENCE.run("produce", bootstrap, topic=topic, count=COUNT)
    wait_until("it reads every record", lambda: len(first.records) >= COUNT)


def test_a_group_goes_on_where_it_had_committed(client, join, bootstrap, make_topic):
    topic = make_topic(partitions=2)
    REFERENCE.run("produce", bootstrap, topic=topic, count=50)
    first = join("resumed-" + topic, topic)
    wait_until("the first run reads what there is", lambda: len(first.records) == 50)
    first.leave()
    REFERENCE.run("produce", bootstrap, topic=topic, count=30)
    second = join("resumed-" + topic, topic)
    wait_until("the second run reads what is new", lambda: len(second.records) >= 30)
    second.leave()
    assert len(second.records) == 30
    assert in_order(first.records + second.records) == in_order(
        REFERENCE.run("consume", bootstrap, topic=topic, count=80)["records"]
    )


def test_members_of_different_libraries_share_nothing_but_the_broker(bootstrap, make_topic):
    """Two groups, one topic: each group reads everything."""
    topic = make_topic(partitions=2)
    members = [client.join(bootstrap, f"own-{client.name}-{topic}", topic) for client in current_clients()]
    try:
        REFERENCE.run("produce", bootstrap, topic=topic, count=COUNT)
        for member in members:
            wait_until(f"{member.name} reads every record", lambda member=member: len(member.records) == COUNT)
    finally:
        for member in members:
            member.die()


def current_clients() -> list[Client]:
    return named("confluent-kafka", "kafka-python", "aiokafka")


def holds(first: Member, second: Member) -> bool:
    """Together they have all four partitions, and none twice."""
    return first.assigned | second.assigned == {0, 1, 2, 3} and not first.assigned & second.assigned
