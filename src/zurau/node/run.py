"""From settings to a serving broker, and back to a clean directory.

`Node` is a broker with its listener, loop-bound threads and upkeep; `serve` runs one until a signal comes. The testing
room runs the same `Node` in a thread.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
from pathlib import Path
from typing import IO, TypeVar

from zurau import __version__
from zurau.api.kafka.call import Endpoint
from zurau.broker.broker import Broker
from zurau.broker.identity import load_identity
from zurau.broker.upkeep import Upkeep
from zurau.counters import Counters
from zurau.errors import SettingsError
from zurau.ids import BrokerId
from zurau.memory import keep_freed_memory
from zurau.node import descriptors
from zurau.node.acceptor import bind
from zurau.node.clock import SystemClock, SystemRandomness, read_boot_id
from zurau.node.disk import RealDisk
from zurau.node.listener import Listener
from zurau.node.settings import Settings
from zurau.node.threads import FlushThread, Threads
from zurau.node.turns import LoopTurns
from zurau.pending import Pending, start
from zurau.ports import World

log = logging.getLogger("zurau")

T = TypeVar("T")

WORKER_THREADS = 4
LOCK_FILE = ".lock"


class Node:
    """One broker process, started and stopped on the running loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._listening_at = parse_endpoint(settings.node.kafka, "--kafka")
        self._advertise = parse_endpoint(settings.node.advertise, "--advertise") if settings.node.advertise else None

    async def start(self) -> Endpoint:
        """Open everything and listen; returns the address with its real port."""
        sockets = await bind(self._listening_at.host, self._listening_at.port, "--kafka")
        try:
            self._lock = lock_directory(Path(self._settings.node.dir))
            await self._open_broker()
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
        self._upkeep = Upkeep(self.broker)
        self._upkeep.start()
        self._listener = Listener(self.broker, self.broker.clock, self._turns, self._advertise)
        return self._listener.listen(sockets)

    async def _open_broker(self) -> None:
        settings = self._settings
        loop = asyncio.get_running_loop()
        counters = Counters()
        self._turns = LoopTurns(loop, counters)
        self._workers = Threads(loop, self._turns, WORKER_THREADS, "worker")
        self._flusher = FlushThread(loop, self._turns)
        disk = RealDisk(settings.node.dir)
        clock = SystemClock(loop, self._turns)
        world = World(
            disk, clock, self._workers, self._flusher, SystemRandomness(), read_boot_id(), self._turns, counters
        )
        try:
            identity = load_identity(disk, world.randomness, BrokerId(settings.node.node_id))
            self.broker = Broker(world, identity, settings.broker, settings.log, settings.groups, settings.node)
            await as_future(start(self.broker.open()))
        except BaseException:
            self._workers.stop()
            self._flusher.stop()
            self._lock.close()
            raise

    async def stop(self) -> None:
        """Stop in good order: no new requests, everything flushed, the directory marked clean."""
        self._upkeep.stop()
        await self._listener.stop()
        self._workers.stop()
        self._flusher.stop()
        self.broker.close()
        self._lock.close()


def serve(settings: Settings) -> int:
    """Run a broker until SIGINT or SIGTERM. Returns the exit code."""
    if sys.flags.optimize:
        raise SettingsError("python -O removes the checks that protect your data; run without it")
    logging.basicConfig(level=settings.node.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    descriptors.allow_many()
    with asyncio.Runner(loop_factory=_fast_loop_factory()) as runner:
        runner.run(_serve_until_signal(settings))
    return 0


async def _serve_until_signal(settings: Settings) -> None:
    node = Node(settings)
    endpoint = await node.start()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    _announce(settings, endpoint)
    keep_freed_memory()
    await stopped.wait()
    log.info("stopping")
    await node.stop()


def _announce(settings: Settings, endpoint: Endpoint) -> None:
    """The one line that says ready: for people on stdout, for programs also on a descriptor of their choice."""
    line = (
        f"zurau {__version__} ready: kafka={endpoint} "
        f"dir={settings.node.dir} node={settings.node.node_id} flush={settings.log.flush}\n"
    )
    sys.stdout.write(line)
    sys.stdout.flush()
    if settings.node.ready_fd >= 0:
        try:
            os.write(settings.node.ready_fd, line.encode())
            os.close(settings.node.ready_fd)
        except OSError as error:
            raise SettingsError(f"--ready-fd {settings.node.ready_fd} cannot be written: {error.strerror}") from error


def parse_endpoint(text: str, flag: str) -> Endpoint:
    """HOST:PORT, with IPv6 hosts in brackets, or the same as Kafka writes it: PLAINTEXT://HOST:PORT."""
    if "," in text:
        raise SettingsError(f"{flag} {text!r} names several addresses; a broker has one, for example 127.0.0.1:9092")
    protocol, has_protocol, address = text.rpartition("://")
    if has_protocol and protocol.upper() != "PLAINTEXT":
        raise SettingsError(f"{flag} {text!r} asks for {protocol}, which is not served yet; use PLAINTEXT://{address}")
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{flag} {text!r} is not HOST:PORT; for example 127.0.0.1:9092")
    return Endpoint(host or "0.0.0.0", int(port))  # noqa: S104 - ":9092" means every address, as everywhere


def as_future(pending: Pending[T]) -> asyncio.Future[T]:
    """Let a task wait for a `Pending`."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def finish(outcome: Pending[T]) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(outcome.result())
        except Exception as error:  # noqa: BLE001 - handed on to whoever awaits
            future.set_exception(error)

    pending.then(finish)
    return future


class DirectoryInUse(SettingsError):
    """A broker is running on this directory."""


def lock_directory(directory: Path) -> IO[bytes]:
    """Two brokers on one directory would destroy it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_FILE).open("wb")
    except FileExistsError as error:
        raise SettingsError(f"{directory} is not a directory; choose another --dir") from error
    except OSError as error:
        raise SettingsError(f"cannot use {directory}: {error.strerror}; choose another --dir") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise DirectoryInUse(f"another broker uses {directory}; stop it or choose another --dir") from error
    return lock


def _fast_loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """uvloop when it is installed (`pip install "zurau[fast]"`), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
