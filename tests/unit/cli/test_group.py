"""`zurau group`, as a process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest


@pytest.fixture
def group(zurau, topic, unique):
    """A group that has read all three records of partition 0."""
    name = unique("group")
    zurau("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    zurau("consume", topic, "--group", name, "--from-beginning", "--max", "3")
    return name


def offsets(zurau, group):
    described = json.loads(zurau("group", "describe", group, "--format", "json").stdout)
    return {
        row["partition"]: (row["offset"], row["lag"]) for row in described["partitions"] if row["offset"] is not None
    }


def test_groups_are_listed_with_their_state(zurau, group):
    listed = json.loads(zurau("group", "list", "--format", "json").stdout)
    assert {"group": group, "state": "Empty", "kind": "classic"} in listed


def test_describing_shows_offsets_and_lag(zurau, group, topic):
    zurau("produce", topic, "--partition", "0", stdin="d\n")
    assert offsets(zurau, group)[0] == (3, 1)


def test_a_reset_shows_the_way_before_it_goes(zurau, group, topic):
    shown = zurau("group", "reset", group, "--to-earliest", "--topic", topic, "--dry-run", "--format", "json")
    moves = {row["partition"]: (row["from"], row["to"], row["difference"]) for row in json.loads(shown.stdout)}
    assert moves[0] == (3, 0, -3)
    assert "nothing was changed" in shown.stderr
    assert offsets(zurau, group)[0] == (3, 0)


def test_a_reset_asks_unless_told_not_to(zurau, group):
    asked = zurau("group", "reset", group, "--to-earliest")
    assert asked.returncode == 1
    assert "pass --yes" in asked.stderr
    assert zurau("group", "reset", group, "--to-earliest", "--yes").returncode == 0
    assert offsets(zurau, group)[0] == (0, 3)


@pytest.mark.parametrize(
    ("options", "offset"), [(["--to-offset", "1"], 1), (["--to-offset", "99"], 3), (["--to-latest"], 3)]
)
def test_a_reset_stays_within_the_log(zurau, group, options, offset):
    zurau("group", "reset", group, *options, "--yes")
    assert offsets(zurau, group)[0][0] == offset


def test_a_reset_goes_to_a_moment(zurau, group):
    zurau("group", "reset", group, "--to-time", "1h", "--yes")
    assert offsets(zurau, group)[0][0] == 0


def test_a_reset_needs_one_destination(zurau, group):
    assert zurau("group", "reset", group).returncode == 2
    assert zurau("group", "reset", group, "--to-latest", "--to-earliest").returncode == 2


def test_a_reset_takes_partitions_without_an_offset_along(zurau, group, topic):
    zurau("topic", "add-partitions", topic, "3")
    zurau("produce", topic, "--partition", "2", stdin="d\n")
    shown = zurau("group", "reset", group, "--to-latest", "--yes", "--format", "json")
    moves = {row["partition"]: (row["from"], row["to"]) for row in json.loads(shown.stdout)}
    assert moves == {0: (3, 3), 1: (0, 0), 2: (None, 1)}
    assert offsets(zurau, group)[2] == (1, 0)


def test_a_group_that_does_not_exist_yet_is_placed_in_a_topic(zurau, group, topic, unique):
    new = unique("group")
    assert "there is no such group" in zurau("group", "reset", new, "--to-latest", "--yes").stderr
    assert zurau("group", "reset", new, "--to-latest", "--topic", topic, "--yes").returncode == 0
    assert offsets(zurau, new) == {0: (3, 0), 1: (0, 0)}


def test_a_group_with_members_is_left_alone(zurau, broker, group, topic):
    command = [sys.executable, "-m", "zurau", "consume", topic, "--group", group, "-b", broker.bootstrap]
    member = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    zurau("produce", topic, "--partition", "0", stdin="d\n")
    assert member.stdout is not None
    assert member.stdout.readline() == "d\n"
    refused = zurau("group", "reset", group, "--to-earliest", "--yes")
    assert refused.returncode == 1
    assert "has 1 active member (zurau-cli on 127.0.0.1); stop them first" in refused.stderr
    assert "stop them first" in zurau("group", "delete", group, "--yes").stderr
    member.send_signal(signal.SIGINT)
    member.communicate(timeout=30)
    assert offsets(zurau, group)[0][0] == 4


def test_a_deleted_group_is_gone(zurau, group):
    assert zurau("group", "delete", group, "--yes").returncode == 0
    gone = zurau("group", "describe", group)
    assert gone.returncode == 1
    assert "there is no such group" in gone.stderr
