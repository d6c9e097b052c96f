"""Finding the way: addresses, metadata, leaders, coordinators."""

from __future__ import annotations

import socket
import threading

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster, parse_addresses
from zurau.client.errors import BrokerUnreachable, ClientError, UnknownTopic
from zurau.errors import SettingsError
from zurau.ids import Address, TopicPartition
from zurau.testing import Broker


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("kafka:9093", [Address("kafka", 9093)]),
        ("kafka", [Address("kafka", 9092)]),
        ("a:1, b:2", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_addresses_are_host_and_port(text, addresses):
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize("text", ["", ":9092", "kafka:", "kafka:port", "kafka:0", "kafka:70000", "a,,b"])
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(SettingsError, match=r"for example 127\.0\.0\.1:9092"):
        parse_addresses(text)


def test_without_a_broker_the_error_says_how_to_start_one():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BrokerUnreachable, match=f"no broker at 127.0.0.1:{port} .*`zurau serve`"):
        Cluster(f"127.0.0.1:{port}", timeout_s=0.1).refresh()


def test_a_broker_that_is_starting_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    broker = Broker(kafka=f"127.0.0.1:{port}")
    starting = threading.Thread(target=broker.start)
    starting.start()
    with Cluster(f"127.0.0.1:{port}") as cluster:
        cluster.refresh()
        assert [known.address.port for known in cluster.metadata.brokers.values()] == [port]
    starting.join()
    broker.stop()


def test_one_address_that_answers_is_enough(broker):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    with Cluster(f"127.0.0.1:{closed},{broker.bootstrap}") as cluster:
        cluster.refresh()
        assert cluster.metadata.brokers


def test_an_unknown_topic_is_not_waited_for(cluster):
    with pytest.raises(UnknownTopic, match="`zurau topic create NAME`"):
        cluster.retry(lambda: cluster.topic("nowhere"))


def test_a_topic_is_made_when_that_is_wanted(cluster, unique):
    name = unique("made")
    assert cluster.retry(lambda: cluster.topic(name, may_create=True)).name == name


def test_a_partition_that_does_not_exist_is_named(cluster, topic):
    with pytest.raises(ClientError, match="has no partition 7; it has 3, from 0 to 2"):
        cluster.leader_of(TopicPartition(topic, 7))


def test_partitions_are_sorted_by_their_leaders(cluster, topic):
    partitions = cluster.partitions_of(topic)
    (leader,) = cluster.metadata.brokers
    assert cluster.by_leader(partitions) == {leader: partitions}


def test_a_deleted_topic_is_forgotten(cluster, topic):
    assert cluster.topic(topic).name == topic
    Admin(cluster).delete_topic(topic)
    with pytest.raises(UnknownTopic):
        cluster.topic(topic)


def test_a_group_has_a_coordinator(cluster, unique):
    assert cluster.retry(lambda: cluster.coordinator_of(unique("group"))) in cluster.metadata.brokers


def test_a_dead_connection_is_replaced(cluster):
    cluster.any_connection().close()
    cluster.refresh()
    assert cluster.metadata.brokers


def test_partitions_that_were_added_meanwhile_are_found(broker, cluster):
    topic = Admin(cluster).create_topic(NewTopic("grows", 1)).name
    assert cluster.leader_of(TopicPartition(topic, 0)) == 1
    with Cluster(broker.bootstrap) as another:
        Admin(another).add_partitions(topic, 2)
    assert cluster.leader_of(TopicPartition(topic, 1)) == 1
