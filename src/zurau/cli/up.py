"""`zurau up`: a whole cluster on one machine, a process and a directory for each broker."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.options import Format
from zurau.cli.output import say, show_rows
from zurau.errors import SettingsError

if TYPE_CHECKING:
    from zurau.node.process import BrokerProcess

#: Which ports were given to whom, so that clients find them again.
PORTS_FILE = "ports.json"
DEFAULT_HOST = "127.0.0.1"
FIRST_PORT = 9092
#: Between the port for clients and the one for other brokers.
PEER_PORTS_APART = 100
READY_WITHIN_S = 300.0
LOOK_EVERY_S = 0.2
#: How long a broker that ended stays down, at first; twice as long each time that it ends at once, and at most.
RESTART_AFTER_S = 1.0
RESTART_AFTER_MAX_S = 30.0


def up(
    brokers: Annotated[int, typer.Option(min=1, max=99, metavar="N", help="How many.")] = 3,
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where everything is stored.")] = Path(
        "zurau-cluster"
    ),
    kafka: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Of the first broker; the others get the ports after it. [free ones]"),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart/--no-restart", help="Start again what has ended.")] = True,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of `zurau serve`, for all; may be repeated."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run nothing; write files that run it on machines: systemd, Docker, ssh."),
    ] = None,
) -> None:
    """Run a cluster on this machine, until Ctrl-C.

    Each broker is a process of its own, with a directory and a log in DIR. They keep their ports and their data: the
    same command starts the same cluster again.

    \b
    Examples:
      zurau up
      zurau up --brokers 5 --dir /tmp/five --kafka 127.0.0.1:19092
      zurau up --set flush=os --set num_partitions=6
      zurau up --write deployment
    """
    if write is not None:
        from zurau.cli.deployment import write_deployment

        for path in write_deployment(write, brokers):
            say(f"wrote {path}")
        return
    raise typer.Exit(_run(brokers, directory, kafka, _settings_of(setting or []), restarts=restart))


def _settings_of(given: list[str]) -> dict[str, str]:
    from zurau.node.settings import load

    settings: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"--set {text!r} is not NAME=VALUE; for example --set flush=os")
        settings[name.replace("-", "_")] = value
    load(settings)  # a wrong one is told here, and not by every broker
    return settings


@dataclass(frozen=True, slots=True)
class Ports:
    host: str
    kafka: list[int]
    peer: list[int]

    def kafka_address(self, broker: int) -> str:
        return f"{self.host}:{self.kafka[broker - 1]}"

    def peer_address(self, broker: int) -> str:
        return f"{self.host}:{self.peer[broker - 1]}"


def choose_ports(directory: Path, brokers: int, kafka: str | None) -> Ports:
    """Those that were asked for, or had before, or the usual ones, or some that are free."""
    if kafka is not None:
        from zurau.node.settings import parse_address

        host, port = parse_address(kafka, "--kafka")
        return _in_a_row(host, port, brokers) if port else _free(host, brokers)
    with suppress(OSError, ValueError, KeyError):
        found = json.loads((directory / PORTS_FILE).read_text())
        if len(found["kafka"]) >= brokers:
            return Ports(found["host"], found["kafka"], found["peer"])
    usual = _in_a_row(DEFAULT_HOST, FIRST_PORT, brokers)
    return usual if all(map(_is_free, (*usual.kafka, *usual.peer))) else _free(DEFAULT_HOST, brokers)


def _in_a_row(host: str, first: int, brokers: int) -> Ports:
    ports = range(first, first + brokers)
    return Ports(host, list(ports), [port + PEER_PORTS_APART for port in ports])


def _free(host: str, brokers: int) -> Ports:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2 * brokers)]
        for each in sockets:
            each.bind((host, 0))
        ports = [each.getsockname()[1] for each in sockets]
    return Ports(host, ports[:brokers], ports[brokers:])


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((DEFAULT_HOST, port))
        except OSError:
            return False
        return True


def _run(brokers: int, directory: Path, kafka: str | None, settings: dict[str, str], *, restarts: bool) -> int:
    from zurau.node.process import BrokerProcess

    ports = choose_ports(directory, brokers, kafka)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PORTS_FILE).write_text(json.dumps({"host": ports.host, "kafka": ports.kafka, "peer": ports.peer}))
    join = ",".join(map(ports.peer_address, range(1, brokers + 1)))
    processes = {}
    for broker in range(1, brokers + 1):
        own: dict[str, Any] = {
            "kafka": ports.kafka_address(broker),
            "peer": ports.peer_address(broker),
            "join": join,
            "node_id": broker,
        }
        name = directory / f"broker-{broker}"
        processes[broker] = BrokerProcess(name, name.with_suffix(".log"), settings | own)
    with _told_to_stop() as stop:
        supervisor = Supervisor(processes, stop, restarts=restarts)
        try:
            supervisor.start()
            if not stop.is_set():
                _show(processes, ports)
            return supervisor.watch()
        finally:
            supervisor.end()


def _show(processes: dict[int, BrokerProcess], ports: Ports) -> None:
    rows = [
        {
            "broker": broker,
            "kafka": ports.kafka_address(broker),
            "directory": str(process.directory),
            "pid": process.pid,
        }
        for broker, process in processes.items()
    ]
    show_rows(rows, ("broker", "kafka", "directory", "pid"), Format.TABLE)
    say(f"\nexport ZURAU_BOOTSTRAP={','.join(map(ports.kafka_address, processes))}")
    say("Ctrl-C stops them all.")


class Supervisor:
    """Starts brokers, starts them again when they end, and stops them."""

    def __init__(self, processes: dict[int, BrokerProcess], stop: threading.Event, *, restarts: bool) -> None:
        self._processes = processes
        self._stop = stop
        self._restarts = restarts
        #: Of those that have ended: when to start them again, and how long that takes next time.
        self._due_s: dict[int, float] = {}
        self._delays_s: dict[int, float] = {}
        self._started_s: dict[int, float] = {}
        self._ended: set[int] = set()

    def start(self) -> None:
        """Return when all are ready, or it was told to stop."""
        for broker in self._processes:
            self._start(broker)
        for process in self._processes.values():
            process.wait_until_ready(READY_WITHIN_S, gives_up=self._stop.is_set)

    def watch(self) -> int:
        """Until it is told to stop, or nothing runs any more."""
        while not self._stop.wait(LOOK_EVERY_S):
            for broker, process in self._processes.items():
                if process.pid is None:
                    self._has_ended(broker, process)
            if not self._restarts and len(self._ended) == len(self._processes):
                return 1
        return 0

    def end(self) -> None:
        running = [process for process in self._processes.values() if process.pid is not None]
        if running:
            say("stopping")
        for process in running:
            process.ask_to_stop()
        for process in running:
            process.stop()

    def _start(self, broker: int) -> None:
        self._started_s[broker] = time.monotonic()
        self._processes[broker].start()

    def _has_ended(self, broker: int, process: BrokerProcess) -> None:
        now_s = time.monotonic()
        if not self._restarts:
            if broker not in self._ended:
                self._ended.add(broker)
                say(f"broker {broker} has ended with {process.exit_code}; see {process.log}")
        elif broker not in self._due_s:
            delay_s = RESTART_AFTER_S
            if now_s - self._started_s[broker] < RESTART_AFTER_MAX_S:
                delay_s = self._delays_s.get(broker, RESTART_AFTER_S)
            self._delays_s[broker] = min(RESTART_AFTER_MAX_S, 2 * delay_s)
            self._due_s[broker] = now_s + delay_s
            say(f"broker {broker} has ended with {process.exit_code}, and is started again; see {process.log}")
        elif now_s >= self._due_s[broker]:
            del self._due_s[broker]
            self._start(broker)


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Set by Ctrl-C, or SIGTERM."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before: list[Callable[[int, Any], Any] | int | None] = [
        signal.signal(each, lambda *_: stop.set()) for each in numbers
    ]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
