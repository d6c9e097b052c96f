"""A disk that fills up under a real broker: refused and told, never lost, and no restart once there is room.

The disk is a small file system in memory, which only root may mount. Something else on the same disk (`filler`) takes
all the room and gives it back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack import CREATE_TOPICS_VERSION, some_batch, wait_until

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest

DISK_MIB = 6
PAGE = 4096
BATCH = b"v" * 50_000


class SmallDisk:
    """The data directory of the broker, on a file system of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, *, leave_pages: int = 0) -> None:
        """Take all room but a few pages, and then even the rest of the last one."""
        with (self.path / "filler").open("ab", buffering=0) as filler:
            size = filler.tell()
            try:
                while True:
                    size += filler.write(b"\0" * PAGE)
            except OSError:
                os.truncate(filler.fileno(), max(0, size - leave_pages * PAGE))

    def make_room(self) -> None:
        (self.path / "filler").unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "broker-0" / "data"
    path.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs root and the right to mount a tmpfs: run it as root, in a container with CAP_SYS_ADMIN")
    yield SmallDisk(path)
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def broker(small_disk, start_broker):
    return start_broker(disk_low_bytes=PAGE * 16)


@pytest.fixture
def client(broker, connect):
    return connect(broker)


def health_of(broker) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "zurau", "cluster", "health", "-b", broker.bootstrap, "-f", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [problem["kind"] for problem in json.loads(done.stdout)]


def produce_until_full(client, topic: str) -> list[int]:
    """Offsets that were acknowledged."""
    acknowledged = []
    while (answer := client.produce(topic, some_batch(BATCH))).error_code == ErrorCode.NONE:
        acknowledged.append(answer.base_offset)
    assert answer.error_code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
    return acknowledged


def takes_writes(client, topic: str) -> bool:
    return client.produce(topic, some_batch()).error_code == ErrorCode.NONE


def all_are_there(client, topic: str, offsets: list[int]) -> bool:
    return all(client.fetch(topic, offset).records for offset in offsets)


def test_a_disk_that_fills_up_loses_nothing_and_goes_on_without_a_restart(broker, client, small_disk):
    client.create_topic("t")
    small_disk.fill(leave_pages=100)
    acknowledged = produce_until_full(client, "t")
    assert acknowledged
    small_disk.fill()
    code, kinds = health_of(broker)
    assert (code, "disk-nearly-full" in kinds) == (1, True)
    small_disk.make_room()
    wait_until(lambda: takes_writes(client, "t"), "writes to be taken again", patience_s=10)
    assert all_are_there(client, "t", acknowledged)
    wait_until(lambda: health_of(broker) == (0, []), "health to be well again", patience_s=10)


@pytest.mark.parametrize("pages", range(5))
def test_a_first_write_without_room_for_what_stands_beside_it_is_taken_later(client, pages, small_disk):
    """Of the few pages the records take some: then there is no room for the file of epochs, or the journal."""
    for number in range(3):
        client.create_topic(f"t{number}")
    small_disk.fill(leave_pages=pages)
    for number in range(3):
        takes_writes(client, f"t{number}")
    small_disk.make_room()
    for number in range(3):
        wait_until(lambda number=number: takes_writes(client, f"t{number}"), f"t{number}", patience_s=10)


@pytest.mark.parametrize("pages", [0, 1, 2, 5, 10])
def test_a_topic_that_was_created_without_room_is_there_as_soon_as_there_is(client, pages, small_disk):
    small_disk.fill(leave_pages=pages)
    wanted = [CreatableTopic(name=f"t{number}", num_partitions=3, replication_factor=1) for number in range(5)]
    answer = client.ask(CreateTopicsRequest(topics=wanted, timeout_ms=5000), CREATE_TOPICS_VERSION)
    made = [topic.name for topic in answer.topics if topic.error_code == ErrorCode.NONE]
    small_disk.make_room()
    for name in made:
        wait_until(lambda name=name: takes_writes(client, name), name, patience_s=10)


def test_a_broker_killed_on_a_full_disk_comes_back_with_everything_acknowledged(broker, client, connect, small_disk):
    client.create_topic("t")
    small_disk.fill(leave_pages=60)
    acknowledged = produce_until_full(client, "t")
    broker.kill()
    small_disk.make_room()
    broker.start()
    assert all_are_there(connect(broker), "t", acknowledged)
    assert health_of(broker) == (0, [])


def test_a_start_without_room_ends_with_one_line_that_says_why(broker, small_disk):
    broker.kill()
    small_disk.fill()
    with pytest.raises(AssertionError, match="stopped while starting"):
        broker.start()
    broker.stop()
    said = broker.log.read_text().splitlines()
    assert "Traceback" not in broker.log.read_text()
    assert "the disk is full; free some space" in said[-1]
    small_disk.make_room()
    broker.start()


def test_a_full_disk_does_not_fill_the_log(broker, client, small_disk):
    client.create_topic("t")
    small_disk.fill(leave_pages=2)
    for _ in range(300):
        takes_writes(client, "t")
    assert len(broker.log.read_text().splitlines()) < 20
