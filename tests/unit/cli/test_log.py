"""`zurau log dump`, `check` and `repair`."""

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


SEGMENT = "00000000000000000000.log"


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


def test_nothing_to_check_is_wrong_usage_and_no_damage(zurau, tmp_path):
    assert zurau("log", "check", str(tmp_path)).returncode == 2
    assert zurau("log", "check", str(tmp_path / "no")).returncode == 2


def test_a_brokers_directory_without_any_log_is_damage(zurau, stored):
    for segment in stored.glob("*/*.log"):
        segment.unlink()
    outcome = zurau("log", "check", str(stored))
    assert (outcome.returncode, "all its logs are gone" in outcome.stderr) == (1, True)


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_check_of_a_brokers_directory_names_a_damaged_journal(zurau, stored, content):
    (stored / "journal").write_bytes(content)
    outcome = zurau("log", "check", str(stored))
    assert (outcome.returncode, str(stored / "journal") in outcome.stdout) == (1, True)
    assert "the journal is damaged" in outcome.stderr
    (line,) = dumped(zurau("log", "check", str(stored), "--format", "json"))
    assert line["kind"] == "journal_damage"
    assert "a new one at its next start" in zurau("log", "repair", str(stored), "--yes").stderr


def test_a_lost_segment_is_called_missing(zurau, tmp_path):
    with Broker(dir=str(tmp_path), internal_segment_bytes=100) as broker:
        zurau("topic", "create", "t", "-b", broker.bootstrap)
        for number in range(3):
            zurau("produce", "t", "-b", broker.bootstrap, stdin=f"{number}\n")
    (tmp_path / "t-0" / "00000000000000000001.log").unlink()
    outcome = zurau("log", "check", str(tmp_path / "t-0"))
    assert "t-0: offset 1 damaged" in outcome.stdout
    assert "a segment file seems to be missing" in outcome.stdout
    assert "the next begins at offset 2" in outcome.stdout


def flip(file, position):
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def test_a_whole_directory_is_checked(zurau, stored):
    outcome = zurau("log", "check", str(stored))
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "nothing is damaged\n")


def test_a_check_names_partition_offsets_file_and_positions(zurau, stored):
    flip(stored / "t-1" / SEGMENT, -2)
    outcome = zurau("log", "check", str(stored), "--format", "json")
    (found,) = dumped(outcome)
    size = (stored / "t-1" / SEGMENT).stat().st_size
    assert outcome.returncode == 1
    assert found == {
        "kind": "damage",
        "partition": "t-1",
        "first_offset": 0,
        "last_offset": 0,
        "file": f"t-1/{SEGMENT}",
        "position": 0,
        "end_position": size,
        "reason": "the batch does not match its checksum",
    }
    assert "run `zurau log repair`" in outcome.stderr


def test_one_partition_can_be_checked(zurau, stored):
    flip(stored / "t-1" / SEGMENT, -2)
    assert zurau("log", "check", str(stored), "--partition", "t-0").returncode == 0
    assert zurau("log", "check", str(stored / "t-1")).returncode == 1


def test_a_lost_end_is_known_from_the_journal(zurau, stored):
    (stored / "t-0" / SEGMENT).write_bytes(b"")
    outcome = zurau("log", "check", str(stored))
    assert "t-0: offsets 0 to 2 damaged" in outcome.stdout


def test_a_repair_asks_first(zurau, stored):
    flip(stored / "t-0" / SEGMENT, 66)
    before = (stored / "t-0" / SEGMENT).read_bytes()
    outcome = zurau("log", "repair", str(stored))
    assert "t-0: offset 0 damaged" in outcome.stdout
    assert (outcome.returncode, "pass --yes" in outcome.stderr) == (1, True)
    assert (stored / "t-0" / SEGMENT).read_bytes() == before


def test_a_repaired_partition_is_served_with_a_gap(zurau, stored):
    flip(stored / "t-0" / SEGMENT, 66)
    outcome = zurau("log", "repair", str(stored), "--yes")
    assert (outcome.returncode, f"in t-0/{SEGMENT}.0.damaged" in outcome.stderr) == (0, True)
    assert zurau("log", "check", str(stored)).returncode == 0
    with Broker(dir=str(stored)) as broker:
        read = zurau("consume", "t", "--partition", "0", "--from-beginning", "--until-end", "-b", broker.bootstrap)
    assert read.stdout.split() == ["a", "b"]


def test_nothing_is_repaired_under_a_running_broker(zurau, stored):
    flip(stored / "t-0" / SEGMENT, 66)
    with Broker(dir=str(stored)):
        outcome = zurau("log", "repair", str(stored), "--yes")
    assert outcome.returncode == 1
    assert outcome.stderr == f"zurau: a broker is running on {stored}; stop it first, then repair\n"


def test_whoever_repairs_the_metadata_is_told_what_that_means(zurau, stored):
    flip(stored / "__cluster_metadata-0" / SEGMENT, 66)
    outcome = zurau("log", "repair", str(stored), "--yes")
    assert (outcome.returncode, "Restore a copy if there is one" in outcome.stderr) == (0, True)
    with Broker(dir=str(stored)):
        pass
