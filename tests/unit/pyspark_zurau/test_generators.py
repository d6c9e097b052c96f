"""Generated data: the same from the same seed, bad on purpose, and as much as was asked for."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, LATE, TOO_LATE
from pyspark_zurau.pipelines.logs.generate import make_lines

START_MS = 1_767_225_600_000
KINDS = {
    "logs": {DUPLICATE, LATE, TOO_LATE, BROKEN},
    "goals": {DUPLICATE, LATE, TOO_LATE, BROKEN},
    "serve": {DUPLICATE, BROKEN, "removed"},
    "archive": {DUPLICATE, LATE},
}


def made(name: str, seed: int, count: int = 1000) -> list:
    module = importlib.import_module(f"pyspark_zurau.pipelines.{name}.generate")
    return list(module.generate(count, seed, start_ms=START_MS, per_s=50.0, topics=module.TOPICS))


@pytest.mark.parametrize("name", KINDS)
def test_the_same_seed_gives_the_same_records(name):
    assert made(name, 7) == made(name, 7)
    assert made(name, 7) != made(name, 8)


@pytest.mark.parametrize("name", KINDS)
def test_there_are_as_many_as_were_asked_for_and_some_of_every_kind(name):
    records = made(name, 1)
    assert len(records) == 1000
    assert {kind for kind, _ in records} == KINDS[name] | {""}


def test_no_two_log_lines_are_the_same_by_accident():
    lines = [line for line in make_lines(2000, 3, start_ms=START_MS) if line.kind != DUPLICATE]
    assert len({(line.service, line.size) for line in lines}) == len(lines)


def test_late_lines_are_within_the_lateness_and_those_too_late_are_not():
    lines = list(make_lines(5000, 3, start_ms=START_MS, lateness_s=30))
    ages_ms = {
        kind: [line.arrived_ms - line.at_s * 1000 for line in lines if line.kind == kind] for kind in (LATE, TOO_LATE)
    }
    assert max(ages_ms[LATE]) <= 30_000
    assert min(ages_ms[TOO_LATE]) > 30_000
