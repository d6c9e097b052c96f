"""An error is caught by whoever knows what to do about it, and by nobody else."""

from __future__ import annotations

import ast

#: Where everything is caught on purpose, and why that is right there.
CATCHES_EVERYTHING = {
    "src/pyspark_zurau/reading/prefetch.py": "carries the error of its thread to the task that takes the items",
    "src/pyspark_zurau/engine/steps.py": "a user's own file may fail in any way when it is imported",
    "src/pyspark_zurau/worker/pool.py": "closes what a task had borrowed, whatever ended the task, and raises it again",
    "src/zurau/chaos/load.py": "whatever a client did not expect itself is a finding, and is told",
    "src/zurau/client/aio/carrier.py": "carries the error of its thread to everybody who waits for a record",
    "src/zurau/api/http/door.py": "a defect of ours costs one answer; it is logged in full, and the client is told",
    "src/zurau/broker/outcomes.py": "work that nobody waits for: whatever went wrong with it is logged and told on",
    "src/zurau/node/connection.py": "a defect of ours costs one connection, not the broker; it is logged in full",
    "src/zurau/node/run.py": "gives back what was taken when the start fails, and raises it again",
    "src/zurau/node/run_futures.py": "hands the error of a handler on to the asyncio future that waits for it",
    "src/zurau/partition/group_flush.py": "carries the error of a job to the loop, where whoever waits gets it",
    "src/zurau/partition/shell.py": "whatever goes wrong in a replica ends that replica, loudly, and no other",
    "src/zurau/pending.py": "carries the error of a coroutine to whoever asks for its result",
    "src/zurau/simulation/broker.py": "answers as the real connection would, and lets the test see the defect",
    "src/zurau/simulation/brokers/connection.py": "a defect that a real connection would hide ends the run",
    "src/zurau/simulation/brokers/fibers.py": "carries the error of a thread's work to whoever resumed it",
    "src/zurau/simulation/brokers/search.py": "whatever a broker did not expect itself is a finding, and is told",
    "src/zurau/simulation/world.py": "carries the error of a job to whoever waits, as real threads do",
    "src/zurau/testing/broker.py": "raises what stopped the broker's thread in the thread that started it",
    "src/zurau/testing/cluster.py": "stops the brokers that have started when one does not, and raises it again",
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


#: Where a broad `except` does not raise a broken invariant again itself, and who does.
BROKEN_LATER = {
    "src/zurau/client/aio/carrier.py": "whoever waits for a record is told, and so is whoever closes the producer",
    "src/zurau/chaos/load.py": "it is a finding, and the run fails with it",
    "src/zurau/simulation/brokers/fibers.py": "carried to whoever waits for the work, as threads do",
    "src/zurau/simulation/brokers/search.py": "it is a finding, and the seed that shows it is told",
    "src/zurau/partition/shell.py": "the replica it concerns is stopped, and says so",
    "src/zurau/node/run_futures.py": "the start waits for that future, and fails with it",
    "src/zurau/partition/group_flush.py": "it is raised on the loop, where the outcome is delivered",
    "src/zurau/testing/broker.py": "it is raised in the thread that started the broker, or stops it",
}


def test_whoever_carries_errors_on_lets_broken_invariants_out(source_files):
    swallowing = [
        f"{file.name}:{node.lineno}"
        for file in source_files
        if file.name.startswith("src/zurau/") and file.name not in BROKEN_LATER
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node) and not _raises_broken(node)
    ]
    assert not swallowing, f"call raise_if_broken there: {swallowing}"


#: A simulation exists to find assertions that fail, and to say how it found them; a process ends by one.
FINDS_ASSERTIONS = {"src/zurau/node/run.py"}


def test_no_assertion_is_ever_caught(source_files):
    caught = [
        f"{file.name}:{node.lineno}"
        for file in source_files
        if file.name not in FINDS_ASSERTIONS
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ExceptHandler) and node.type and "AssertionError" in ast.unparse(node.type)
    ]
    assert not caught, f"an assertion that fails is our fault, and nobody's to handle: {caught}"


def _raises_broken(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(node, ast.Raise)
        or (isinstance(node, ast.Name) and node.id == "raise_if_broken")
        or (isinstance(node, ast.Attribute) and node.attr == "broken")
        for node in ast.walk(handler)
    )


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in names)
