"""The cases by which every primary-backup design is judged: one and two producers and consumers, on one and on three
brokers; a follower fails, the leader fails, all fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from zurau.chaos.history import History
from zurau.chaos.load import GroupMember, OurProducer, Pace
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.errors import ClientError
from zurau.client.offsets import end_offsets
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition
from zurau.testing import Cluster

PATIENCE_S = 60


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    with Cluster(1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


def write(client: ClusterClient, topic: str, *values: bytes) -> None:
    with Producer(client, ProducerSettings(linger_s=0, delivery_timeout_s=PATIENCE_S)) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def read(client: ClusterClient, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    found: list[bytes] = []
    with Consumer(client) as consumer:
        consumer.assign({partition: 0})
        (end,) = end_offsets(client, [partition]).values()
        while consumer.positions[partition] < end:
            for _, records, _ in consumer.poll():
                found += [bytes(record.value) for record in records]
    return found


@pytest.mark.parametrize("clients", [1, 2])
@pytest.mark.parametrize("brokers", ["one", "three"])
def test_producers_and_consumers_together_lose_and_double_nothing(request, brokers, clients):
    cluster = request.getfixturevalue(brokers)
    topic = f"together-{clients}"
    cluster.create_topic(topic, partitions=2)
    partitions = [TopicPartition(topic, index) for index in range(2)]
    history = History()
    producers = [OurProducer(each, cluster.bootstrap, partitions, history, Pace(0.01)) for each in range(clients)]
    consumers = [GroupMember(each, cluster.bootstrap, topic, history) for each in range(clients)]
    for client in (*producers, *consumers):
        client.start()
    while history.counts["acknowledged"] < 200 or history.counts["read"] < 100:
        producers[0].join(0.05)
        assert not any(client.failure for client in (*producers, *consumers))
    for client in (*producers, *consumers):
        client.stop()
    with ClusterClient(cluster.bootstrap) as client, Consumer(client) as consumer:
        consumer.assign(dict.fromkeys(partitions, 0))
        found: dict[TopicPartition, dict[int, bytes]] = {partition: {} for partition in partitions}
        ends = end_offsets(client, partitions)
        while any(consumer.positions[each] < end for each, end in ends.items()):
            for partition, records, _ in consumer.poll():
                found[partition] |= {record.offset: bytes(record.value) for record in records}
    for partition, records in found.items():
        history.found_all(partition, records)
    assert [str(violation) for violation in history.violations] == []


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_a_follower_fails_and_nobody_notices(three, mode):
    topic = f"follower-{mode}"
    three.create_topic(topic, replication_mode=mode)
    with ClusterClient(three.bootstrap) as client:
        write(client, topic, b"before")
        leader = three.leader_of(topic)
        follower = next(broker for broker in three.brokers if broker != leader)
        three.kill(follower)
        write(client, topic, b"during")
        three.restart(follower)
        write(client, topic, b"after")
        assert read(client, topic) == [b"before", b"during", b"after"]


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_the_leader_fails_and_another_takes_over(three, mode):
    topic = f"leader-{mode}"
    three.create_topic(topic, replication_mode=mode)
    with ClusterClient(three.bootstrap) as client:
        write(client, topic, b"before")
        leader = three.leader_of(topic)
        three.kill(leader)
        write(client, topic, b"during")
        assert three.leader_of(topic) != leader
        assert read(client, topic) == [b"before", b"during"]
        three.restart(leader)


def test_all_fail_clients_are_told_so_and_recover(three):
    three.create_topic("all")
    with ExitStack() as opened:
        client = opened.enter_context(ClusterClient(three.bootstrap))
        write(client, "all", b"before")
        for broker in three.brokers:
            three.kill(broker)
        with pytest.raises(ClientError, match=r"no broker at|cannot connect|lost the connection"):
            ClusterClient(three.bootstrap, timeout_s=0.5).refresh()
        for broker in three.brokers:
            three.start_again(broker)
        three.wait_until_ready()
        write(client, "all", b"after")
        assert read(client, "all") == [b"before", b"after"]
