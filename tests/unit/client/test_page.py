"""The examples of docs/client.md run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")
ASYNC, SYNC = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(program: str, bootstrap: str) -> list[str]:
    assert "127.0.0.1:9092" in program
    program = program.replace("127.0.0.1:9092", bootstrap)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_example_for_asyncio_reads_all_that_it_wrote(broker):
    lines = run(ASYNC, broker.bootstrap)
    assert lines[0].startswith("stored in orders-")
    assert len(lines) == 102
    assert len(set(lines)) == 102


def test_the_plain_example_reads_all_that_it_wrote(broker):
    assert run(SYNC, broker.bootstrap) == ["10"]
