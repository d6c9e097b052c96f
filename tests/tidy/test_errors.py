"""An error is caught by whoever knows what to do about it, and by nobody else."""

from __future__ import annotations

import ast

#: Where everything is caught on purpose, and why that is right there.
CATCHES_EVERYTHING = {
    "src/pyspark_zurau/ahead.py": "carries the error of the thread that works ahead to the task that takes its items",
    "src/pyspark_zurau/pool.py": "closes what a task had borrowed, whatever ended the task, and raises it again",
    "src/zurau/broker/outcomes.py": "work that nobody waits for: whatever went wrong with it is logged and told on",
    "src/zurau/node/connection.py": "a defect of ours costs one connection, not the broker; it is logged in full",
    "src/zurau/node/run.py": "hands the error of a handler on to the asyncio future that waits for it",
    "src/zurau/node/threads.py": "carries the error of a job to the loop, where whoever waits gets it",
    "src/zurau/pending.py": "carries the error of a coroutine to whoever asks for its result",
    "src/zurau/simulation/broker.py": "answers as the real connection would, and lets the test see the defect",
    "src/zurau/simulation/world.py": "carries the error of a job to whoever waits, as real threads do",
    "src/zurau/testing/broker.py": "raises what stopped the broker's thread in the thread that waits for it",
}


def test_nothing_is_caught_that_was_not_named(source_files):
    greedy = [
        f"{file.name}:{node.lineno}"
        for file in source_files
        if file.name not in CATCHES_EVERYTHING
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
    ]
    assert not greedy, f"name the errors you expect, or give the reason in {__name__}: {greedy}"


def test_reasons_for_catching_everything_are_still_needed(source_files):
    greedy = {
        file.name
        for file in source_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
    }
    assert set(CATCHES_EVERYTHING) <= greedy, "remove the reasons that nothing needs any more"


#: A simulation exists to find assertions that fail, and to say how it found them.
FINDS_ASSERTIONS = {"src/zurau/simulation/cluster/replica_group.py"}


def test_no_assertion_is_ever_caught(source_files):
    caught = [
        f"{file.name}:{node.lineno}"
        for file in source_files
        if file.name not in FINDS_ASSERTIONS
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and node.type and "AssertionError" in ast.unparse(node.type)
    ]
    assert not caught, f"an assertion that fails is our fault, and nobody's to handle: {caught}"


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in names)
