"""Two of three brokers are gone with their disks: the third goes on alone, and is joined by two empty ones."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from zurau.client.admin import Admin
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets
from zurau.client.operations import Operations
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Cluster

PATIENCE_S = 240
PARTITIONS = 2
COUNT = 200
QUORUM, ISR = ([TopicPartition(mode, index) for index in range(PARTITIONS)] for mode in ("quorum", "isr"))


def wait_until(found: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, problem
        time.sleep(0.2)


def write(cluster: Cluster, topics: list[TopicPartition], first: int, count: int) -> None:
    with ClusterClient(cluster.bootstrap, timeout_s=60) as client, Producer(client) as producer:
        for number in range(first, first + count):
            for name in topics:
                producer.send(name.topic, b"%d" % number, partition=name.partition)


def read_all(cluster: Cluster, topics: list[TopicPartition]) -> dict[TopicPartition, list[bytes]]:
    found: dict[TopicPartition, list[bytes]] = {name: [] for name in topics}
    with ClusterClient(cluster.bootstrap, timeout_s=60) as client, Consumer(client) as consumer:
        consumer.assign(dict.fromkeys(topics, 0))
        ends = end_offsets(client, topics)
        while any(consumer.positions[each] < end for each, end in ends.items()):
            for name, records, _ in consumer.poll():
                found[name] += [bytes(record.value) for record in records]
    return found


def is_whole(cluster: Cluster) -> bool:
    with ClusterClient(cluster.bootstrap) as client:
        topics = Admin(client).describe_cluster().topics.values()
        return all(len(each.in_sync) == 3 for topic in topics for each in topic.partitions)


def has_everything(cluster: Cluster) -> bool:
    """Whether all brokers have written the same: brokers may not have told each other yet how far they are."""

    def written(broker: int) -> list[int]:
        directories = [cluster.directory_of(broker) / str(name) for name in QUORUM + ISR]
        return [sum(path.stat().st_size for path in each.glob("*.log")) for each in directories]

    return written(1) == written(2) == written(3)


def recover(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zurau", "cluster", "recover", str(cluster.directory_of(3)), "--gone", "1,2"]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.fixture
def three():
    with Cluster(3, disk_low_bytes=0, flush="fsync") as cluster:
        for mode in ("quorum", "isr"):
            cluster.create_topic(mode, partitions=PARTITIONS, replication_mode=mode)
        yield cluster


def test_the_last_broker_goes_on_alone_and_two_empty_ones_join_it(three):
    write(three, QUORUM + ISR, 0, COUNT)
    wait_until(lambda: is_whole(three) and has_everything(three), "not everything has three replicas")
    running = recover(three)
    assert "stop it first" in running.stderr, running.stderr
    for broker in (1, 2):
        three.wipe(broker)
    three.kill(3)
    shown = recover(three)
    assert "nothing is changed yet" in shown.stderr, shown.stderr
    assert "__cluster_metadata-0" in shown.stdout
    done = recover(three, "--execute", "--yes")
    assert done.returncode == 0, done.stderr
    again = recover(three, "--execute", "--yes")
    assert "have a majority without 1,2" in again.stderr, again.stderr
    three.restart(3)
    assert read_all(three, QUORUM) == dict.fromkeys(QUORUM, numbers(COUNT))
    write(three, QUORUM, COUNT, 10)
    three.start_again(1)
    three.start_again(2)
    three.wait_until_ready(1, 2)
    wait_until(lambda: is_whole(three), "the empty ones are not filled")
    with ClusterClient(three.bootstrap) as client:
        wait_until(lambda: Operations(client).voters() == {1, 2, 3}, "they do not vote")
    assert read_all(three, ISR) == dict.fromkeys(ISR, numbers(COUNT))
    write(three, ISR, COUNT, 10)
    write(three, QUORUM + ISR, COUNT + 10, 10)
    assert read_all(three, QUORUM + ISR) == dict.fromkeys(QUORUM + ISR, numbers(COUNT + 20))
