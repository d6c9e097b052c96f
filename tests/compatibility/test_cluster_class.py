"""The cluster that users' tests start: real processes, and a network that can be cut."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.errors import ClientError
from zurau.client.producer import Producer
from zurau.errors import SettingsError
from zurau.testing import Cluster

PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, cuts_clients=True) as cluster:
        cluster.create_topic("t")
        yield cluster


@pytest.fixture(autouse=True)
def healed(cluster) -> Iterator[None]:
    yield
    cluster.heal()
    for broker in cluster.brokers:
        cluster.resume(broker)
        if cluster.pid_of(broker) is None:
            cluster.restart(broker)


def write(cluster: Cluster, value: bytes) -> None:
    bootstrap = cluster.address_of(cluster.leader_of("t"))
    with ClusterClient(bootstrap, timeout_s=PATIENCE_S) as client, Producer(client) as producer:
        producer.send("t", value)


def wait_for_another_leader(cluster: Cluster, than: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while cluster.leader_of("t") == than:
        assert time.monotonic() < until, "nobody else leads"


@pytest.mark.parametrize("harm", [Cluster.kill, Cluster.pause, Cluster.isolate, Cluster.shut_down])
def test_another_broker_leads_when_something_happens_to_the_leader(cluster, harm):
    leader = cluster.leader_of("t")
    harm(cluster, leader)
    wait_for_another_leader(cluster, leader)
    write(cluster, b"a")


def test_a_broker_comes_back_at_its_address_and_with_its_data(cluster):
    broker = cluster.leader_of("t")
    address, identity = cluster.address_of(broker), cluster.directory_of(broker) / "meta.properties"
    before = identity.read_text()
    cluster.kill(broker)
    cluster.restart(broker)
    assert (cluster.address_of(broker), identity.read_text()) == (address, before)


def test_clients_do_not_reach_a_broker_that_they_are_cut_off_from(cluster):
    cluster.cut_clients(1)
    with pytest.raises(ClientError), ClusterClient(cluster.address_of(1), timeout_s=0.5) as client:
        client.refresh()


def test_a_broker_that_does_not_exist_is_named(cluster):
    with pytest.raises(ValueError, match="there is no broker 7; this cluster has 1, 2, 3"):
        cluster.kill(7)


def test_a_wrong_setting_is_noticed_where_it_is_written():
    with pytest.raises(SettingsError, match="did you mean"):
        Cluster(brokers=3, retention_mss=5)
