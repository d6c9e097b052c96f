"""The command line and the client speak only the wire, so everything they do works with Apache Kafka too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from apache_kafka import run_tool

# One Apache Kafka is enough, however many workers run the tests.
pytestmark = pytest.mark.xdist_group("apache-kafka")

CLIENT_TESTS = Path(__file__).parents[1] / "unit" / "client"
ALL = ("--from-beginning", "--until-end")


@pytest.fixture
def zurau(apache_kafka):
    environment = os.environ | {"ZURAU_BOOTSTRAP": apache_kafka.bootstrap}

    def run(*arguments: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", "zurau", *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environment, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def topic(zurau):
    name = f"topic-{uuid.uuid4().hex[:8]}"
    zurau("topic", "create", name, "--partitions", "2", "--config", "retention.ms=3600000")
    return name


def test_topics_are_made_described_and_removed(zurau, topic):
    described = json.loads(zurau("topic", "describe", topic, "--format", "json"))
    assert len(described["partitions"]) == 2
    assert described["settings"]["retention.ms"] == "3600000"
    zurau("topic", "delete", topic, "--yes")
    assert topic not in zurau("topic", "list")


def test_settings_of_a_topic_are_changed(zurau, topic):
    rows = json.loads(zurau("topic", "config", topic, "--set", "max.message.bytes=5000", "--format", "json"))
    assert {"setting": "max.message.bytes", "value": "5000", "source": "topic"} in rows


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(zurau, topic, codec):
    lines = "".join(f"key{number % 7}:value {number}\n" for number in range(500))
    zurau("produce", topic, "--key-separator", ":", "--compression", codec, stdin=lines)
    read = zurau("consume", topic, *ALL, "--template", r"{key}:{value}\n")
    assert sorted(read.splitlines()) == sorted(lines.splitlines())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_kafkas_own_producer_packs_is_unpacked(zurau, apache_kafka, topic, codec):
    lines = "".join(f"value {number}\n" for number in range(100))
    produced = run_tool(
        "ConsoleProducer",
        *("--bootstrap-server", apache_kafka.bootstrap, "--topic", topic, "--compression-codec", codec),
        stdin=lines,
    )
    assert produced.returncode == 0, produced.stderr
    assert sorted(zurau("consume", topic, *ALL).splitlines()) == sorted(lines.splitlines())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_we_pack_is_unpacked_by_kafkas_own_consumer(zurau, apache_kafka, topic, codec):
    lines = "".join(f"value {number}\n" for number in range(100))
    zurau("produce", topic, "--compression", codec, stdin=lines)
    consumed = run_tool(
        "ConsoleConsumer",
        *("--bootstrap-server", apache_kafka.bootstrap, "--topic", topic, "--from-beginning", "--max-messages", "100"),
    )
    assert sorted(consumed.stdout.splitlines()) == sorted(lines.splitlines())


def test_a_group_is_joined_left_described_and_reset(zurau, apache_kafka, topic):
    zurau("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    group = f"group-{topic}"
    assert zurau("consume", topic, "--group", group, "--from-beginning", "--max", "2") == "a\nb\n"
    (row, *_) = json.loads(zurau("group", "describe", group, "--format", "json"))["partitions"]
    assert (row["offset"], row["end_offset"], row["lag"]) == (2, 3, 1)
    zurau("group", "reset", group, "--to-earliest", "--yes")
    assert zurau("consume", topic, "--group", group, "--max", "3") == "a\nb\nc\n"
    seen = run_tool(
        "ConsumerGroupCommand", "--bootstrap-server", apache_kafka.bootstrap, "--describe", "--group", group
    )
    assert f"{group}" in seen.stdout
    zurau("group", "delete", group, "--yes")
    assert group not in zurau("group", "list")


def test_the_cluster_is_described(zurau, apache_kafka):
    described = json.loads(zurau("cluster", "--format", "json"))
    assert [row["port"] for row in described["brokers"]] == [apache_kafka.port]


def test_kafkas_directory_can_be_dumped(zurau, apache_kafka, topic):
    zurau("produce", topic, "--partition", "1", "--compression", "zstd", stdin="a\nb\n")
    dumped = zurau("log", "dump", str(apache_kafka.data), "--partition", f"{topic}-1", "--records", "--format", "json")
    found = [json.loads(line) for line in dumped.splitlines()]
    assert [line["value"] for line in found if line["kind"] == "record"] == ["a", "b"]


def test_the_tests_of_the_client_hold_for_apache_kafka(apache_kafka):
    environment = os.environ | {"ZURAU_TEST_BOOTSTRAP": apache_kafka.bootstrap}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(CLIENT_TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
