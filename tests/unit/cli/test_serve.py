"""`zurau serve`: flags from the tables of settings, and a process that comes and goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from zurau.cli.serve import parser
from zurau.node.settings import all_settings


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "zurau", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def test_every_setting_is_a_flag():
    flags = {action.dest for action in parser()._actions}
    assert {setting.name for _, setting in all_settings()} <= flags


def test_help_shows_every_default():
    text = parser().format_help()
    assert "--kafka TEXT" in text
    assert "[127.0.0.1:9092]" in text


def test_a_broker_says_when_it_is_ready_and_stops_when_told(tmp_path):
    process = start("--kafka", "127.0.0.1:0", "--dir", str(tmp_path / "data"))
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert "ready: kafka=127.0.0.1:" in ready
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_settings_come_from_the_environment_and_from_a_file(tmp_path):
    file = tmp_path / "zurau.toml"
    file.write_text(f'dir = "{tmp_path / "from-file"}"\nnode_id = 7\n')
    process = start("--config", str(file), ZURAU_KAFKA="127.0.0.1:0", ZURAU_NODE_ID="8")
    assert process.stdout is not None
    ready = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert f"dir={tmp_path / 'from-file'} node=8" in ready


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--retention-ms", "soon"], 1, "is not a whole number"),
        (["--config", "no-such.toml"], 1, "cannot read no-such.toml"),
        (["--no-such-flag"], 2, "there is no flag '--no-such-flag'"),
        (["--retention-mss", "5"], 2, "there is no flag '--retention-mss'; did you mean '--retention-ms'?"),
        (["--kafka", "nowhere"], 1, "is not HOST:PORT"),
    ],
)
def test_a_wrong_setting_refuses_to_start(tmp_path, arguments, code, words):
    process = start("--dir", str(tmp_path), *arguments)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert words in errors
    assert "Traceback" not in errors


def test_serving_imports_neither_typer_nor_rich():
    program = "import sys, zurau.cli.serve, zurau.node.run; sys.exit('typer' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
