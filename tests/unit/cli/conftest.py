"""A broker and a command line: `zurau("topic", "list")` is what a user types.

It runs in this process, from arguments to exit code, because starting Python for each would take most of the time.
Tests of signals, pipes and start-up start processes of their own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from zurau.cli.main import main
from zurau.testing import Broker


class Outcome(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Zurau = Callable[..., Outcome]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def zurau(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Zurau:
    monkeypatch.setenv("ZURAU_BOOTSTRAP", broker.bootstrap)
    # Help is wrapped to the width of the terminal, and nobody knows what that is here.
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, stdin: str = "") -> Outcome:
        file = tmp_path / "stdin"
        file.write_text(stdin)
        with file.open() as opened, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", opened)
            with pytest.raises(SystemExit) as exited:
                main(arguments)
        output, errors = capfdbinary.readouterr()
        return Outcome(int(exited.value.code or 0), output.decode(), errors.decode())

    return run


@pytest.fixture
def unique() -> Callable[[str], str]:
    """A name that no other test uses."""
    return lambda word: f"{word}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(zurau: Zurau, unique: Callable[[str], str]) -> str:
    """A topic with two partitions."""
    name = unique("topic")
    assert zurau("topic", "create", name, "--partitions", "2").returncode == 0
    return name
