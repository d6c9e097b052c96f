"""Kafka's own tool for feature levels: describes, raises and lowers them, after an upgrade of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import Unavailable, classpath, run_tool

from zurau.testing import Cluster

OTHER_RELEASE = Path(__file__).parent.parent / "cluster" / "other_release"


@pytest.fixture(scope="module")
def upgraded() -> Iterator[Cluster]:
    """A broker of this release, which runs one with a higher level now."""
    try:
        classpath()
    except Unavailable as missing:
        pytest.skip(str(missing))
    with Cluster(brokers=1) as cluster:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTHONPATH", str(OTHER_RELEASE))
            environment.setenv("OTHER_RELEASE", "1-3")
            cluster.restart(1)
        yield cluster


def kafka_features(cluster: Cluster, *words: str) -> tuple[int, str]:
    outcome = run_tool("FeatureCommand", "--bootstrap-server", cluster.bootstrap, *words)
    return outcome.returncode, outcome.stdout + outcome.stderr


def level(cluster: Cluster) -> list[str]:
    """Lowest, highest, and the one that holds."""
    code, said = kafka_features(cluster, "describe")
    assert code == 0, said
    line = next(line for line in said.splitlines() if "zurau.version" in line)
    return line.split()[3:8:2]


def test_a_level_is_described_raised_and_lowered(upgraded):
    assert level(upgraded) == ["1", "3", "2"]
    code, said = kafka_features(upgraded, "upgrade", "--feature", "zurau.version=3", "--dry-run")
    assert (code, level(upgraded)) == (0, ["1", "3", "2"]), said
    code, said = kafka_features(upgraded, "upgrade", "--feature", "zurau.version=3")
    assert (code, level(upgraded)) == (0, ["1", "3", "3"]), said
    code, said = kafka_features(upgraded, "downgrade", "--feature", "zurau.version=2")
    assert (code, level(upgraded)) == (0, ["1", "3", "2"]), said


@pytest.mark.parametrize(("words", "reason"), [
    (("upgrade", "--feature", "zurau.version=4"), "the controller supports levels 1 to 3"),
    (("upgrade", "--feature", "zurau.version=1"), "to lower it, ask for a downgrade"),
    (("downgrade", "--feature", "zurau.version=1"), "releases of level 1 cannot read the records of levels"),
    (("disable", "--feature", "zurau.version"), "the controller supports levels 1 to 3"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_the_reason(upgraded, words, reason):
    code, said = kafka_features(upgraded, *words)
    assert code != 0
    assert reason in said, said
