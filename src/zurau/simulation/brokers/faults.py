"""What happens to a world of brokers.

Faults are values that are drawn before anything runs, so that a list of them can be shortened while what is left still
breaks something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode
    from zurau.simulation.brokers.swarm import Swarm


#: By then a broker has noted durably how far its logs were flushed.
NOTED_MS = 500
_FLIPS_TRIED = 15


@dataclass(frozen=True, slots=True)
class Fault:
    at_ms: int
    broker: int
    duration_ms: int
    #: Whatever else it needs to draw.
    number: int
    #: It is about what brokers say to each other.
    needs_several: ClassVar[bool] = False
    #: It is not one of the kinds that a seed chooses among, but drawn by itself.
    is_apart: ClassVar[bool] = False

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        meaning = (type(self).__doc__ or "").partition(".")[0].partition(";")[0]
        return f"{type(self).__name__} of {self.broker}, {self.duration_ms} ms: {meaning}"

    def _until_over(self, cluster: SimulatedCluster, mend: Callable[[], None]) -> None:
        cluster.agenda.after(self.duration_ms, mend)


class Kill(Fault):
    """The process is killed; what it wrote is there, flushed or not."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.kill()
        self._until_over(cluster, node.start)


class PowerLoss(Fault):
    """The power goes; what was not flushed is gone, or some of it."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.lose_power()
        self._until_over(cluster, node.start)


class PowerLossAt(Fault):
    """The power goes at one of the next operations of the disk, whoever does it."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.fail_power_after(self.number % 60, self.duration_ms)


class Restart(Fault):
    """The broker is stopped in good order and started again."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.stop(lambda: cluster.agenda.after(self.duration_ms, node.start))


class RestartAndPowerLoss(Fault):
    """The broker is stopped in good order, and the power goes while it stops or starts."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.stop(lambda: cluster.agenda.after(20, node.start))
        cluster.agenda.after(self.number % 30, lambda: node.fail_power_after(self.number % 40, self.duration_ms))


class Pause(Fault):
    """The process is stopped (SIGSTOP), and goes on later."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.paused_until_ms = max(node.paused_until_ms, cluster.agenda.now_ms + self.duration_ms)


class ClockJump(Fault):
    """Its wall clock jumps, forwards or back."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.wall_error_ms += (self.number % 7 - 3) * self.duration_ms * 100


class FullDisk(Fault):
    """There is hardly any room on its disk, and later there is again."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.disk.capacity_bytes = node.disk.used_bytes + self.number % 2000
        self._until_over(cluster, node.make_room)


class FailingFlush(Fault):
    """Flushes fail for a while; afterwards somebody kills the broker and starts it again."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.disk.fail_flushes = True
        cluster.agenda.after(self.number % 20, node.let_flushes_work)
        self._until_over(cluster, lambda: self._restart(cluster, node))

    def _restart(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.kill()
        cluster.agenda.after(30, node.start)


class SlowFlush(Fault):
    """Flushes take much longer."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.flush_slowness = 30.0
        self._until_over(cluster, node.speed_up)


class SlowDisk(Fault):
    """Everything that threads do to the disk takes long."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.disk_slowness = 20.0
        self._until_over(cluster, node.speed_up)


class BusyMachine(Fault):
    """Threads get to run late."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.wake_slowness = 30.0
        self._until_over(cluster, node.speed_up)


class ColdCache(Fault):
    """Nothing of its disk is in memory."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.disk.forget_cached()


class Reset(Fault):
    """Its connections break; what is under way on them is lost."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        for connection in list(node.connections):
            connection.reset()


class Deafen(Fault):
    """Frames to it wait."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        cluster.network.stall(node, self.duration_ms, inwards=True, outwards=False)


class Silence(Fault):
    """Frames from it wait."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        cluster.network.stall(node, self.duration_ms, inwards=False, outwards=True)


class PeerFault(Fault):
    """Something between brokers."""

    needs_several: ClassVar[bool] = True

    def _stall(self, cluster: SimulatedCluster, pairs: Iterable[tuple[int, int]]) -> None:
        """In these directions nothing arrives until it is over."""
        network = cluster.peer_network
        for pair in pairs:
            network.stall(pair)
            self._until_over(cluster, partial(network.mend, pair))

    def _others(self, cluster: SimulatedCluster) -> list[int]:
        return [node.broker_id for node in cluster.nodes if node.broker_id != self.broker]


class PeersReset(PeerFault):
    """Its connections with other brokers break."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        for other in self._others(cluster):
            cluster.peer_network.reset(self.broker, other)


class Isolate(PeerFault):
    """No other broker hears it, and it hears none."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        others = self._others(cluster)
        self._stall(cluster, [(self.broker, other) for other in others] + [(other, self.broker) for other in others])


class PeersDeafen(PeerFault):
    """It hears no other broker, and they hear it."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        self._stall(cluster, [(other, self.broker) for other in self._others(cluster)])


class PeersSilence(PeerFault):
    """No other broker hears it, and it hears them."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        self._stall(cluster, [(self.broker, other) for other in self._others(cluster)])


class OnePair(PeerFault):
    """Two brokers that do not hear each other, while everybody else hears both."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        others = self._others(cluster)
        other = others[self.number % len(others)]
        self._stall(cluster, [(self.broker, other), (other, self.broker)])


class PowerLossOfAll(PeerFault):
    """The power goes for everybody at once."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        for each in cluster.nodes:
            each.lose_power()
            self._until_over(cluster, each.start)


class LeaderLost(PeerFault):
    """Whoever leads one of the partitions is killed, or its power goes."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        leader = cluster.some_leader(self.number) or node
        if self.number % 2:
            leader.kill()
        else:
            leader.lose_power()
        self._until_over(cluster, leader.start)


class LeaderIsolated(PeerFault):
    """No other broker hears whoever leads one of the partitions, or it hears none, or both."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        leader = (cluster.some_leader(self.number) or node).broker_id
        others = [each.broker_id for each in cluster.nodes if each.broker_id != leader]
        how = self.number % 3
        if how != 1:
            self._stall(cluster, [(leader, other) for other in others])
        if how != 2:
            self._stall(cluster, [(other, leader) for other in others])


class Split(PeerFault):
    """The brokers are in two parts that do not hear each other."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        brokers = [each.broker_id for each in cluster.nodes]
        part = {broker for broker in brokers if self.number >> broker & 1}
        pairs = [(one, other) for one in part for other in brokers if other not in part]
        self._stall(cluster, pairs + [(other, one) for one, other in pairs])


class Wipe(PeerFault):
    """Its disk is replaced by an empty one, under another name, if what it had is elsewhere. Once in a history."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        if cluster.may_lose_disk(node):
            node.replace_disk()
            self._until_over(cluster, node.start)


class BitFlip(PeerFault):
    """A bit flips in a log on a leader's disk, once what that holds is elsewhere. Once in a history, without Wipe."""

    is_apart: ClassVar[bool] = True

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        self._choose(cluster, Random(self.number), _FLIPS_TRIED)

    def _choose(self, cluster: SimulatedCluster, chance: Random, tries: int) -> None:
        """What has been safe for a while the broker has noted to be; else a start would take the damage for what a
        crash has torn, and cut it off. So a place is chosen first."""
        node = cluster.some_leader(chance.randrange(1 << 16))
        logs = cluster.logs_on(node) if node is not None else []
        if node is None or not logs:
            cluster.agenda.after(NOTED_MS, partial(self._try_again, cluster, chance, tries))
            return
        path, disk = chance.choice(logs), node.disk
        place = chance.randrange(disk.safe_bytes(path))

        def flip() -> None:
            if node.disk is disk and place < disk.safe_bytes(path) and cluster.may_lose_disk(node):
                cluster.damaged = node
                disk.change_bit(path, place, chance.randrange(8))
                cluster.trace.fault(f"{node}: a bit of byte {place} of {path} flips")
            else:
                self._try_again(cluster, chance, tries)

        cluster.agenda.after(NOTED_MS, flip)

    def _try_again(self, cluster: SimulatedCluster, chance: Random, tries: int) -> None:
        if tries:
            self._choose(cluster, chance, tries - 1)


KINDS: dict[str, type[Fault]] = {
    kind.__name__: kind
    for kind in (
        Kill, PowerLoss, PowerLossAt, Restart, RestartAndPowerLoss, Pause, ClockJump, FullDisk, FailingFlush,
        SlowFlush, SlowDisk, BusyMachine, ColdCache, Reset, Deafen, Silence,
        PeersReset, Isolate, PeersDeafen, PeersSilence, OnePair, PowerLossOfAll,
        LeaderLost, LeaderIsolated, Split, Wipe, BitFlip,
    )
}  # fmt: skip


def plan(swarm: Swarm, operations: Mapping[str, type[Fault]]) -> tuple[Fault, ...]:
    """The faults of a seed, and what operators do meanwhile."""
    name = f"{swarm.brokers} {swarm.mode} {swarm.seed}"
    faults = _draw(swarm, Random(f"faults {name}"), swarm.fault_kinds, KINDS)
    if swarm.has_damage:
        chance = Random(f"damage {name}")  # early, so that it is found while there is trouble
        faults.append(
            BitFlip(
                chance.randrange(swarm.trouble_ms // 2), chance.randint(1, swarm.brokers), 0, chance.randrange(1 << 16)
            )
        )
    if swarm.operation_kinds:
        faults += _draw(swarm, Random(f"deeds {name}"), swarm.operation_kinds, operations)
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def _draw(swarm: Swarm, rng: Random, names: Sequence[str], kinds: Mapping[str, type[Fault]]) -> list[Fault]:
    faults: list[Fault] = []
    at_ms = 0.0
    while True:
        at_ms += rng.expovariate(1 / swarm.fault_interval_ms)
        if at_ms >= swarm.trouble_ms:
            return faults
        kind = kinds[rng.choice(names)]
        duration_ms = int(rng.choice([20, 100, 500, 1500]) * (0.5 + rng.random()))
        faults.append(kind(int(at_ms), rng.randint(1, swarm.brokers), duration_ms, rng.randrange(1 << 16)))
