"""Every bug that is planted is noticed: a checker that finds nothing is itself a defect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mutations import HELD, MUTATIONS, find


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_found_within_its_seeds(mutation):
    assert find(mutation, mutation.near) is not None, f"{mutation.seeds} seeds, and nobody noticed that {mutation.name}"


def test_a_planted_bug_that_worlds_do_not_show_fails_the_test_that_holds_it():
    script = Path(__file__).parent / "mutations.py"
    told = subprocess.run([sys.executable, script, "--held"], capture_output=True, text=True, check=False)
    assert HELD
    assert told.returncode == 0, told.stderr
