"""Directories that somebody, or a disk, has been at: a real broker refuses with one line, or serves what is whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from attack import some_batch

from zurau.wire.kafka.error_codes import ErrorCode

METADATA = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def stored(broker, connect):
    """A broker with ten acknowledged records in `t`, stopped; its data directory."""
    client = connect(broker)
    client.create_topic("t")
    for _ in range(10):
        assert client.produce("t", some_batch()).error_code == ErrorCode.NONE
    broker.stop()
    return broker.directory / "data"


def refusal(broker) -> str:
    """The last line of a broker that does not start."""
    with pytest.raises(AssertionError, match="stopped while starting"):
        broker.start()
    broker.stop()
    said = broker.log.read_text()
    assert "Traceback" not in said
    return said.splitlines()[-1]


def problems(broker) -> list[dict]:
    command = [sys.executable, "-m", "zurau", "cluster", "health", "-b", broker.bootstrap, "-f", "json"]
    return json.loads(subprocess.run(command, capture_output=True, timeout=60, check=False).stdout)


def test_a_flipped_bit_in_the_metadata_is_refused_and_nothing_is_renamed(broker, stored):
    before = sorted(path.name for path in stored.iterdir())
    content = bytearray((stored / METADATA / SEGMENT).read_bytes())
    content[100] ^= 4
    (stored / METADATA / SEGMENT).write_bytes(content)
    line = refusal(broker)
    assert "metadata log" in line
    assert "zurau log check" in line
    assert not [path for path in stored.iterdir() if "stray" in path.name]
    assert sorted({path.name for path in stored.iterdir()} | {"clean-stop"}) == before


def test_a_missing_metadata_log_is_refused(broker, stored):
    shutil.rmtree(stored / METADATA)
    assert "no topic is known" in refusal(broker)
    assert (stored / "t-0" / SEGMENT).exists()


def test_an_emptied_metadata_log_is_refused_with_and_without_a_journal(broker, stored):
    (stored / METADATA / SEGMENT).write_bytes(b"")
    assert "zurau log repair" in refusal(broker)
    (stored / "journal").unlink()
    assert "zurau log repair" in refusal(broker)


def test_a_missing_identity_is_refused(broker, stored):
    (stored / "meta.properties").unlink()
    assert "meta.properties is missing" in refusal(broker)


def test_a_lost_directory_is_told_and_its_offsets_are_not_given_out_again(broker, connect, stored):
    shutil.rmtree(stored / "t-0")
    broker.start()
    client = connect(broker)
    assert client.produce("t", some_batch()).base_offset == 10
    assert client.fetch("t", 3).error_code == ErrorCode.CORRUPT_MESSAGE
    (problem,) = problems(broker)
    assert (problem["kind"], problem["first_offset"], problem["last_offset"]) == ("damaged", 0, 9)


def test_after_kill_nine_a_log_that_was_cut_shorter_is_told(broker, connect, stored):
    broker.start()
    broker.kill()
    with (stored / "t-0" / SEGMENT).open("r+b") as file:
        file.truncate(200)
    broker.start()
    assert connect(broker).produce("t", some_batch()).base_offset == 10
    assert [problem["kind"] for problem in problems(broker)] == ["damaged"]


def test_whatever_is_done_to_the_journal_everything_is_served(broker, connect, stored):
    for content in (b"", b"\0" * 1000, b"notes\n", (stored / "journal").read_bytes()[:-4]):
        (stored / "journal").write_bytes(content)
        broker.start()
        assert len(connect(broker).fetch("t", 0).records) > 600
        assert [problem["kind"] for problem in problems(broker)] == ["journal-damaged"]
        broker.stop()
    (stored / "journal").unlink()
    broker.start()
    assert problems(broker) == []
