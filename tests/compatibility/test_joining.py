"""Real brokers that join each other: later, with an empty disk, at another address, and one that was alone."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broker_process import ZurauBroker

from zurau.chaos.history import History
from zurau.chaos.load import GroupMember, OurProducer, Pace
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster as ClusterClient
from zurau.ids import TopicPartition
from zurau.testing.network import ReservedPort

PATIENCE_S = 60
FEW = {"offsets_topic_num_partitions": 2, "flush": "os"}


class Machines:
    """Brokers by name, all with the same list."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.ports: list[ReservedPort] = []
        self.brokers: list[ZurauBroker] = []
        self._pool = ThreadPoolExecutor(8)

    def address(self) -> str:
        self.ports.append(ReservedPort())
        return self.ports[-1].address

    def broker(self, name: str, **settings: object) -> ZurauBroker:
        made = ZurauBroker(self._root / name, **FEW, **settings)
        self.brokers.append(made)
        return made

    def start(self, *brokers: ZurauBroker) -> None:
        """Together: none may be ready before all are there."""
        list(self._pool.map(ZurauBroker.start, brokers))

    def close(self) -> None:
        for broker in self.brokers:
            broker.stop()
        for port in self.ports:
            port.close()
        self._pool.shutdown()


@pytest.fixture
def machines(tmp_path) -> Iterator[Machines]:
    machines = Machines(tmp_path)
    yield machines
    machines.close()


def known(broker: ZurauBroker) -> dict[int, str]:
    with ClusterClient(broker.bootstrap) as client:
        client.refresh(())
        return {each.broker_id: str(each.address) for each in client.metadata.brokers.values()}


def wait_until_known(broker: ZurauBroker, *expected: ZurauBroker) -> dict[int, str]:
    until = time.monotonic() + PATIENCE_S
    while sorted((found := known(broker)).values()) != sorted(each.bootstrap for each in expected):
        assert time.monotonic() < until, f"it knows {found}"
    return found


def identity(broker: ZurauBroker) -> dict[str, str]:
    lines = (broker.directory / "data" / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_brokers_form_a_cluster_take_in_others_and_those_that_lost_their_disk_or_moved(machines):
    addresses = [machines.address() for _ in range(3)]
    join = ",".join(addresses)
    first, second, third = (
        machines.broker(f"b{number}", peer=address, join=join) for number, address in enumerate(addresses)
    )
    machines.start(first, second, third)
    late = machines.broker("late", peer=machines.address(), join=addresses[1])
    late.start()
    wait_until_known(late, first, second, third, late)
    before = identity(third)
    third.kill()
    shutil.rmtree(third.directory / "data")
    third.start()
    assert identity(third)["node.id"] == before["node.id"]
    assert identity(third)["directory.id"] != before["directory.id"]
    wait_until_known(first, first, second, third, late)
    first.stop()
    moved = machines.broker("b0", peer=machines.address(), join=join)
    moved.start()
    wait_until_known(late, moved, second, third, late)


def test_a_broker_that_was_alone_takes_others_in_and_keeps_its_data(machines):
    alone = machines.broker("alone")
    alone.start()
    with ClusterClient(alone.bootstrap) as client:
        client.topic("kept", may_create=True)
    alone.stop()
    address = machines.address()
    founder = machines.broker("alone", peer=address)
    founder.start()
    cluster_id = identity(founder)["cluster.id"]
    others = [machines.broker(f"o{number}", peer=machines.address(), join=address) for number in range(2)]
    machines.start(*others)
    wait_until_known(others[1], founder, *others)
    assert {identity(other)["cluster.id"] for other in others} == {cluster_id}
    with ClusterClient(others[0].bootstrap) as client:
        assert client.topic("kept").partitions
    founder.kill()
    founder.start()
    wait_until_known(founder, founder, *others)


def test_the_groups_of_a_broker_that_was_alone_get_more_replicas_as_brokers_come_and_go_on_meanwhile(machines):
    addresses = [machines.address() for _ in range(3)]
    first, *others = (
        machines.broker(f"b{number}", peer=address, join="" if number == 0 else addresses[0])
        for number, address in enumerate(addresses)
    )
    first.start()
    with ClusterClient(first.bootstrap) as client:
        Admin(client).create_topic(NewTopic("t", 1, 1))
    history = History()
    producer = OurProducer(1, first.bootstrap, [TopicPartition("t", 0)], history, Pace(0.05))
    member = GroupMember(1, first.bootstrap, "t", history)
    producer.start()
    member.start()
    machines.start(*others)
    until = time.monotonic() + PATIENCE_S

    def factors() -> set[int]:
        with ClusterClient(first.bootstrap) as client:
            offsets = Admin(client).describe_topic("__consumer_offsets")
            return {len(partition.replicas) for partition in offsets.partitions if not partition.replicas[3:]}

    while factors() != {3}:
        assert time.monotonic() < until, f"replicas: {factors()}"
    before = history.counts["read"]
    while history.counts["read"] < before + 20:
        assert time.monotonic() < until, "the group does not go on"
        assert member.failure is None
    producer.stop()
    member.stop()
    assert (producer.failure, member.failure) == (None, None)
    assert [str(violation) for violation in history.violations] == []
