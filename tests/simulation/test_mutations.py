"""The simulator notices every bug that is planted: a checker that finds nothing is itself a defect."""

from __future__ import annotations

import pytest
from mutations import MUTATIONS, find


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_found_within_its_seeds(mutation):
    assert find(mutation, mutation.near) is not None, f"{mutation.seeds} seeds, and nobody noticed that {mutation.name}"
