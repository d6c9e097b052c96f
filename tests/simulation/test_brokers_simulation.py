"""Whole brokers that have a bad day, from seeds, and what the simulator itself promises.

ZURAU_SEED=17 pytest tests/simulation/test_brokers_simulation.py    replays one seed
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from broker_mutations import BROKER_MUTATIONS

from zurau.cli.main import main
from zurau.simulation.brokers.cluster import SimulatedCluster
from zurau.simulation.brokers.faults import KINDS, Pause
from zurau.simulation.brokers.invariants import INVARIANTS
from zurau.simulation.brokers.operations import OPERATIONS
from zurau.simulation.brokers.process import Process
from zurau.simulation.brokers.search import LONE, Kind, faults_of, run_seed, search, swarm_of

ROOT = Path(__file__).parents[2]
#: The same ones every time, so that a change that breaks something is told from one that was unlucky.
SEEDS = [int(os.environ["ZURAU_SEED"])] if "ZURAU_SEED" in os.environ else range(0, 10, 5)
KINDS_OF_WORLDS = [LONE, *(Kind(brokers, mode, is_operated=False) for brokers in (3, 5) for mode in ("quorum", "isr"))]
#: And 150 more, 30 of each kind, with operators, groups and damage in some of them. CI takes other ones for every
#: commit, whose name it gives here: so they are fresh, and yet the same when the same commit is tried again.
FRESH_KINDS = [LONE, *(Kind(brokers, mode) for brokers in (3, 5) for mode in ("quorum", "isr"))]
FRESH_EACH = 30
FIRST_FRESH = int(os.environ.get("ZURAU_FRESH_SEEDS", "3e8"), 16) * 1000
PRINT_SUM = (
    "from zurau.simulation.brokers.search import Kind, run_seed;"
    "print(*(run_seed(Kind({brokers}), seed).trace_sum for seed in range({first}, {last} + 1)))"
)


def require_held(kind: Kind, seed: int) -> None:
    outcome = run_seed(kind, seed)
    assert outcome.violation is None, f"{outcome.violation}; see it again: {search(kind).command(seed)}"


@pytest.mark.parametrize("kind", KINDS_OF_WORLDS, ids=lambda kind: kind.options)
@pytest.mark.parametrize("first_seed", SEEDS)
def test_no_invariant_breaks_and_everything_becomes_whole(kind, first_seed):
    for seed in range(first_seed, first_seed + (1 if len(SEEDS) == 1 else 5)):
        require_held(kind, seed)


@pytest.mark.parametrize("mode", ["quorum", "isr"])
@pytest.mark.parametrize("brokers", [3, 5])
def test_no_invariant_breaks_while_operators_do_their_work(brokers, mode):
    kind = Kind(brokers, mode)
    operated = [seed for seed in range(53_000, 53_015) if swarm_of(kind, seed).operation_kinds]
    for seed in operated[:3]:
        require_held(kind, seed)


@pytest.mark.skipif("ZURAU_SEED" in os.environ, reason="one seed is replayed")
@pytest.mark.parametrize("number", range(FRESH_EACH))
def test_no_invariant_breaks_in_many_more_histories(number):
    for kind in FRESH_KINDS:
        require_held(kind, FIRST_FRESH + number)


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_seed_gives_one_history_whatever_the_hash_seed_is_and_whatever_ran_before_it(brokers):
    def histories(hash_seed: str, first: int, last: int) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PRINT_SUM.format(first=first, last=last, brokers=brokers)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert histories("1", 100, 102)[-1:] == histories("2", 102, 102)


def test_writing_down_what_happens_does_not_change_it():
    silent, told = run_seed(LONE, 5), run_seed(LONE, 5, keeps_lines=True)
    assert silent.trace_sum == told.trace_sum
    assert silent.lines == ()
    assert told.lines


def test_every_kind_of_fault_strikes_in_some_of_the_first_seeds():
    struck = {type(fault).__name__ for seed in range(100) for fault in faults_of(Kind(3), seed)}
    assert struck == {*KINDS, *OPERATIONS}


def test_power_fails_inside_the_work_of_threads_and_between_the_steps_of_a_replaced_file():
    lost = [
        line for seed in range(40) for line in run_seed(LONE, seed, keeps_lines=True).turns if "loses power" in line
    ]
    before = {line.partition("before it can ")[2].split()[0] for line in lost}
    assert {"append", "flush", "rename"} <= before
    assert any(".tmp" in line for line in lost)


def test_what_comes_up_during_pauses_happens_in_its_order():
    cluster = SimulatedCluster(swarm_of(LONE, 3), [])
    agenda, node = cluster.agenda, cluster.nodes[0]
    process, happened = Process(node, 1), []
    for at_ms in (10, 30, 40, 50):
        process.at(at_ms, partial(happened.append, at_ms))
    Pause(0, 1, 40, 0).strike(cluster, node)
    agenda.run_until(20)
    Pause(20, 1, 5, 0).strike(cluster, node)
    agenda.run_until(35)
    assert happened == []
    node.paused_until_ms = 0.0  # as when it is calm
    agenda.run_until(60)
    assert happened == [10, 30, 40, 50]


def test_only_faults_of_the_kinds_that_are_asked_for_strike():
    kind = Kind(3, only=("Split", "Kill"))
    assert {type(fault).__name__ for seed in range(5) for fault in faults_of(kind, seed)} == {"Split", "Kill"}
    assert "--only Split,Kill" in search(kind).command(1)


def test_a_world_without_operators_is_seen_again_without_them(capsys):
    kind = Kind(3, is_operated=False)
    seed = next(seed for seed in range(20) if faults_of(kind, seed) != faults_of(Kind(3), seed))
    command = search(kind).command(seed, []).split()[1:]
    with pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 0
    assert tuple(capsys.readouterr().out.splitlines()) == run_seed(kind, seed, [], keeps_lines=True).lines


def test_a_kind_of_fault_that_there_is_not_is_refused():
    with pytest.raises(SystemExit) as exit_:
        main(["simulate", "--only", "Flood"])
    assert exit_.value.code == 2


@pytest.mark.parametrize("name", [*INVARIANTS, *KINDS])
def test_the_page_explains_what_is_checked_and_what_goes_wrong(name):
    assert f"| {name} |" in (ROOT / "docs/simulation.md").read_text()


def test_a_world_says_how_large_it_is():
    assert "1 brokers" in str(swarm_of(LONE, 3))


def planted(name: str):
    return next(each for each in BROKER_MUTATIONS if each.name == name)


@pytest.fixture
def _shrinks_briefly(monkeypatch):
    monkeypatch.setattr("zurau.simulation.searching._SHRINK_RUNS", 6)


@pytest.mark.usefixtures("_shrinks_briefly")
def test_a_failure_is_told_with_fewer_faults_and_a_way_to_see_it_again():
    with planted("what is written counts as stored").planted():
        seed = next(seed for seed in range(100) if run_seed(LONE, seed).violation is not None)
        invariant = run_seed(LONE, seed).violation.invariant
        found = search(LONE).report(seed, invariant)
        again = run_seed(LONE, seed, found.faults)
    assert str(again.violation) == found.violation
    assert len(found.faults) < found.drawn_count
    assert f"--brokers 1 --first-seed {seed}" in found.command
    assert found.violation in found.transcript[-1]


@pytest.mark.usefixtures("_shrinks_briefly")
def test_the_command_exits_with_one_and_shows_the_faults_when_something_breaks(capsys):
    with planted("producers are forgotten by a restart").planted(), pytest.raises(SystemExit) as exit_:
        main(["simulate", "--brokers", "1", "--seeds", "30"])
    said = capsys.readouterr().out
    assert exit_.value.code == 1
    assert "the rule  " in said
    assert "see it again: zurau simulate --brokers 1 --first-seed" in said


def test_the_command_tells_one_seed_in_words(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["simulate", "--first-seed", "3", "--seeds", "1", "--faults", "none", "--transcript", "-"])
    said = capsys.readouterr().out
    assert exit_.value.code == 0
    assert "is leader in epoch" in said
    assert "!! calm" in said


def test_a_fault_that_a_seed_does_not_have_is_refused():
    with pytest.raises(SystemExit) as exit_:
        main(["simulate", "--faults", "9999"])
    assert exit_.value.code == 2


def test_the_command_says_how_much_it_has_seen(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["simulate", "--brokers", "1", "--seeds", "2"])
    assert exit_.value.code == 0
    assert "2 seeds held in worlds of 1 broker" in capsys.readouterr().out


def test_a_seed_that_gives_two_histories_is_found(capsys, monkeypatch):
    answers = iter(range(1000))
    monkeypatch.setattr("zurau.simulation.brokers.network.Network.notice_ms", lambda _: float(next(answers)))
    outcomes = list(search(LONE).run_seeds(20, 1))
    assert outcomes[-1].violation is not None
    assert outcomes[-1].violation.invariant == "OneSeedOneHistory"
