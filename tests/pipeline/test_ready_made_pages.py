"""The first example on the page of each ready-made pipeline, word for word; and every command on those pages parses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import typer

from pyspark_zurau.cli import app
from pyspark_zurau.engine.locate import locate, ready_made
from pyspark_zurau.engine.parameters import read_parameters
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.read import read_document
from zurau.cli.commands import app as zurau_app
from zurau.testing import Broker

PAGES = Path(__file__).parents[2] / "docs" / "pipelines"
NAMES = sorted(ready_made())
PIPELINE = typer.main.get_command(app)


def commands(page: str) -> list[list[str]]:
    """Every `$ zurau ...` of a page, as words."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^\$ zurau (.*)$", text, re.MULTILINE)]


def parsed(words: list[str]) -> dict[str, object]:
    """What a `pipeline` command is told; raises when it does not understand."""
    name, *arguments = words
    return PIPELINE.commands[name].make_context(name, arguments).params


def test_every_ready_made_pipeline_has_a_page_and_a_picture():
    assert {page.stem for page in PAGES.glob("*.md")} == set(NAMES)
    assert {page.stem for page in PAGES.glob("*.svg")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_on_a_page_is_understood(name):
    for words in commands(name):
        if words[0] == "pipeline":
            given = parsed(words[1:]).get("set_") or []
            known = read_parameters(read_document(locate(name)), Problems(name))
            assert {pair.partition("=")[0] for pair in given} <= set(known)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", NAMES)
def test_the_first_example_on_a_page_runs(name, request, run_ready_made, tmp_path, monkeypatch, capfd):
    """Runs of Spark are done in the suite's session; all else is the command line itself."""
    monkeypatch.chdir(tmp_path)
    with Broker(num_partitions=2) as broker, Broker() as second:
        monkeypatch.setenv("ZURAU_BOOTSTRAP", broker.bootstrap)
        places = {"127.0.0.1:9092": broker.bootstrap, "127.0.0.1:9093": second.bootstrap}
        if name == "serve":
            places["postgresql://postgres@127.0.0.1/postgres"] = request.getfixturevalue("postgres")
        for words in commands(name):
            here = [_replaced(word, places) for word in words]
            if here[:2] == ["pipeline", "run"]:
                options = parsed(here[1:])
                run_ready_made(
                    options["file"], broker.bootstrap, **dict(pair.split("=", 1) for pair in options["set_"] or [])
                )
            elif here[0] == "pipeline":
                app(here[1:], standalone_mode=False)
            else:
                zurau_app(here, standalone_mode=False)
    assert "records" in capfd.readouterr().out.lower()


def _replaced(word: str, places: dict[str, str]) -> str:
    for written, real in places.items():
        word = word.replace(written, real)
    return word
