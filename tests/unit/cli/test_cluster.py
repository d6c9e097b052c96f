from __future__ import annotations

import json

import pytest

from zurau.node.disk import RealDisk
from zurau.testing import Broker


def test_the_overview_names_the_brokers(zurau):
    shown = json.loads(zurau("cluster", "--format", "json").stdout)
    assert [broker["broker"] for broker in shown["brokers"]] == [shown["controller"]]
    assert shown["without_leader"] == 0
    assert shown["features"] == {"metadata.version": 7, "zurau.version": 2}


def test_feature_levels_are_shown_with_what_brokers_support(zurau):
    shown = {row["feature"]: row for row in json.loads(zurau("cluster", "features", "--format", "json").stdout)}
    assert shown["zurau.version"] == {"feature": "zurau.version", "level": 2, "lowest": 1, "highest": 2}
    assert shown["transaction.version"]["highest"] == 0


def test_levels_that_are_as_high_as_can_be_are_left_alone(zurau):
    raised = zurau("cluster", "features", "--upgrade")
    assert (raised.returncode, raised.stderr) == (0, "")


def test_a_cluster_that_is_well_has_no_problems(zurau, broker):
    with Broker(disk_low_bytes=0) as well:
        shown = zurau("cluster", "health", "-b", well.bootstrap)
        assert (shown.returncode, shown.stdout) == (0, "no problems\n")
        assert json.loads(zurau("cluster", "health", "-b", well.bootstrap, "-f", "json").stdout) == []


@pytest.fixture
def ailing():
    """A broker that finds its disk too small."""
    with Broker(disk_low_bytes=1 << 60) as ailing:
        yield ailing


def test_a_problem_is_shown_with_what_to_do_and_exit_code_one(zurau, ailing):
    shown = zurau("cluster", "health", "-b", ailing.bootstrap)
    assert shown.returncode == 1
    assert "disk-nearly-full" in shown.stdout
    *_, row, advice = shown.stdout.splitlines()
    assert "bytes are left in" in row
    assert advice.startswith("disk-nearly-full: free some space, or lower retention.bytes")


def test_problems_are_json_for_programs(zurau, ailing):
    shown = zurau("cluster", "health", "-b", ailing.bootstrap, "--format", "json")
    (problem,) = json.loads(shown.stdout)
    assert (problem["kind"], problem["partition"]) == ("disk-nearly-full", None)
    assert shown.returncode == 1


def test_options_may_stand_before_the_word_health(zurau, ailing):
    shown = zurau("cluster", "-b", ailing.bootstrap, "--format", "json", "health")
    assert [problem["kind"] for problem in json.loads(shown.stdout)] == ["disk-nearly-full"]


def test_a_damaged_range_is_named_by_partition_offsets_and_file(zurau, tmp_path):
    with Broker(dir=str(tmp_path), disk_low_bytes=0) as before:
        zurau("topic", "create", "t", "-b", before.bootstrap)
        zurau("produce", "t", "-b", before.bootstrap, stdin="a\nb\n")
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    with Broker(dir=str(tmp_path), disk_low_bytes=0) as after:
        shown = zurau("cluster", "health", "-b", after.bootstrap, "-f", "json")
    (problem,) = json.loads(shown.stdout)
    assert (problem["kind"], problem["partition"], problem["last_offset"]) == ("damaged", "t-0", 1)
    assert problem["file"] == str(RealDisk(tmp_path).root / "t-0" / segment.name)
    assert "zurau log repair" in problem["advice"]
