"""Worlds of three brokers that elect their leaders, in which acks=all waits for all three."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zurau.partition.partition import Partition
from zurau.replica.quorum.leader import Leader
from zurau.simulation.brokers import search
from zurau.simulation.brokers.search import Kind, run_seed
from zurau.simulation.brokers.swarm import Swarm, draw

WORLDS = Kind(3, "quorum", is_operated=False)
SEEDS = range(6)


@pytest.fixture(autouse=True)
def all_three(monkeypatch):
    def drawn(*arguments: Any) -> Swarm:
        swarm = draw(*arguments)
        return replace(swarm, log_settings=replace(swarm.log_settings, min_insync_replicas=3))

    monkeypatch.setattr(search, "draw", drawn)


def violations(seeds):
    """What was found, up to the first."""
    found = (run_seed(WORLDS, seed).violation for seed in seeds)
    return [each.invariant for each in found if each is not None][:1]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_is_on_all_three(seed):
    outcome = run_seed(WORLDS, seed)
    assert outcome.violation is None, outcome.violation
    assert outcome.acknowledged > 0


def test_a_leader_that_counts_one_too_few_is_found(monkeypatch):
    def one_too_few(self: Leader) -> int:
        return self._state.high_watermark

    monkeypatch.setattr(Leader, "replicated_offset", property(one_too_few))
    assert violations(SEEDS) == ["ReplicatedIsWhereItWasAskedFor"]


def test_a_partition_that_waits_for_a_majority_only_is_found(monkeypatch):
    monkeypatch.setattr(Partition, "wait_replicated", Partition.wait_committed)
    assert violations(SEEDS) == ["AcknowledgedIsCommitted"]
