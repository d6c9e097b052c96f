"""`zurau pipeline` where Spark is not installed: it says what it is for and what to install."""

from __future__ import annotations

import importlib

import pytest

from zurau.cli.optional import COMMANDS, run_optional
from zurau.errors import SettingsError


@pytest.fixture
def without_spark(monkeypatch):
    def refuse(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", refuse)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"]])
def test_help_is_given_without_spark_and_says_what_to_install(without_spark, capsys, arguments):
    run_optional("pipeline", arguments)
    told = capsys.readouterr().out
    assert "init, preview, run" in told
    assert 'pip install "zurau[spark]"' in told


def test_a_command_that_needs_spark_is_refused_with_what_to_install(without_spark):
    with pytest.raises(SettingsError, match=r'install it with pip install "zurau\[spark\]"'):
        run_optional("pipeline", ["run", "x.toml"])


def test_the_help_without_spark_names_every_command():
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
    from pyspark_zurau.cli import app

    assert COMMANDS["pipeline"].commands == tuple(command.name for command in app.registered_commands)
