"""Bugs planted on purpose: the test of the tests.

Each one takes away a rule of the replicas, of the sessions between brokers, of the controller, or of a broker's own
code. Seeds of real brokers have to find it, within the number that is written beside it; where worlds do not get
there, a test has to fail. One that goes unnoticed means that a checker, a fault or a test is missing.

    python tests/simulation/mutations.py            prints the table: how many seeds each bug needed, from 0
    python tests/simulation/mutations.py NAME       plants one bug
    python tests/simulation/mutations.py --held     runs the tests that hold the rest, each with its bug planted
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from broker_mutations import BROKER_MUTATIONS
from controller_mutations import CONTROLLER_MUTATIONS
from damage_mutations import DAMAGE_MUTATIONS
from operation_mutations import OPERATION_MUTATIONS
from planted import find
from replica_mutations import REPLICA_MUTATIONS
from session_mutations import SESSION_MUTATIONS
from window_mutations import WINDOW_MUTATIONS

TESTS = Path(__file__).parents[1]
ALL = (
    *REPLICA_MUTATIONS,
    *CONTROLLER_MUTATIONS,
    *SESSION_MUTATIONS,
    *BROKER_MUTATIONS,
    *WINDOW_MUTATIONS,
    *OPERATION_MUTATIONS,
    *DAMAGE_MUTATIONS,
)
MUTATIONS = tuple(each for each in ALL if not each.is_held)
HELD = tuple(each for each in ALL if each.is_held)


def unheld() -> list[str]:
    """Bugs with which the test that should hold them passes, or does not run."""
    found = []
    for mutation in HELD:
        with mutation.planted():
            code = pytest.main(["-qq", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"{TESTS}/{mutation.where}"])
        if code is not pytest.ExitCode.TESTS_FAILED:
            found.append(f"{mutation.name}: {mutation.where} gives {code!r}")
    return found


def main(arguments: list[str]) -> None:
    if arguments == ["--held"]:
        sys.exit("\n".join(unheld()) or 0)
    print("| planted bug | where | seeds it took, from 0 | noticed by |\n|---|---|---:|---|")
    for mutation in ALL:
        if arguments and mutation.name not in arguments:
            continue
        if mutation.is_held:
            print(f"| {mutation.name} | tests | | `{mutation.where}` |", flush=True)
            continue
        found = find(mutation)
        took, by = found if found is not None else ("-", "nothing")
        print(f"| {mutation.name} | {mutation.where} | {took} | {by} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
