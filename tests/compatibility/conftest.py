"""What the tests of this folder talk to: a real `zurau serve`, and a real Apache Kafka beside it.

`ZURAU_AGAINST=apache-kafka` points the tests of clients at Apache Kafka instead: they hold there as well, so they say
what Kafka does and not what we happen to do. `ZURAU_AGAINST=cluster` points them at three brokers, where every topic
has three replicas.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Tests and benches import the harnesses by their plain names.
sys.path.insert(0, str(Path(__file__).parent))

from apache_kafka import ApacheKafka, Unavailable, classpath
from broker_process import ZurauBroker
from driver import CLIENTS, Client, Member, available

from zurau.testing import Cluster

AGAINST = os.environ.get("ZURAU_AGAINST", "")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka_classpath() -> str:
    """For tests that run Kafka's own tools; skips where they cannot run."""
    try:
        return classpath()
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def apache_kafka(kafka_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A running Apache Kafka broker."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker that clients are tested against: one for the whole run."""
    if AGAINST == "apache-kafka":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    if AGAINST == "cluster":
        with Cluster(brokers=3, default_replication_factor=3) as cluster:
            yield cluster.address_of(1)  # some clients take one address
        return
    with ZurauBroker(tmp_path_factory.mktemp("zurau")) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def brokers() -> int:
    """How many there are at `bootstrap`."""
    return 3 if AGAINST == "cluster" else 1


@pytest.fixture
def make_topic(bootstrap: str) -> Callable[..., str]:
    """Makes a topic that no other test uses, and returns its name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})

    def make(partitions: int = 1, **config: str) -> str:
        name = f"topic-{os.getpid()}-{next(_numbers)}"
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        admin.create_topics([topic])[name].result(timeout=30)
        return name

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn; one that cannot be had on this machine is skipped with the reason."""
    return available(request.param)


@pytest.fixture
def join(client: Client, bootstrap: str) -> Iterator[Callable[..., Member]]:
    """Starts members of a group; those still running at the end of the test are ended."""
    members: list[Member] = []

    def start(group: str, topic: str, **options: object) -> Member:
        members.append(client.join(bootstrap, group, topic, **options))
        return members[-1]

    yield start
    for member in members:
        member.die()
