"""`zurau log dump`."""

from __future__ import annotations

import json

import pytest

from zurau.testing import Broker


@pytest.fixture
def stored(zurau, tmp_path, monkeypatch):
    """A directory with two batches in `t-0` and one in `t-1`, of a broker that has stopped."""
    directory = tmp_path / "data"
    with Broker(dir=str(directory)) as broker:
        monkeypatch.setenv("ZURAU_BOOTSTRAP", broker.bootstrap)
        zurau("topic", "create", "t", "--partitions", "2")
        zurau("produce", "t", "--partition", "0", "--key-separator", ":", stdin="k:v\n")
        zurau("produce", "t", "--partition", "0", "--compression", "zstd", stdin="a\nb\n")
        zurau("produce", "t", "--partition", "1", stdin="c\n")
    return directory


def dumped(outcome):
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def test_segments_and_batches_are_told_in_order(zurau, stored):
    found = dumped(zurau("log", "dump", str(stored / "t-0"), "--format", "json"))
    assert [line["kind"] for line in found] == ["segment", "batch", "batch"]
    offsets = [(line["base_offset"], line["last_offset"], line["compression"]) for line in found[1:]]
    assert offsets == [(0, 0, "none"), (1, 2, "zstd")]


def test_records_are_told_when_asked_for(zurau, stored):
    found = dumped(zurau("log", "dump", str(stored), "--partition", "t-0", "--records", "--format", "json"))
    records = [(line["offset"], line["key"], line["value"]) for line in found if line["kind"] == "record"]
    assert records == [(0, "k", "v"), (1, None, "a"), (2, None, "b")]


def test_records_of_the_brokers_own_logs_are_told_by_what_they_say(zurau, stored):
    with Broker(dir=str(stored)) as broker:
        zurau("group", "reset", "g", "--topic", "t", "--to-offset", "1", "--yes", "--bootstrap", broker.bootstrap)
    found = dumped(zurau("log", "dump", str(stored), "--records", "--format", "json"))
    states = [line["state"] for line in found if "state" in line]
    topics = [state["name"] for state in states if state["type"] == "TopicCreated"]
    commits = [state for state in states if state["type"] == "OffsetCommitValue"]
    assert topics == ["__consumer_offsets", "t"]
    assert [(one["group"], one["topic"], one["partition"], one["offset"]) for one in commits] == [
        ("g", "t", 0, 1),
        ("g", "t", 1, 1),
    ]


def test_a_whole_directory_is_walked_through(zurau, stored):
    text = zurau("log", "dump", str(stored)).stdout
    assert "t-0/00000000000000000000.log: from offset 0" in text
    assert "t-1/00000000000000000000.log: from offset 0" in text


def test_damage_is_told_and_is_an_error(zurau, stored):
    file = stored / "t-1" / "00000000000000000000.log"
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    outcome = zurau("log", "dump", str(stored / "t-1"))
    assert outcome.returncode == 1
    assert "DAMAGED at 0: the batch does not match its checksum" in outcome.stdout
    assert outcome.stderr == "zurau: 1 damaged place; see the lines above\n"


def test_a_directory_without_segments_is_refused(zurau, tmp_path):
    assert "there are no segments in" in zurau("log", "dump", str(tmp_path)).stderr
    assert "there is no directory" in zurau("log", "dump", str(tmp_path / "no")).stderr
