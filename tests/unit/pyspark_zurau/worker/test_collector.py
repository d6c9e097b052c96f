"""What a worker has imported is left out of the garbage collection that Spark has it do after each task."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyspark_zurau.worker.collector import KEPT, TASKS

CODE = """
import gc
from pyspark_zurau.worker.collector import freeze_imports

imported = []

class Cycle:
    def __init__(self):
        self.itself = self

def seen(task):
    # A full collection at the end of a task, as Spark's workers do it; how many objects it has to look at.
    freeze_imports()
    task()
    gc.collect()
    return len(gc.get_objects())

def load():
    imported.extend([number] for number in range({many}))

tasks = [lambda: None] * {before} + [load] + [lambda: None] * {after}
print([seen(task) for task in tasks][-1], gc.get_freeze_count() > 1000)
Cycle()
print(gc.collect() > 0)
"""


#: More objects than a Python without any work to do has.
MANY = 100_000


def run(*, before: int, after: int, **environment: str) -> list[str]:
    """A worker that runs so many tasks before and after one that imports something."""
    answer = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before, after=after, many=MANY)],
        env={name: value for name, value in os.environ.items() if name != KEPT} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


@pytest.mark.parametrize("before", [0, TASKS - 2])
def test_what_the_first_tasks_import_is_not_looked_at_again(before):
    looked_at, is_frozen, is_collected = run(before=before, after=1, **{KEPT: "1"})
    assert int(looked_at) < MANY
    assert (is_frozen, is_collected) == ("True", "True")


def test_what_later_tasks_make_may_go():
    looked_at, is_frozen, _ = run(before=TASKS, after=1, **{KEPT: "1"})
    assert int(looked_at) >= MANY
    assert is_frozen == "True"


def test_a_process_that_is_no_worker_of_sparks_is_left_as_it_is():
    looked_at, is_frozen, _ = run(before=0, after=1)
    assert int(looked_at) >= MANY
    assert is_frozen == "False"
