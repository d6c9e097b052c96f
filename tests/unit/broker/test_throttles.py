"""Replicas that catch up take no more than operators allow; those that something waits for take what they need."""

from __future__ import annotations

import pytest
from test_reassignment import reassign, replicas_of, under_way
from three_brokers import Cluster

from zurau.broker.throttles import Throttle
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, ConfigOperation, ResourceType
from zurau.machines.controller.dynamic import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from zurau.simulation.world import VirtualClock
from zurau.wire.kafka.error_codes import ErrorCode

MODES = pytest.mark.parametrize("mode", ["quorum", "isr"])
SIDES = pytest.mark.parametrize(
    ("rate", "replicas"), [(LEADER_RATE, LEADER_REPLICAS), (FOLLOWER_RATE, FOLLOWER_REPLICAS)]
)
RECORDS, RECORD_BYTES = 60, 100_000
BYTES_A_SECOND = 100_000


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def configure(cluster: Cluster, kind: ResourceType, name: str, key: str, value: str | None) -> None:
    operation = ConfigOperation.SET if value is not None else ConfigOperation.DELETE
    node = cluster.nodes[1]
    node.wait(node.broker.controller.submit(AlterConfigs(kind, name, [ConfigEdit(key, operation, value)])))


def throttle(cluster: Cluster, rate: str, replicas: str, named: str) -> None:
    configure(cluster, ResourceType.TOPIC, "t", replicas, named)
    for broker in cluster.nodes:
        configure(cluster, ResourceType.BROKER, str(broker), rate, str(BYTES_A_SECOND))


def fill(cluster: Cluster) -> None:
    for _ in range(RECORDS):
        assert cluster.produce("t", b"x" * RECORD_BYTES) == ErrorCode.NONE


@MODES
@SIDES
@pytest.mark.parametrize("named", ["*", "0:1,0:2,0:3"])
def test_a_replica_that_catches_up_is_held_back_until_the_throttle_is_taken_away(cluster, mode, rate, replicas, named):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    fill(cluster)
    (before,) = replicas_of(cluster)
    throttle(cluster, rate, replicas, named)
    assert reassign(cluster, before % 3 + 1) == ErrorCode.NONE
    cluster.pass_time(20_000)
    assert under_way(cluster)
    for broker in cluster.nodes:
        configure(cluster, ResourceType.BROKER, str(broker), rate, None)
    cluster.pass_time(10_000)
    assert not under_way(cluster)
    assert cluster.read("t") == [b"x" * RECORD_BYTES] * RECORDS


@MODES
@SIDES
def test_a_throttled_replica_arrives_in_the_time_that_its_rate_takes(cluster, mode, rate, replicas):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    fill(cluster)
    (before,) = replicas_of(cluster)
    throttle(cluster, rate, replicas, "*")
    assert reassign(cluster, before % 3 + 1) == ErrorCode.NONE
    cluster.pass_time(2 * RECORDS * RECORD_BYTES // BYTES_A_SECOND * 1000)
    assert not under_way(cluster)


@SIDES
def test_replicas_that_are_not_named_are_not_held_back(cluster, rate, replicas):
    cluster.create("t", replication_factor=1)
    cluster.pass_time(1000)
    fill(cluster)
    (before,) = replicas_of(cluster)
    throttle(cluster, rate, replicas, "1:1,1:2,1:3,0:4")
    assert reassign(cluster, before % 3 + 1) == ErrorCode.NONE
    cluster.pass_time(10_000)
    assert not under_way(cluster)


@MODES
@SIDES
def test_replicas_that_acknowledgements_wait_for_are_not_held_back(cluster, mode, rate, replicas):
    cluster.create("t", replication_mode=mode, min_insync_replicas="2")
    cluster.pass_time(8000)
    throttle(cluster, rate, replicas, "*")
    began_ms = cluster.clock.monotonic_ms()
    fill(cluster)
    assert cluster.clock.monotonic_ms() - began_ms < RECORDS * RECORD_BYTES / BYTES_A_SECOND * 1000 / 4


def test_what_is_taken_too_much_is_waited_for_and_no_more_than_a_second_is_saved_up():
    clock = VirtualClock()
    throttle = Throttle(clock, LEADER_RATE, LEADER_REPLICAS)
    assert not throttle.is_exhausted()
    throttle.follow({LEADER_RATE: "100"}, {LEADER_RATE: "1"})
    clock.advance(60_000)
    assert not throttle.is_exhausted()
    throttle.take(250)
    clock.advance(1500)
    assert throttle.is_exhausted()
    clock.advance(1)
    assert not throttle.is_exhausted()
