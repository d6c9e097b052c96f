"""`zurau topic`, as a process."""

from __future__ import annotations

import csv
import json


def test_a_new_topic_is_listed_in_every_format(zurau, unique):
    name = unique("listed")
    assert zurau("topic", "create", name, "--partitions", "3").stdout.splitlines()[1].split() == [name, "3", "1"]
    assert [name, "3", "1"] in [line.split() for line in zurau("topic", "list").stdout.splitlines()]
    rows = json.loads(zurau("topic", "list", "--format", "json").stdout)
    assert {"topic": name, "partitions": 3, "replicas": 1} in rows
    table = list(csv.DictReader(zurau("topic", "list", "-f", "csv").stdout.splitlines()))
    assert {"topic": name, "partitions": "3", "replicas": "1"} in table


def test_describing_shows_partitions_and_own_settings(zurau, unique):
    name = unique("described")
    zurau("topic", "create", name, "--config", "retention.ms=1000")
    described = json.loads(zurau("topic", "describe", name, "--format", "json").stdout)
    assert described["topic"] == name
    assert described["settings"] == {"retention.ms": "1000"}
    assert [(row["partition"], row["start_offset"], row["end_offset"]) for row in described["partitions"]] == [
        (0, 0, 0)
    ]


def test_settings_are_changed_and_taken_back(zurau, topic):
    changed = zurau("topic", "config", topic, "--set", "retention.ms=5000", "--format", "json").stdout
    assert {"setting": "retention.ms", "value": "5000", "source": "topic"} in json.loads(changed)
    back = zurau("topic", "config", topic, "--unset", "retention.ms", "--format", "json").stdout
    assert [row["source"] for row in json.loads(back) if row["setting"] == "retention.ms"] == ["default"]


def test_a_topic_is_removed_when_told_twice(zurau, topic):
    refused = zurau("topic", "delete", topic)
    assert refused.returncode == 1
    assert "pass --yes" in refused.stderr
    assert zurau("topic", "delete", topic, "--yes").stderr == f"removed {topic}\n"
    assert topic not in zurau("topic", "list").stdout


def test_partitions_are_added(zurau, topic):
    grown = zurau("topic", "add-partitions", topic, "5", "--format", "json")
    assert json.loads(grown.stdout)[0]["partitions"] == 5


def test_records_are_purged_up_to_an_offset(zurau, topic):
    zurau("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    purged = zurau("topic", "purge", topic, "--partition", "0", "--before-offset", "2", "--yes", "--format", "json")
    assert json.loads(purged.stdout) == [{"partition": 0, "start_offset": 2}]


def test_an_existing_topic_is_an_error_unless_told_otherwise(zurau, topic):
    refused = zurau("topic", "create", topic)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"zurau: creating topic '{topic}'")
    assert refused.stderr.count("\n") == 1
    assert zurau("topic", "create", topic, "--if-not-exists").returncode == 0


def test_a_malformed_setting_is_wrong_usage(zurau, unique):
    wrong = zurau("topic", "create", unique("t"), "--config", "retention.ms")
    assert wrong.returncode == 2
    assert "'retention.ms' is not NAME=VALUE" in wrong.stderr


def test_the_cluster_is_described(zurau, broker, topic):
    described = json.loads(zurau("cluster", "--format", "json").stdout)
    assert [row["port"] for row in described["brokers"]] == [broker.port]
    assert described["without_leader"] == 0
    assert zurau("cluster").stdout.startswith(f"cluster {described['cluster_id']}: ")


def test_a_bad_name_is_explained_once(zurau):
    refused = zurau("topic", "create", "a b")
    assert refused.returncode == 1
    assert refused.stderr.count("letters, digits") == 1


def test_an_offset_outside_of_the_log_is_explained_once(zurau, topic):
    failed = zurau("consume", topic, "--partition", "0", "--from-offset", "99")
    assert failed.stderr == (
        f"zurau: reading {topic}-0 from offset 99: The log does not hold this offset [OFFSET_OUT_OF_RANGE];"
        " see `zurau topic describe` for what it holds\n"
    )


def test_too_many_replicas_are_explained_once(zurau, unique):
    refused = zurau("topic", "create", unique("topic"), "--replicas", "3").stderr
    assert "replication factor 3 needs 3 brokers and this cluster has 1; use 1 or less [" in refused
    assert refused.count("use ") == 1


def test_removing_what_is_not_there_points_to_the_list(zurau):
    refused = zurau("topic", "delete", "nope", "--yes")
    assert (refused.returncode, refused.stderr) == (1, "zurau: there is no topic 'nope'; see `zurau topic list`\n")
