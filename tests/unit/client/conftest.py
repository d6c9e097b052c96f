"""A broker for the client's tests, a way to it, and topics of one's own.

With ZURAU_TEST_BOOTSTRAP=HOST:PORT the tests use a broker that runs already: they hold for Apache Kafka too.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.testing import Broker


@dataclass(frozen=True)
class RunningBroker:
    bootstrap: str


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker | RunningBroker]:
    running = os.environ.get("ZURAU_TEST_BOOTSTRAP")
    if running:
        yield RunningBroker(running)
        return
    with Broker(initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def cluster(broker: Broker | RunningBroker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap, timeout_s=10) as cluster:
        yield cluster


@pytest.fixture
def unique() -> Callable[[str], str]:
    """A name that no other test uses."""
    return lambda word: f"{word}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(cluster: Cluster, unique: Callable[[str], str]) -> str:
    """A topic with three partitions. It forgets nothing: some tests write with timestamps of 1970."""
    topic = NewTopic(unique("topic"), partition_count=3, settings={"retention.ms": "-1"})
    return Admin(cluster).create_topic(topic).name
