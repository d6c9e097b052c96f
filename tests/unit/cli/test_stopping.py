"""How `zurau consume` ends when it is told to, as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.groups.admin import GroupAdmin
from zurau.ids import TopicPartition
from zurau.testing import Broker

ORDERS = "orders"
BILLING = "billing"


@pytest.fixture
def slow_to_settle() -> Iterator[Cluster]:
    """A cluster on which a new group waits long for more members: whoever joins it has a request under way."""
    with Broker(initial_rebalance_delay_ms=60_000) as broker, Cluster(broker.bootstrap) as cluster:
        Admin(cluster).create_topic(NewTopic(ORDERS))
        yield cluster


def consume(bootstrap: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "zurau", "consume", *arguments, "-b", bootstrap]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def members(cluster: Cluster) -> int:
    return sum(
        len(GroupAdmin(cluster).describe_group(group.name).members) for group in GroupAdmin(cluster).list_groups()
    )


SIGNALS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@SIGNALS
def test_a_signal_while_joining_leaves_the_group_quietly(slow_to_settle, number, code):
    process = consume(str(slow_to_settle.any_connection().address), ORDERS, "--group", BILLING)
    while not members(slow_to_settle):
        assert process.poll() is None
    process.send_signal(number)
    assert process.communicate(timeout=30) == ("", "")
    assert (process.returncode, members(slow_to_settle)) == (code, 0)


@SIGNALS
def test_a_signal_while_reading_commits_what_was_printed(zurau, broker, topic, unique, number, code):
    group = unique("group")
    zurau("produce", topic, "--partition", "0", stdin="a\nb\n")
    process = consume(broker.bootstrap, topic, "--group", group, "--from-beginning")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["a\n", "b\n"]
    process.send_signal(number)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == code
    with Cluster(broker.bootstrap) as cluster:
        assert GroupAdmin(cluster).offsets(group)[TopicPartition(topic, 0)] == 2
        assert GroupAdmin(cluster).describe_group(group).members == ()


@pytest.mark.parametrize("command", ["consume {topic} --from-beginning", "topic list"])
def test_a_closed_pipe_ends_it_quietly(zurau, broker, topic, command):
    zurau("produce", topic, stdin="a\nb\n")
    line = (
        f"{sys.executable} -m zurau {command.format(topic=topic)} -b {broker.bootstrap} | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")
