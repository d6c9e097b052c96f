"""A Kafka Streams application: repartitioning, a state store with its changelog, and a restart without its state."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import environments
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType
from driver import PATIENCE_S, wait_until

WORDS = ["to", "be", "or", "not", "that", "is", "the", "question"]
PARTITIONS = 2
QUIET = {"log_level": 0}


class WordCount:
    """The application as a process; each has a directory of its own, so that nothing is left of the one before."""

    def __init__(self, bootstrap: str, application: str, topics: tuple[str, str], directory: Path) -> None:
        command = environments.java_program("StreamsWordCount")
        self._process = subprocess.Popen(
            [*command, bootstrap, application, *topics, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "running\n", "the application did not start"

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(PATIENCE_S) == 0
        self._process.stdout.close()

    def end(self) -> None:
        """Whatever became of it."""
        self._process.kill()
        self._process.wait()


class Counts:
    """The result as its readers have it: the last count of every word."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **QUIET})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._latest: dict[str, int] = {}

    def now(self) -> dict[str, int]:
        for message in self._consumer.consume(10_000, 0.1):
            assert message.error() is None
            self._latest[message.key().decode()] = int(message.value())
        return self._latest


def write_lines(bootstrap: str, topic: str, chance: random.Random) -> Counter[str]:
    """Returns how often each word was written."""
    lines = [chance.choices(WORDS, k=5) for _ in range(500)]
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for number, line in enumerate(lines):
        producer.produce(topic, " ".join(line), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return Counter(word for line in lines for word in line)


@pytest.fixture
def start(bootstrap, tmp_path):
    """Starts the application; whatever still runs at the end of the test is ended."""
    started: list[WordCount] = []

    def run(application: str, *topics: str) -> WordCount:
        directory = tmp_path / str(len(started))
        try:
            started.append(WordCount(bootstrap, application, topics, directory))
        except environments.Unavailable as missing:
            pytest.skip(str(missing))
        return started[-1]

    yield run
    for running in started:
        running.end()


def test_words_are_counted_exactly_through_a_restart_that_loses_the_state(start, bootstrap, make_topic):
    lines, counts = make_topic(partitions=PARTITIONS), make_topic()
    application = f"word-count-{lines}"
    chance = random.Random(4711)
    result = Counts(bootstrap, counts)
    first = start(application, lines, counts)
    expected = write_lines(bootstrap, lines, chance)
    wait_until("the first half is counted", lambda: result.now() == expected)
    first.stop()
    expected += write_lines(bootstrap, lines, chance)
    second = start(application, lines, counts)
    wait_until("the second half is added to it", lambda: result.now() == expected)
    check_own_topics(bootstrap, application)
    second.stop()
    assert result.now() == expected


def check_own_topics(bootstrap: str, application: str) -> None:
    """The changelog is compacted, and what was repartitioned is deleted once it is counted."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    changelog, repartition = f"{application}-counts-changelog", f"{application}-words-repartition"
    resource = ConfigResource(ResourceType.TOPIC, changelog)
    configs = admin.describe_configs([resource])[resource].result(timeout=PATIENCE_S)
    assert configs["cleanup.policy"].value == "compact"
    wanted = {TopicPartition(repartition, number): OffsetSpec.earliest() for number in range(PARTITIONS)}

    def is_purged() -> bool:
        found = admin.list_offsets(wanted).values()
        return any(future.result(timeout=PATIENCE_S).offset > 0 for future in found)

    wait_until("what was counted is deleted", is_purged)
