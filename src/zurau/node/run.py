"""From settings to a serving broker, and back to a clean directory.

`Node` is a broker with its listener, loop-bound threads and upkeep; `serve` runs one until a signal comes. The testing
room runs the same `Node` in a thread.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zurau import __version__
from zurau.api.client import Client
from zurau.api.kafka.session import KafkaSession
from zurau.broker.broker import Broker
from zurau.broker.identity import load_identity
from zurau.broker.upkeep import Upkeep
from zurau.counters import Counters
from zurau.errors import SettingsError
from zurau.ids import Address, BrokerId
from zurau.machines.controller.image import Listener as AdvertisedListener
from zurau.memory import keep_freed_memory
from zurau.node import descriptors
from zurau.node.broken import Fail, end_process, watch
from zurau.node.clock import SystemClock, SystemRandomness, read_boot_id
from zurau.node.connection import Connection
from zurau.node.connections import Connections
from zurau.node.disk import RealDisk
from zurau.node.flush_threads import FlushThreads
from zurau.node.listener import Listener, OpenSession
from zurau.node.run_futures import as_future
from zurau.node.settings import HTTP, Settings, listeners_of, peer_address_of
from zurau.node.threads import Threads
from zurau.node.turns import SWITCH_S, LoopTurns
from zurau.pending import start
from zurau.ports import World, raise_it

if TYPE_CHECKING:
    from zurau.node.cluster import Cluster

log = logging.getLogger("zurau")

#: Those that unpack (one for each of three limits), and some for cold reads.
WORKER_THREADS = 6
#: One that compacts, one that removes deleted topics, one for upkeep's chores, and some for log starts and truncations.
BACKGROUND_THREADS = 6
LOCK_FILE = ".lock"


class Node:
    """One broker process, started and stopped on the running loop."""

    def __init__(self, settings: Settings, fail: Fail = raise_it) -> None:
        self._settings = settings
        self._fail = fail
        self._listeners = [Listener(listener) for listener in listeners_of(settings.node)]
        # Made when it starts, in this order.
        self._lock: IO[bytes]
        self._turns: LoopTurns
        self._workers: Threads
        self._background: Threads
        self._flusher: FlushThreads
        self.broker: Broker
        self._upkeep: Upkeep
        self._connections: Connections
        #: The other brokers, if there are any.
        self._cluster: Cluster | None = None

    async def start(self) -> Address:
        """Open everything and listen; returns the first listener's address with its real port."""
        try:
            for listener in self._listeners:
                await listener.bind()
            self._lock = lock_directory(Path(self._settings.node.dir))
            await self._open_broker()
        except BaseException:
            for listener in self._listeners:
                await listener.stop()
            raise
        self._upkeep = Upkeep(self.broker)
        self._upkeep.start()
        self._connections = Connections(self.broker, self.broker.clock, self._turns)
        self._connections.start()
        for listener in self._listeners:
            opens = self._http_sessions() if listener.settings.name == HTTP else self._open_kafka_session
            listener.listen(self._connections, opens)
        return self._listeners[0].address

    @property
    def http_address(self) -> Address | None:
        """With its real port, once it has started; None if nobody asked for it."""
        return next((each.address for each in self._listeners if each.settings.name == HTTP), None)

    def _open_kafka_session(self, client: Client, connection: Connection) -> KafkaSession:
        return KafkaSession(client, connection, self.broker, self._connections.scratch)

    def _http_sessions(self) -> OpenSession:
        # Not at the top: a broker without this door is ready sooner, and smaller.
        from zurau.api.http.door import Door
        from zurau.api.http.session import HttpSession
        from zurau.api.http.table import ROUTES

        node = self._settings.node
        door = Door(self.broker, ROUTES, node.http_body_max_bytes, node.http_names)
        scratch = self._connections.scratch
        return lambda client, connection: HttpSession(client, connection, door, scratch)

    async def _open_broker(self) -> None:
        settings = self._settings
        loop = asyncio.get_running_loop()
        watch(loop, self._fail)
        counters = Counters()
        self._turns = LoopTurns(loop, counters)
        self._workers = Threads(loop, self._turns, WORKER_THREADS, "worker")
        self._background = Threads(loop, self._turns, BACKGROUND_THREADS, "background")
        disk = RealDisk(settings.node.dir)
        self._flusher = FlushThreads(loop, self._turns, disk if disk.has_quick_flush_all else None)
        clock = SystemClock(loop, self._turns)
        world = World(
            disk,
            clock,
            self._workers,
            self._background,
            self._flusher,
            SystemRandomness(),
            read_boot_id(),
            self._turns,
            counters,
            fail=self._fail,
        )
        try:
            self.broker = await self._make_broker(world)
            await as_future(start(self.broker.open()))
            if self._cluster is not None and not self.broker.identity.is_clustered:
                await self._cluster.open_to_others(self.broker)
        except BaseException:
            if self._cluster is not None:
                await self._cluster.stop()
            self._workers.stop()
            self._background.stop()
            self._flusher.stop()
            self._lock.close()
            raise

    async def _make_broker(self, world: World) -> Broker:
        """Alone, or as one of those that it is told of."""
        settings = self._settings
        parts = (settings.broker, settings.log, settings.groups, settings.node)
        if peer_address_of(settings.node) is None:
            node_id = settings.node.node_id
            identity = load_identity(world.disk, world.randomness, BrokerId(node_id) if node_id >= 0 else None)
            if identity.is_clustered:
                raise SettingsError(
                    f"{settings.node.dir} belongs to a broker of a cluster: start it with --join and the addresses of "
                    "its brokers, or with --peer and where to listen for them"
                )
            return Broker(world, identity, *parts)
        from zurau.node.cluster import Cluster

        self._cluster = cluster = Cluster(settings.node, world, self._turns)
        identity = await cluster.join()
        advertised = [
            AdvertisedListener(listener.settings.name, *cluster.reachable(listener.advertised))
            for listener in self._listeners
        ]
        broker = Broker(
            world,
            identity,
            *parts,
            others=cluster.others,
            listeners=(*advertised, cluster.listener),
            expected_brokers=cluster.expected_brokers,
        )
        if identity.is_clustered:
            cluster.serve(broker)
        return broker

    async def hand_over(self, at_once: asyncio.Event) -> None:
        """Let other brokers lead what this one leads, before it stops; unless it is told to stop at once."""
        handed_over = as_future(start(self.broker.hand_over()))
        handed_over.add_done_callback(lambda _: at_once.set())
        await at_once.wait()

    async def stop(self) -> None:
        """Stop in good order: no new requests, everything flushed, the directory marked clean."""
        await self._stop_serving()
        self.broker.close()
        self._lock.close()

    async def abandon(self) -> None:
        """Stop after a broken invariant, where the process goes on: the directory is left as after a kill."""
        await self._stop_serving()
        self._lock.close()

    async def _stop_serving(self) -> None:
        self._upkeep.stop()
        for listener in self._listeners:
            await listener.stop()
        await self._connections.stop()
        if self._cluster is not None:
            await self._cluster.stop()
        self._workers.stop()
        self._background.stop()
        self._flusher.stop()


def serve(settings: Settings) -> int:
    """Run a broker until SIGINT or SIGTERM. Returns the exit code."""
    if sys.flags.optimize:
        raise SettingsError("python -O removes the checks that protect your data; run without it")
    logging.basicConfig(level=settings.node.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    descriptors.allow_many()
    sys.setswitchinterval(SWITCH_S)
    fail = partial(end_process, Path(settings.node.dir))
    if settings.node.lifeline_fd >= 0:
        threading.Thread(target=_stop_when_closed, args=[settings.node.lifeline_fd], daemon=True).start()
    threading.excepthook = lambda unhandled: fail(unhandled.exc_value)
    try:
        with asyncio.Runner(loop_factory=_fast_loop_factory()) as runner:
            runner.run(_serve_until_signal(settings, fail))
    except AssertionError as error:
        fail(error)
    return 0


def _stop_when_closed(lifeline_fd: int) -> None:
    """Whoever started this broker is gone, and was perhaps killed: nobody else would stop it."""
    try:
        while os.read(lifeline_fd, 1):
            pass
    except OSError as error:
        log.warning("--lifeline-fd %d cannot be read: %s", lifeline_fd, error.strerror)
    else:
        os.kill(os.getpid(), signal.SIGTERM)


async def _serve_until_signal(settings: Settings, fail: Fail) -> None:
    node = Node(settings, fail)
    endpoint = await node.start()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    _announce(settings, endpoint, node)
    gc.freeze()  # modules and what the broker is made of are never garbage, and need not be looked at for it
    gc.enable()
    keep_freed_memory()
    await stopped.wait()
    log.info("stopping")
    stopped.clear()
    await node.hand_over(stopped)
    await node.stop()


def _announce(settings: Settings, endpoint: Address, node: Node) -> None:
    """The one line that says ready: for people on stdout, for programs also on a descriptor of their choice."""
    http = f"http={node.http_address} " if node.http_address is not None else ""
    line = (
        f"zurau {__version__} ready: kafka={endpoint} {http}"
        f"dir={settings.node.dir} node={node.broker.broker_id} flush={settings.log.flush}\n"
    )
    sys.stdout.write(line)
    sys.stdout.flush()
    if settings.node.ready_fd >= 0:
        try:
            os.write(settings.node.ready_fd, line.encode())
            os.close(settings.node.ready_fd)
        except OSError as error:
            raise SettingsError(f"--ready-fd {settings.node.ready_fd} cannot be written: {error.strerror}") from error


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
