"""`zurau consume` at a batch that the disk has changed."""

from __future__ import annotations

import pytest

SEGMENT = "00000000000000000000.log"
PAYLOAD, MAGIC = -2, 16


@pytest.fixture(params=[PAYLOAD, MAGIC])
def damaged(request, zurau, broker, topic):
    """Partition 0 holds three batches of two records; the second, with the offsets 2 and 3, is damaged."""
    file = broker.directory / f"{topic}-0" / SEGMENT
    zurau("produce", topic, "--partition", "0", stdin="0\n1\n")
    start = file.stat().st_size
    zurau("produce", topic, "--partition", "0", stdin="2\n3\n")
    end = file.stat().st_size
    zurau("produce", topic, "--partition", "0", stdin="4\n5\n")
    with file.open("r+b") as opened:
        opened.seek((start if request.param >= 0 else end) + request.param)
        byte = opened.read(1)[0]
        opened.seek(-1, 1)
        opened.write(bytes([byte ^ 1]))
    return topic


def test_what_is_good_is_printed_before_the_error(zurau, damaged):
    outcome = zurau("consume", damaged, "--from-beginning", "--until-end", "--partition", "0")
    assert (outcome.returncode, outcome.stdout) == (1, "0\n1\n")
    assert outcome.stderr.startswith(f"zurau: {damaged}-0 at offset 2: ")
    assert "`zurau log check DIR`" in outcome.stderr
    assert "`zurau log repair DIR`" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_the_last_good_record_before_damage_can_be_had_alone(zurau, damaged):
    outcome = zurau("consume", damaged, "--from-offset", "1", "--max", "1", "--partition", "0")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "1\n", "")


def test_reading_goes_on_behind_the_damage(zurau, damaged):
    outcome = zurau("consume", damaged, "--from-offset", "4", "--max", "2", "--partition", "0")
    assert (outcome.returncode, outcome.stdout) == (0, "4\n5\n")


def test_a_group_stops_at_the_damage_and_can_be_moved_behind_it(zurau, damaged, unique):
    group = unique("group")
    first = zurau("consume", damaged, "--group", group, "--from-beginning", "--until-end")
    assert (first.returncode, first.stdout) == (1, "0\n1\n")
    again = zurau("consume", damaged, "--group", group, "--until-end")
    assert (again.returncode, again.stdout) == (1, "")
    zurau("group", "reset", group, "--topic", damaged, "--to-offset", "4", "--yes")
    assert zurau("consume", damaged, "--group", group, "--until-end").stdout == "4\n5\n"
