"""A broker that is stopped, killed and loses power again and again, from a seed: see broker_story.py.

ZURAU_SEED=17 pytest tests/simulation/test_broker_simulation.py     replays one seed
ZURAU_SEEDS=2000 pytest -n 4 tests/simulation/test_broker_simulation.py     looks longer
ZURAU_CONSTANTS=log.scan.SCAN_BYTES=61 pytest ...     with these constants instead of those of the seed
"""

from __future__ import annotations

import os

import pytest
from broker_story import constants_asked_for, tell_story

COUNT = int(os.environ.get("ZURAU_SEEDS", "60"))
SEEDS = [int(os.environ["ZURAU_SEED"])] if "ZURAU_SEED" in os.environ else range(COUNT)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_or_read_is_lost_when_power_fails(seed: int):
    tell_story(seed, constants_asked_for())
