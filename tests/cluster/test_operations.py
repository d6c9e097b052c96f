"""What operators do to a cluster of four while it is used: nothing is lost, and nobody who writes sees an error."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from zurau.chaos.history import History
from zurau.chaos.load import OurProducer, Pace
from zurau.client.admin import Admin
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets
from zurau.client.operations import Operations
from zurau.ids import TopicPartition
from zurau.testing import Cluster

PATIENCE_S = 240
PARTITIONS = 4
#: Each is somebody else: what it writes is written once.
PRODUCERS = itertools.count(1)
TOPICS = [TopicPartition(mode, index) for mode in ("quorum", "isr") for index in range(PARTITIONS)]


@pytest.fixture(scope="module")
def four() -> Iterator[Cluster]:
    with Cluster(4, leader_imbalance_check_interval_s=1, disk_low_bytes=0) as cluster:
        for mode in ("quorum", "isr"):
            cluster.create_topic(mode, partitions=PARTITIONS, replication_mode=mode)
        yield cluster


def run(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zurau", *words, "-b", cluster.bootstrap, "--timeout", "60"]
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False)


def wait_until(found: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, problem
        time.sleep(0.2)


@contextmanager
def load(cluster: Cluster) -> Iterator[History]:
    """Somebody writes to everything meanwhile; at the end all that was acknowledged is there."""
    history = History()
    producer = OurProducer(next(PRODUCERS), cluster.bootstrap, TOPICS, history, Pace(0.05))
    producer.start()
    wait_until(lambda: history.counts["acknowledged"] > 0, "nothing is written")
    try:
        yield history
        before = history.counts["acknowledged"]
        wait_until(lambda: history.counts["acknowledged"] > before, "nothing is written any more")
    finally:
        producer.stop()
    assert producer.failure is None
    with ClusterClient(cluster.bootstrap) as client, Consumer(client) as consumer:
        consumer.assign(dict.fromkeys(TOPICS, 0))
        ends = end_offsets(client, TOPICS)
        found: dict[TopicPartition, dict[int, bytes]] = {each: {} for each in TOPICS}
        while any(consumer.positions[each] < end for each, end in ends.items()):
            for name, records, _ in consumer.poll():
                found[name] |= {record.offset: bytes(record.value) for record in records}
    for name, records in found.items():
        history.found_all(name, records)
    assert [str(each) for each in history.violations] == []


def replicas(cluster: Cluster) -> dict[TopicPartition, set[int]]:
    with ClusterClient(cluster.bootstrap) as client:
        topics = Admin(client).describe_cluster().topics.values()
        return {
            TopicPartition(topic.name, each.index): set(each.replicas) for topic in topics for each in topic.partitions
        }


def registered(cluster: Cluster) -> set[int]:
    with ClusterClient(cluster.bootstrap) as client:
        return {each.broker_id for each in Operations(client).describe()}


def test_a_drained_broker_leads_nothing_and_what_it_led_is_written_on(four):
    with load(four):
        outcome = run(four, "cluster", "drain", "2")
        assert "leads nothing" in outcome.stdout, outcome.stderr
        assert run(four, "cluster", "drain", "2", "--undo").returncode == 0


def test_replicas_come_and_go_while_a_topic_is_written(four):
    with load(four):
        for factor in ("4", "3"):
            outcome = run(four, "topic", "alter", "quorum", "--replication-factor", factor)
            assert outcome.returncode == 0, outcome.stderr
    assert {len(held) for name, held in replicas(four).items() if name.topic == "quorum"} == {3}


def test_a_broker_is_decommissioned_and_a_new_one_takes_its_place(four):
    with load(four):
        outcome = run(four, "cluster", "decommission", "2", "--yes")
        assert "is forgotten" in outcome.stdout, outcome.stderr
    assert not [name for name, held in replicas(four).items() if 2 in held]
    assert 2 not in registered(four)
    with ClusterClient(four.bootstrap) as client:
        assert 2 not in Operations(client).voters()
    four.wipe(2)
    four.restart(2)
    wait_until(lambda: 2 in registered(four), "the new broker does not join")
    with load(four):
        outcome = run(four, "cluster", "rebalance", "--yes")
        assert outcome.returncode == 0, outcome.stderr
    assert [name for name, held in replicas(four).items() if 2 in held]


def test_a_dead_broker_is_told_by_health_and_replaced(four):
    four.kill(3)
    with load(four):
        wait_until(lambda: "broker-fenced" in run(four, "cluster", "health").stdout, "nobody tells that it is dead")
        told = json.loads(run(four, "cluster", "health", "-f", "json").stdout)
        fenced = next(each for each in told if each["kind"] == "broker-fenced")
        assert fenced["since"]
        assert "zurau cluster decommission 3" in fenced["advice"]
        outcome = run(four, "cluster", "decommission", "3", "--yes")
        assert "is forgotten" in outcome.stdout, outcome.stderr
    assert not [name for name, held in replicas(four).items() if 3 in held]
    assert 3 not in registered(four)
