"""Kafka's own tools for operators, against three brokers: partitions are moved, leaders elected, voters looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import Unavailable, classpath, run_tool

from zurau.testing import Cluster

PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        classpath()
    except Unavailable as missing:
        pytest.skip(str(missing))
    with Cluster(brokers=3) as cluster:
        yield cluster


def tool(name: str, cluster: Cluster, *arguments: str) -> str:
    outcome = run_tool(name, "--bootstrap-server", cluster.bootstrap, *arguments)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_partitions_are_reassigned_verified_and_cancelled(cluster, tmp_path: Path, mode):
    name = f"moved-{mode}"
    cluster.create_topic(name, partitions=2, replication_factor=1, replication_mode=mode)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    reassign = "reassign.ReassignPartitionsCommand"
    generated = tool(
        reassign, cluster, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3"
    )
    assert "Proposed partition reassignment configuration" in generated
    wanted = [{"topic": name, "partition": each, "replicas": [1 + each, 2 + each]} for each in range(2)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    arguments = ("--reassignment-json-file", str(plan))
    assert "Successfully started" in tool(reassign, cluster, "--execute", *arguments, "--throttle", "10000000")
    deadline = time.monotonic() + PATIENCE_S
    while "still in progress" in (told := tool(reassign, cluster, "--verify", *arguments)):
        assert time.monotonic() < deadline, told
    assert told.count("is completed") == 2, told
    assert "Clearing" in told
    described = tool("TopicCommand", cluster, "--describe", "--topic", name)
    assert "Replicas: 1,2" in described, described
    assert "Replicas: 2,3" in described, described
    assert "No partition reassignments found" in tool(reassign, cluster, "--list")


def test_the_preferred_leader_is_elected(cluster):
    cluster.create_topic("led", partitions=3, replication_factor=3)
    outcome = run_tool(
        "LeaderElectionCommand",
        *("--bootstrap-server", cluster.bootstrap, "--election-type", "preferred", "--all-topic-partitions"),
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_the_metadata_quorum_is_described(cluster):
    status = tool("MetadataQuorumCommand", cluster, "describe", "--status")
    assert "LeaderId" in status
    assert '"id": 3' in status, status
    replication = tool("MetadataQuorumCommand", cluster, "describe", "--replication")
    assert replication.count("Follower") == 2, replication


def test_a_vote_is_taken_and_given_back(cluster):
    replication = tool("MetadataQuorumCommand", cluster, "describe", "--replication").splitlines()
    follower = next(line.split() for line in replication if "Follower" in line)
    removed = tool(
        "MetadataQuorumCommand",
        cluster,
        *("remove-controller", "--controller-id", follower[0], "--controller-directory-id", follower[1]),
    )
    assert "Removed" in removed, removed


def test_the_cluster_its_features_and_its_disks_are_shown(cluster):
    assert "Cluster ID" in run_tool("ClusterTool", "cluster-id", "--bootstrap-server", cluster.bootstrap).stdout
    assert "metadata.version" in tool("FeatureCommand", cluster, "describe")
    shown = tool("LogDirsCommand", cluster, "--describe", "--broker-list", "1,2,3")
    assert shown.count('"broker":') == 3, shown


def test_a_broker_that_holds_replicas_is_not_unregistered(cluster):
    outcome = run_tool("ClusterTool", "unregister", "--bootstrap-server", cluster.bootstrap, "--id", "3")
    assert "replicas" in outcome.stdout + outcome.stderr
