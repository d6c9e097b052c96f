"""A cluster is upgraded one broker after the other while it is used, and its levels when all have been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.node.process import NotStarted
from zurau.testing import Cluster

PATIENCE_S = 240
OTHER_RELEASE = Path(__file__).parent / "other_release"
TOPIC = TopicPartition("kept", 0)


@contextmanager
def release(levels: str) -> Iterator[None]:
    """Brokers that are started meanwhile are of a release with other levels."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(OTHER_RELEASE))
        environment.setenv("OTHER_RELEASE", levels)
        yield


@pytest.fixture(scope="module")
def old() -> Iterator[Cluster]:
    """Three brokers of a release that knows the first level only."""
    with release("1-1"):
        cluster = Cluster(3).start()
    try:
        cluster.create_topic(TOPIC.topic)
        yield cluster
    finally:
        cluster.stop()


def features(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zurau", "cluster", "features", *words, "-b", cluster.bootstrap]
    return subprocess.run(
        [*command, "--timeout", "60"], capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ, check=False
    )


def levels(cluster: Cluster) -> tuple[int, int]:
    """The one that holds, and the highest that all support."""
    shown = features(cluster, "--format", "json")
    assert shown.returncode == 0, shown.stderr
    found = next(row for row in json.loads(shown.stdout) if row["feature"] == "zurau.version")
    return found["level"], found["highest"]


def write(cluster: Cluster, value: bytes) -> None:
    with ClusterClient(cluster.bootstrap) as client, Producer(client) as producer:
        producer.send(TOPIC.topic, value=value, partition=TOPIC.partition)


def read(cluster: Cluster, count: int) -> list[bytes | None]:
    with ClusterClient(cluster.bootstrap) as client, Consumer(client) as consumer:
        consumer.assign({TOPIC: 0})
        return [record.value for _, record in islice(consumer, count)]


def test_brokers_are_upgraded_one_by_one_and_then_the_levels(old):
    assert levels(old) == (1, 1)
    for broker in old.brokers:
        write(old, b"before %d" % broker)
        assert levels(old) == (1, 1)
        assert features(old, "--upgrade").returncode == 0  # there is nothing that all support
        old.restart(broker)
    assert levels(old) == (1, 2)
    raised = features(old, "--upgrade")
    assert raised.returncode == 0, raised.stderr
    assert levels(old) == (2, 2)
    write(old, b"after")
    assert read(old, 4) == [b"before 1", b"before 2", b"before 3", b"after"]
    old.shut_down(3)
    with (
        release("1-1"),
        pytest.raises(NotStarted, match=r"level 2 of zurau\.version, and this release supports level 1"),
    ):
        old.restart(3)
    old.restart(3)


def test_a_level_that_one_broker_does_not_support_is_refused(old):
    before, _ = levels(old)
    with release("1-3"):
        old.restart(1)
        old.restart(2)
    command = [sys.executable, "-c", RAISE, old.bootstrap]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "INVALID_UPDATE_VERSION" in refused.stderr, refused.stderr
    assert levels(old)[0] == before
    with release("1-3"):
        old.restart(3)
    assert features(old, "--upgrade").returncode == 0
    assert levels(old) == (3, 3)


RAISE = """
import sys
from zurau.client.cluster import Cluster
from zurau.client.features import Features
with Cluster(sys.argv[1]) as cluster:
    Features(cluster).upgrade({"zurau.version": 3})
"""
