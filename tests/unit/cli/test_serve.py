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
    ("arguments", "words"),
    [
        (["--retention-ms", "soon"], "is not a whole number"),
        (["--node-id", "-5"], "is too small"),
        (["--flush", "never"], "use one of fsync, os"),
        (["--config", "no-such.toml"], "cannot read no-such.toml"),
        (["--no-such-flag"], "there is no flag '--no-such-flag'"),
        (["--retention-mss", "5"], "there is no flag '--retention-mss'; did you mean '--retention-ms'?"),
        (["--kafka", "nowhere"], "is not HOST:PORT"),
        (["--advertise", "nowhere"], "is not HOST:PORT"),
    ],
)
def test_a_wrong_setting_is_wrong_usage_and_refuses_to_start(tmp_path, arguments, words):
    is_refused(start("--dir", str(tmp_path), *arguments), 2, words)


def test_a_wrong_setting_in_the_environment_is_wrong_usage(tmp_path):
    is_refused(start("--dir", str(tmp_path), ZURAU_RETENTION_MS="soon"), 2, "the environment variable ZURAU_RETENTION")


@pytest.mark.parametrize(
    ("content", "words"),
    [('retention_ms = "soon"', "whole number"), ("retention_mss = 5", "did you mean"), ("retention_ms", "not TOML")],
)
def test_a_wrong_setting_in_the_file_is_wrong_usage(tmp_path, content, words):
    file = tmp_path / "zurau.toml"
    file.write_text(content)
    is_refused(start("--dir", str(tmp_path), "--config", str(file)), 2, words)


def test_a_directory_that_cannot_be_used_is_an_error_and_no_wrong_usage(tmp_path):
    (tmp_path / "file").write_text("")
    is_refused(start("--dir", str(tmp_path / "file"), "--kafka", "127.0.0.1:0"), 1, "is not a directory")


@pytest.mark.parametrize("redirected", [">&-", ">/dev/full", "2>&-", "2>/dev/full", "<&-"])
def test_a_broker_serves_whether_or_not_anybody_reads_what_it_says(tmp_path, redirected):
    ready, ready_write = os.pipe()
    command = f"exec {sys.executable} -m zurau serve --kafka 127.0.0.1:0 --dir {tmp_path} --ready-fd {ready_write}"
    process = subprocess.Popen(["sh", "-c", f"{command} {redirected}"], pass_fds=[ready_write])
    os.close(ready_write)
    with os.fdopen(ready) as line:
        assert "ready: kafka=127.0.0.1:" in line.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def is_refused(process: subprocess.Popen[str], code: int, words: str) -> None:
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert words in errors
    assert errors.count("\n") == 1


def test_serving_imports_neither_typer_nor_rich():
    program = "import sys, zurau.cli.serve, zurau.node.run; sys.exit('typer' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
