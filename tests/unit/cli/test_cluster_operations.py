"""What operators do, on three real brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from zurau.client.admin import Admin
from zurau.client.cluster import Cluster as Client
from zurau.testing import Cluster


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(brokers=3, leader_imbalance_check_interval_s=1, disk_low_bytes=0) as cluster:
        yield cluster


@pytest.fixture
def run(zurau, three):
    return lambda *words: zurau(*words, "-b", three.bootstrap)


def replicas_of(three: Cluster, topic: str) -> list[int]:
    with Client(three.bootstrap) as client:
        return sorted(Admin(client).describe_topic(topic).partitions[0].replicas)


def test_the_status_shows_who_is_there_and_who_votes(run):
    shown = json.loads(run("cluster", "status", "-f", "json").stdout)
    assert [(each["broker"], each["state"], each["votes"]) for each in shown["brokers"]] == [
        (1, "there", True),
        (2, "there", True),
        (3, "there", True),
    ]


def test_a_drained_broker_leads_nothing_until_that_is_undone(run, three):
    three.create_topic("drained", partitions=3)
    outcome = run("cluster", "drain", "2")
    assert "leads nothing" in outcome.stdout, outcome.stderr
    assert 2 not in {three.leader_of("drained", index) for index in range(3)}
    assert "may lead again" in run("cluster", "drain", "2", "--undo").stdout


def test_a_topic_gets_more_and_fewer_replicas(run, three):
    three.create_topic("grown", replication_factor=1)
    grown = run("topic", "alter", "grown", "--replication-factor", "3")
    assert grown.returncode == 0, grown.stderr
    assert replicas_of(three, "grown") == [1, 2, 3]
    assert run("topic", "alter", "grown", "--replication-factor", "1").returncode == 0
    assert len(replicas_of(three, "grown")) == 1
    assert "there are 3" in run("topic", "alter", "grown", "--replication-factor", "4").stderr


def test_a_plan_can_be_looked_at_before_it_is_carried_out(run):
    assert run("cluster", "rebalance", "--dry-run").returncode == 0
    assert run("cluster", "rebalance", "--yes").returncode == 0


def test_a_broker_that_is_needed_cannot_be_decommissioned(run, three):
    three.create_topic("needs-three")
    refused = run("cluster", "decommission", "3", "--yes")
    assert refused.returncode == 1
    assert "too few brokers" in refused.stderr


def test_who_was_seen_last_is_told_by_all_brokers_together_and_survives_a_restart(run, three, zurau):
    three.create_topic("watched")
    zurau("produce", "watched", "-b", three.bootstrap, stdin="a\n")

    def seen() -> set[tuple[str, str]]:
        outcome = run("cluster", "seen", "-f", "json")
        assert outcome.returncode == 0, outcome.stderr
        return {(each["kind"], each["name"]) for each in json.loads(outcome.stdout)}

    before = seen()
    assert {("broker", "1"), ("broker", "2"), ("broker", "3")} <= before
    assert [name for kind, name in before if kind == "producer"]
    for broker in three.brokers:
        three.restart(broker)
    assert before <= seen()
