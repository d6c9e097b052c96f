"""What is measured: Zurau, and the peers that can be had on this machine.

Every subject is a process in an empty directory of its own on a free port of 127.0.0.1. A peer that is missing is
left out, with a sentence that says what it needs.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "compatibility"))
# Where this is set, every start would compile every module anew: nobody runs a broker like that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import apache_kafka
from apache_kafka import ApacheKafka, Unavailable
from broker_process import ZurauBroker

#: For benches beside this one: the directory that they come from is on the path from here on.
free_ports, run_tool = apache_kafka.free_ports, apache_kafka.run_tool

#: Subjects that speak Kafka's protocol, and so can be measured with the same client.
ZURAU = "zurau"
ZURAU_OS = "zurau, flush=os"
KAFKA = "Apache Kafka"
REDIS = "Redis Streams"
NATS = "NATS JetStream"
SPEAK_KAFKA = (ZURAU, ZURAU_OS, KAFKA)
#: What Apache Kafka's own start script gives the JVM.
KAFKA_JVM = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


@dataclass(frozen=True)
class Running:
    """A subject that takes requests."""

    name: str
    pid: int
    port: int
    directory: Path

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


def available(names: tuple[str, ...]) -> list[str]:
    """Those that can run here; says of the others why not."""
    found = []
    for name in names:
        try:
            _check(name)
        except Unavailable as missing:
            print(f"{name} is left out: {missing}")
        else:
            found.append(name)
    return found


def _check(name: str) -> None:
    if name == KAFKA:
        from apache_kafka import classpath

        classpath()
    program = {REDIS: "redis-server", NATS: "nats-server"}.get(name)
    if program and shutil.which(program) is None:
        raise Unavailable(f"{program} is not on the PATH")


@contextmanager
def running(name: str, **settings: object) -> Iterator[Running]:
    """Start a subject on an empty directory; it is stopped and its data removed at the end."""
    with tempfile.TemporaryDirectory(prefix="zurau-bench-") as root:
        directory = Path(root)
        if name in (ZURAU, ZURAU_OS):
            flush = {"flush": "os"} if name == ZURAU_OS else {}
            with ZurauBroker(directory, **flush, **settings) as broker:
                yield Running(name, broker.pid, broker.port, directory)
        elif name == KAFKA:
            with ApacheKafka(directory, jvm_options=KAFKA_JVM) as kafka:
                yield Running(name, kafka.pid, kafka.port, directory)
        else:
            with _program(name, directory) as found:
                yield found


def redis_command(directory: Path, port: int) -> list[str]:
    options = {"port": str(port), "bind": "127.0.0.1", "dir": str(directory), "appendonly": "yes", "save": ""}
    return ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", value))]


def nats_command(directory: Path, port: int) -> list[str]:
    return ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(directory)]


@contextmanager
def _program(name: str, directory: Path) -> Iterator[Running]:
    port = free_port()
    command = redis_command(directory, port) if name == REDIS else nats_command(directory, port)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_listening(port)
        yield Running(name, process.pid, port, directory)
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_listening(port: int, patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.001)
    raise TimeoutError(f"nothing listens on port {port} after {patience_s} s")
