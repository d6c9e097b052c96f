"""What operators do, on three real brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from zurau.client.admin import Admin
from zurau.client.cluster import Cluster as Client
from zurau.client.operations import THROTTLED_RATES, THROTTLED_REPLICAS, Operations
from zurau.ids import BrokerId
from zurau.settings import INT64_MAX
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
        (1, "active", True),
        (2, "active", True),
        (3, "active", True),
    ]


def test_a_drained_broker_leads_nothing_until_that_is_undone(run, three):
    three.create_topic("drained", partitions=3)
    outcome = run("cluster", "drain", "2")
    assert "leads nothing" in outcome.stdout, outcome.stderr
    assert 2 not in {three.leader_of("drained", index) for index in range(3)}
    assert "may lead again" in run("cluster", "drain", "2", "--undo").stdout


def test_a_broker_that_nobody_can_relieve_is_not_said_to_be_drained(run, three):
    three.create_topic("single", replication_factor=1)
    broker = three.leader_of("single")
    refused = run("cluster", "drain", str(broker))
    assert refused.returncode == 1
    assert "single-0" in refused.stderr
    assert run("cluster", "drain", str(broker), "--undo").returncode == 0
    run("topic", "delete", "single", "--yes")


def test_a_broker_that_there_is_not_is_answered_with_those_there_are(run):
    refused = run("cluster", "drain", "9")
    assert "no broker '9', but 1, 2, 3" in refused.stderr


def test_a_topic_gets_more_and_fewer_replicas(run, three):
    three.create_topic("grown", replication_factor=1)
    grown = run("topic", "alter", "grown", "--replication-factor", "3")
    assert grown.returncode == 0, grown.stderr
    assert replicas_of(three, "grown") == [1, 2, 3]
    assert run("topic", "alter", "grown", "--replication-factor", "1").returncode == 0
    assert len(replicas_of(three, "grown")) == 1
    assert "there are 3" in run("topic", "alter", "grown", "--replication-factor", "4").stderr


def test_what_bounds_a_move_is_taken_away_when_it_is_done(run, three):
    three.create_topic("bounded", replication_factor=1)
    with Client(three.bootstrap) as client:
        before = Admin(client).topic_settings("bounded")
        moved = run("topic", "alter", "bounded", "--replication-factor", "3", "--throttle", "1000000")
        assert moved.returncode == 0, moved.stderr
        assert replicas_of(three, "bounded") == [1, 2, 3]
        assert Admin(client).topic_settings("bounded") == before
        rates = Admin(client).broker_settings(BrokerId(1), list(THROTTLED_RATES))
        assert {each.value for each in rates} == {str(INT64_MAX)}


def test_what_catches_up_is_bounded_at_every_broker(three):
    three.create_topic("slow")
    with Client(three.bootstrap) as client:
        Operations(client).throttle(["slow"], 1_000_000)
        rates = Admin(client).broker_settings(BrokerId(2), list(THROTTLED_RATES))
        assert {each.name: each.value for each in rates} == dict.fromkeys(THROTTLED_RATES, "1000000")
        values = {each.name: each.value for each in Admin(client).topic_settings("slow")}
        assert [values[each] for each in THROTTLED_REPLICAS] == ["*", "*"]
        Operations(client).throttle(["slow"], None)


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
