"""Runs a client as a process of its own and understands what it prints.

The scripts in clients/ all know the same scenarios and answer in JSON, one object a line:

| scenario  | arguments                                     | answers                                           |
|-----------|-----------------------------------------------|---------------------------------------------------|
| `produce` | topic, count, codec, idempotent, timestamp_ms | `delivered`: partition and offset of every record |
| `consume` | topic, count                                  | `records`                                         |
| `member`  | group, topic, session_timeout_ms              | `assigned`, `revoked`, `record`; at last `left`   |
| `offsets` | topic, timestamp_ms                           | `earliest`, `latest`, `at_time`, `after_all`      |
| `admin`   | topic                                         | what it saw of the topic while changing it        |
| `console` | topic (Java's only)                           | the answers to what consoles and tools ask        |

A member leaves when its input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import environments
import pytest

SCRIPTS = Path(__file__).parent / "clients"
PATIENCE_S = 60


@dataclass
class Client:
    """A client library in one version; `command` may raise `Unavailable`."""

    name: str
    command: Callable[[], list[str]]
    environment: Callable[[], dict[str, str]] = dict

    def run(self, scenario: str, bootstrap: str, **arguments: Any) -> dict[str, Any]:
        """Run a scenario to its end and return what it answered."""
        outcome = subprocess.run(
            [*self.command(), scenario, bootstrap, json.dumps(arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 2,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | self.environment(),
        )
        assert outcome.returncode == 0, (
            f"{self.name} {scenario} failed:\n{outcome.stdout[-2000:]}{outcome.stderr[-4000:]}"
        )
        return dict(json.loads(outcome.stdout.splitlines()[-1]))

    def join(self, bootstrap: str, group: str, topic: str, **options: Any) -> Member:
        """Start a member of a consumer group."""
        arguments = {"group": group, "topic": topic, **options}
        process = subprocess.Popen(
            [*self.command(), "member", bootstrap, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | self.environment(),
        )
        return Member(self.name, process)


@dataclass
class Member:
    """A running member of a group: what it holds, what it has read."""

    name: str
    process: subprocess.Popen[str]
    assigned: set[int] = field(default_factory=set)
    records: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    has_left: bool = False

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if "assigned" in event:
                self.assigned = set(event["assigned"])
            elif "revoked" in event:
                self.assigned = set()
            elif "record" in event:
                self.records.append(event["record"])
            elif "error" in event:
                self.errors.append(event["error"])
            self.has_left |= "left" in event

    def leave(self) -> None:
        """Say goodbye properly."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self._finish()

    def die(self) -> None:
        """Go without a word, as a machine does that loses its power."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._finish()

    def _finish(self) -> None:
        self._reader.join()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


def available(client: Client) -> Client:
    """The client; the test is skipped with the reason where it cannot be had on this machine."""
    try:
        client.command()
        client.environment()
    except environments.Unavailable as missing:
        pytest.skip(f"{client.name}: {missing}")
    return client


def named(*names: str) -> list[Client]:
    return [client for client in CLIENTS if client.name in names]


def wait_until(what: str, is_true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for other processes; fails with `what` when they do not get there."""
    deadline = time.monotonic() + patience_s
    while not is_true():
        assert time.monotonic() < deadline, f"not within {patience_s} s: {what}"
        time.sleep(0.02)


def _python_client(script: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(SCRIPTS / script)]


def _old_client(name: str, script: str) -> Client:
    return Client(name, lambda: [environments.old_client_python(name), str(SCRIPTS / script)])


CLIENTS = [
    Client("confluent-kafka", _python_client("confluent_client.py")),
    Client("kafka-python", _python_client("kafka_python_client.py")),
    Client("aiokafka", _python_client("aiokafka_client.py")),
    Client(
        "kafkajs",
        lambda: ["node", str(SCRIPTS / "kafkajs_client.js")],
        lambda: {"NODE_PATH": environments.kafkajs_modules()},
    ),
    Client("java", lambda: environments.java_program("JavaClient")),
    Client("franz-go", lambda: [environments.franz_go()]),
    _old_client("confluent-kafka-1.9.2", "confluent_client.py"),
    _old_client("kafka-python-2.0.2", "kafka_python_client.py"),
]
