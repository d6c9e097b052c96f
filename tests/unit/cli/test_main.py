"""The command line as a whole: help, versions, errors, and what it imports."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from zurau import __version__
from zurau.cli import compiled

COMMANDS = [
    ("topic", "create"),
    ("topic", "list"),
    ("topic", "describe"),
    ("topic", "delete"),
    ("topic", "config"),
    ("topic", "add-partitions"),
    ("topic", "purge"),
    ("produce",),
    ("consume",),
    ("group", "list"),
    ("group", "describe"),
    ("group", "reset"),
    ("group", "delete"),
    ("cluster",),
    ("cluster", "health"),
    ("serve",),
    ("log", "dump"),
    ("simulate",),
]


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example(zurau, command):
    shown = zurau(*command, "--help")
    assert shown.returncode == 0
    assert f"zurau {' '.join(command)}" in shown.stdout.lower().partition("example")[2]


def test_the_version_is_told_both_ways(zurau):
    assert zurau("version").stdout.startswith(f"zurau {__version__} ")
    assert zurau("--version").stdout == zurau("version").stdout


def test_the_version_names_what_is_not_compiled_and_what_to_do(monkeypatch):
    monkeypatch.setattr(compiled, "MODULES", {"the broker's walk over records": "zurau/records/_no_such_module"})
    assert compiled.compiled_text() == (
        "not compiled: the broker's walk over records; install a C compiler and then Zurau again"
    )


def test_without_a_broker_the_error_says_what_to_do(zurau):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failed = zurau("topic", "list", "--bootstrap", f"127.0.0.1:{port}", "--timeout", "0.1")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (
        f"zurau: no broker at 127.0.0.1:{port} (Connection refused);"
        " start one with `zurau serve` or pass --bootstrap HOST:PORT\n"
    )


def test_a_command_that_does_not_exist_is_wrong_usage(zurau):
    assert zurau("topics").returncode == 2


@pytest.mark.parametrize("address", ["kafka:port", "kafka:99999"])
def test_an_address_that_is_none_is_wrong_usage(zurau, address):
    failed = zurau("topic", "list", "--bootstrap", address)
    assert failed.returncode == 2
    assert f"Invalid value for --bootstrap: '{address}' is not HOST:PORT" in failed.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("security.protocol=none\n", "is not one of"),
    ],
)
def test_a_wrong_client_config_is_wrong_usage(zurau, tmp_path, content, words):
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_text(content)
    failed = zurau("--client-config", str(file), "topic", "list")
    assert failed.returncode == 2
    assert words in failed.stderr


def test_help_needs_neither_rich_nor_the_client():
    program = (
        "import sys; from zurau.cli.commands import app; app(['--help'], standalone_mode=False);"
        "bad = [name for name in sys.modules if name.split('.')[0] in {'rich', 'msgspec', 'asyncio'}"
        " or name.startswith('zurau.client')]; sys.exit(str(bad) if bad else 0)"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_a_plain_table_needs_no_rich(broker):
    program = (
        f"import sys; from zurau.cli.commands import app;"
        f"app(['cluster', '-b', '{broker.bootstrap}'], standalone_mode=False); sys.exit('rich' in sys.modules)"
    )
    assert python(program).returncode == 0


@pytest.mark.parametrize("command", [(), ("topic",), ("group",), ("log",)], ids=" ".join)
def test_no_line_of_the_overview_is_cut_off(zurau, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    listed = zurau(*command, "--help").stdout.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list", "--timeout", "nan"),
        ("topic", "list", "--timeout", "inf"),
        ("topic", "create", "t", "--partitions", "99999999999"),
        ("topic", "create", "t", "--replicas", "99999999999"),
        ("topic", "add-partitions", "t", "99999999999"),
        ("topic", "purge", "t", "--yes", "--before-offset", f"{2**63}"),
        ("produce", "t", "--partition", "99999999999"),
        ("consume", "t", "--partition", "99999999999"),
    ],
    ids=" ".join,
)
def test_a_number_that_no_request_can_hold_is_wrong_usage(zurau, command):
    refused = zurau(*command)
    assert refused.returncode == 2
    assert "Invalid value for" in refused.stderr
