"""docs/http.md is true: its commands are run, in their order, and say what the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from zurau.cli.serve import parser
from zurau.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "http.md"
#: Where the page's broker listens.
WRITTEN = "localhost:8080"
#: Printed between what they say.
MARK = "-- next --"


def examples() -> list[tuple[str, str]]:
    """Commands, each with what it says."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [part.partition("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [(command, said) for command, _, said in found]


def test_every_example_of_the_page_says_what_the_page_says():
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    (serve, ready), *commands = examples()
    flags = parser().parse_args(serve.removeprefix("zurau serve").split())
    assert flags.http in ready, "the ready line names it"
    assert len(commands) > 5
    with Broker(http="127.0.0.1:0") as broker:
        # In one shell: some of them build on others.
        script = "".join(f"{command}\necho\necho {MARK}\n" for command, _ in commands)
        script = script.replace(WRITTEN, f"localhost:{broker.http_address.port}")
        ran = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, timeout=120, check=True)
    for (command, wanted), said in zip(commands, ran.stdout.split(MARK), strict=False):
        assert said.strip() == wanted.strip(), command
    assert ran.stdout.count(MARK) == len(commands)
