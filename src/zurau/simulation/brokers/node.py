"""One machine: its disk and its clock stay, its broker's process comes and goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from zurau.broker.broker import Broker
from zurau.broker.identity import Identity, load_identity
from zurau.broker.peers.connections import PeerConnections
from zurau.broker.upkeep import Upkeep
from zurau.errors import CorruptData, ZurauError
from zurau.ids import BrokerId
from zurau.machines.groups.settings import GroupSettings
from zurau.pending import Pending, start
from zurau.ports import Handshake, World
from zurau.simulation.brokers.invariants import broken
from zurau.simulation.brokers.process import Process
from zurau.simulation.disk import UNLIMITED, SimulatedDisk
from zurau.simulation.peers import address_of
from zurau.wire.peer.handshake import MINOR_VERSION

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.connection import Connection

#: Of clusters of several brokers.
CLUSTER_ID = "simulated"
#: How long it takes until somebody starts a broker again that would not start, or lost its power by surprise.
RESTART_MS = 200
#: The first members of a group wait a moment for more, and members that fall silent are soon given up.
GROUP_SETTINGS = GroupSettings(initial_rebalance_delay_ms=50, session_timeout_min_ms=100)
#: How often a stopping process looks whether its threads are done.
_LOOK_MS = 1


class SimulatedNode:
    def __init__(self, cluster: SimulatedCluster, broker_id: BrokerId) -> None:
        self.cluster = cluster
        self.swarm = cluster.swarm
        self.agenda = cluster.agenda
        self.broker_id = broker_id
        self.disk = SimulatedDisk(self.swarm.seed * 16 + broker_id)
        #: How many disks there were before it.
        self.disk_number = 0
        self.process: Process | None = None
        #: It is none of the cluster's any more.
        self.is_retired = False
        #: The broker, while it serves; and from when it is made.
        self.broker: Broker | None = None
        self.watched: Broker | None = None
        self._upkeep: Upkeep | None = None
        self._peers: PeerConnections | None = None
        self.connections: dict[Connection, None] = {}
        self.start_count = 0
        self.operation_count = 0
        chance = Random(f"node {self.swarm.seed} {broker_id}")
        self.clock_rate = 1 + chance.choice([0, 0, -0.02, 0.02])
        self.wall_error_ms = 0.0
        self.paused_until_ms = 0.0
        #: Each as a multiple of what is usual, until somebody says otherwise.
        self.flush_slowness = self.disk_slowness = self.wake_slowness = 1.0
        #: Power fails at the next operation but so many; None: it does not.
        self._power_left: int | None = None
        self._down_ms: float = RESTART_MS

    def __str__(self) -> str:
        return f"broker {self.broker_id}"

    # Its process

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        if self.process is not None or self.is_retired:
            return
        self.start_count += 1
        process = self.process = Process(self, self.start_count)
        self.cluster.trace.note(f"{self} starts")
        process.after(0, partial(self._boot, process))

    def _boot(self, process: Process) -> None:
        world = process.world()
        try:
            broker = self.watched = self._make_broker(process, world)
            opening = start(broker.open())
        except ZurauError as error:
            self._would_not_start(error)
        else:
            opening.then(partial(self._opened, process, broker))

    def _make_broker(self, process: Process, world: World) -> Broker:
        swarm = self.swarm
        settings = (swarm.broker_settings, swarm.log_settings, GROUP_SETTINGS)
        others = tuple(node.broker_id for node in self.cluster.nodes if node is not self)
        if not others:
            return Broker(world, load_identity(world.disk, world.randomness, self.broker_id), *settings)
        # Who is in the cluster is decided elsewhere: these are told.
        is_founder = self.broker_id == 1 and not self.disk_number
        directory_id = bytes([self.broker_id + 16 * self.disk_number]) * 16
        identity = Identity(self.broker_id, CLUSTER_ID, directory_id, is_founder=is_founder)
        broker = Broker(world, identity, *settings, others=others)
        handshake = Handshake(
            self.broker_id,
            CLUSTER_ID,
            identity.directory_id,
            world.randomness.bytes(16),
            is_metadata_empty=False,
            minor_version=MINOR_VERSION,
        )
        self._peers = self.cluster.peer_network.start(
            self.broker_id,
            partial(process.after, 0),
            lambda dial: PeerConnections(
                lambda: handshake, broker, world.clock, world.randomness, dial, world.counters
            ),
        )
        self.tell_addresses()
        broker.use_peers(self._peers)
        return broker

    def tell_addresses(self) -> None:
        """It hears where the others are."""
        if self._peers is not None:
            others = [node.broker_id for node in self.cluster.nodes if node is not self]
            self._peers.set_addresses({other: address_of(other) for other in others})

    def _opened(self, process: Process, broker: Broker, outcome: Pending[None]) -> None:
        # What follows is not done from within the broker, which has its own way with errors.
        if isinstance(outcome.error, ZurauError):
            process.after(0, partial(self._would_not_start, outcome.error))
            return
        if outcome.error is not None:
            self.cluster.unexpected(f"{self} does not start", outcome.error)
            return
        self.broker = broker
        self._upkeep = Upkeep(broker)
        self._upkeep.start()
        self.cluster.trace.note(f"{self} serves")
        process.after(0, partial(self.cluster.watch.opened, self, broker))

    def _would_not_start(self, error: ZurauError) -> None:
        if isinstance(error, CorruptData):
            broken("NoFalseDamage", f"{self} does not start: {error}")
        self.cluster.trace.note(f"{self} does not start: {error}")
        self._is_down()
        self.agenda.after(RESTART_MS, self.start)

    def stop(self, then: Callable[[], None]) -> None:
        """In good order, as `node/run.py` does it: no more requests, threads to their end, everything flushed."""
        process, broker = self.process, self.broker
        if process is None or broker is None or process.is_stopping:
            return
        assert self._upkeep is not None
        self._upkeep.stop()
        self._reset_connections()
        if self._peers is not None:
            self._peers.stop()
        self.broker = None
        process.is_stopping = True
        self._close_when_idle(process, broker, then)

    def hand_over(self, then: Callable[[], None]) -> None:
        """Let others lead what it leads, and stop."""
        process, broker = self.process, self.broker
        if process is not None and broker is not None:
            process.after(0, lambda: start(broker.hand_over()).then(partial(self._handed_over, process, then)))

    def _handed_over(self, process: Process, then: Callable[[], None], outcome: Pending[None]) -> None:
        if outcome.error is not None:
            self.cluster.unexpected(f"{self} does not hand over", outcome.error)
        else:
            self.agenda.after(0, lambda: self.stop(then) if self.process is process else None)

    def _close_when_idle(self, process: Process, broker: Broker, then: Callable[[], None]) -> None:
        if process.is_idle:
            process.perform(broker.close)
            if not process.is_over:
                self.cluster.trace.note(f"{self} has stopped")
                self._is_down()
            then()
        else:
            process.in_thread_after(_LOOK_MS, lambda: self._close_when_idle(process, broker, then))

    def kill(self) -> None:
        """The process ends at once; what it wrote is there, flushed or not."""
        self._is_down()

    def lose_power(self) -> None:
        self._is_down()
        self.disk.crash()

    def replace_disk(self) -> None:
        """The old one is gone, with everything on it."""
        self._is_down()
        self.disk_number += 1
        self.disk = SimulatedDisk(self.swarm.seed * 16 + self.broker_id + 8)

    def retire(self) -> None:
        """It is taken away for good, with its disk."""
        self.is_retired = True
        self.replace_disk()

    def fail_power_after(self, operations: int, down_ms: float) -> None:
        """At the next operation of the disk but so many, whoever does it."""
        self._power_left, self._down_ms = operations, down_ms

    def _is_down(self) -> None:
        process, self.process = self.process, None
        self.broker = self.watched = None
        self._power_left = None
        if process is not None:
            process.end()
            self.cluster.peer_network.stop(self.broker_id)
            self._peers = None
        self._reset_connections()

    def _reset_connections(self) -> None:
        connections, self.connections = self.connections, {}
        for connection in connections:
            connection.server_gone()

    @property
    def is_damaged(self) -> bool:
        """Its disk has changed something that it holds."""
        return self.cluster.damaged is self

    # What its process tells it

    def has_power_for(self, what: str) -> bool:
        self.operation_count += 1
        if self._power_left is None:
            return True
        self._power_left -= 1
        if self._power_left >= 0:
            return True
        self.cluster.trace.fault(f"{self} loses power before it can {what}")
        return False

    def power_failed(self, process: Process) -> None:
        """In the middle of something, which has been unwound."""
        if self.process is process:
            self.lose_power()
            self.agenda.after(self._down_ms, self.start)

    def stepped(self, process: Process) -> None:
        touched = process.observer.touched
        if touched and self.watched is not None and self.process is process:
            self.cluster.watch.look(self, self.watched, touched)
            shells = self.watched.replication._shells
            for key in [key for key in touched if key not in shells or shells[key].is_settled]:
                del touched[key]

    # Faults that end

    def make_room(self) -> None:
        self.disk.capacity_bytes = UNLIMITED

    def let_flushes_work(self) -> None:
        self.disk.fail_flushes = False

    def speed_up(self) -> None:
        self.flush_slowness = self.disk_slowness = self.wake_slowness = 1.0

    def calm_down(self) -> None:
        """Nothing goes wrong any more; a broker that has lost a flush needs to be started again."""
        self.make_room()
        self.let_flushes_work()
        self.speed_up()
        self.paused_until_ms = 0.0
        if self.process is not None:
            self.process.resume()
        self._power_left = None
        if self.broker is not None and any(partition.is_broken for partition in self.broker.partitions.values()):
            self.kill()
        self.start()

    # How long things take

    def read_ms(self, chance: Random) -> float:
        return self._brief_ms(chance)

    def change_ms(self, chance: Random) -> float:
        return self._brief_ms(chance)

    def _brief_ms(self, chance: Random) -> float:
        if self.disk_slowness == 1.0 and chance.random() < 0.7:
            return 0.0
        return chance.random() * self.swarm.operation_ms * self.disk_slowness

    def flush_ms(self, chance: Random) -> float:
        return chance.random() * self.swarm.flush_ms * self.flush_slowness

    def wake_ms(self, chance: Random) -> float:
        """Until a thread gets to run, or the loop hears of what one has done."""
        if self.wake_slowness == 1.0 and chance.random() < 0.5:
            return 0.0
        return chance.random() * self.swarm.wake_ms * self.wake_slowness
