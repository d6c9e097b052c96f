"""What happens to a world.

Faults are values that are drawn before anything runs, so that a list of them can be shortened while what is left still
breaks something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from zurau.replica.events import ShutdownAsked, TransferAsked
from zurau.simulation.cluster.swarm import Mode, Swarm

if TYPE_CHECKING:
    from zurau.simulation.cluster.cluster import Cluster

#: Moments of a replica's life at which a crash hurts most.
CRASH_POINTS = (
    "before SaveVote", "after SaveVote", "before Append", "after Append", "before Flushed", "after Flushed",
    "before CutEnd", "after CutEnd", "before Release", "after Release", "after Announce", "before ReadAndSend",
    "before RestartLog", "after RestartLog",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    at_ms: int
    broker: int
    duration_ms: int

    def strike(self, cluster: Cluster) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        meaning = (type(self).__doc__ or "").partition(".")[0].partition(";")[0]
        return f"{type(self).__name__} of {self.broker}, {self.duration_ms} ms: {meaning}"


class Crash(Fault):
    """The power goes; what was not flushed is gone, or some of it."""

    def strike(self, cluster: Cluster) -> None:
        cluster.crash(cluster.host(self.broker), self.duration_ms)


@dataclass(frozen=True, slots=True)
class CrashAt(Fault):
    """The power goes at the next such moment."""

    point: str = ""

    def strike(self, cluster: Cluster) -> None:
        host = cluster.host(self.broker)
        host.crash_at = self.point
        host.crash_down_ms = self.duration_ms

    def __str__(self) -> str:
        return f"Crash of {self.broker}, {self.duration_ms} ms: The power goes at the next moment {self.point}"


class CrashAll(Fault):
    """The power goes for everybody at once."""

    def strike(self, cluster: Cluster) -> None:
        for host in cluster.hosts:
            cluster.crash(host, self.duration_ms)


class CrashLeader(Fault):
    """The power goes for whoever leads."""

    def strike(self, cluster: Cluster) -> None:
        for host in cluster.hosts:
            if host.leads:
                cluster.crash(host, self.duration_ms)


class Pause(Fault):
    """The process is stopped; what comes meanwhile is heard afterwards."""

    def strike(self, cluster: Cluster) -> None:
        cluster.host(self.broker).paused_until_ms = cluster.now_ms + self.duration_ms


class Isolate(Fault):
    """Nothing goes in or out."""

    def strike(self, cluster: Cluster) -> None:
        others = [each for each in cluster.broker_ids if each != self.broker]
        cluster.cut([pair for each in others for pair in ((self.broker, each), (each, self.broker))], self.duration_ms)


class Deafen(Fault):
    """It is heard, and hears nothing."""

    def strike(self, cluster: Cluster) -> None:
        cluster.cut([(each, self.broker) for each in cluster.broker_ids if each != self.broker], self.duration_ms)


class Silence(Fault):
    """It hears, and is not heard."""

    def strike(self, cluster: Cluster) -> None:
        cluster.cut([(self.broker, each) for each in cluster.broker_ids if each != self.broker], self.duration_ms)


class Split(Fault):
    """Two sides that do not hear each other; the side of each broker is in the bits of a number."""

    def strike(self, cluster: Cluster) -> None:
        sides = {each: (self.at_ms // 7 + self.broker) >> index & 1 for index, each in enumerate(cluster.broker_ids)}
        pairs = [(a, b) for a in cluster.broker_ids for b in cluster.broker_ids if sides[a] != sides[b]]
        cluster.cut(pairs, self.duration_ms)


class OnePair(Fault):
    """Two that do not hear each other, while everybody else hears both."""

    def strike(self, cluster: Cluster) -> None:
        other = cluster.broker_ids[self.at_ms % len(cluster.broker_ids)]
        cluster.cut([(self.broker, other), (other, self.broker)], self.duration_ms)


class SlowDisk(Fault):
    """Flushes take much longer."""

    def strike(self, cluster: Cluster) -> None:
        host = cluster.host(self.broker)
        host.slow_flush_ms = 250
        cluster.at(cluster.now_ms + self.duration_ms, lambda: setattr(host, "slow_flush_ms", 0))


class ClockJump(Fault):
    """Its clock goes ahead, for good."""

    def strike(self, cluster: Cluster) -> None:
        cluster.host(self.broker).clock_ahead_ms += self.duration_ms


class Wipe(Fault):
    """The disk is replaced by an empty one; not when too many were for anybody to recover."""

    def strike(self, cluster: Cluster) -> None:
        cluster.wipe(cluster.host(self.broker), self.duration_ms)


class Transfer(Fault):
    """The leader is asked to let this one lead."""

    def strike(self, cluster: Cluster) -> None:
        target = cluster.host(self.broker).id
        for host in cluster.hosts:
            if host.leads:
                host.tell(TransferAsked(target))


class Restart(Fault):
    """An orderly stop: everything is flushed."""

    def strike(self, cluster: Cluster) -> None:
        host = cluster.host(self.broker)
        host.tell(ShutdownAsked())
        if host.is_up:
            cluster.crash(host, self.duration_ms, loses=False)


class Reboot(Fault):
    """The power goes for a moment, and whoever leads does not hear from it for a while."""

    def strike(self, cluster: Cluster) -> None:
        for host in cluster.hosts:
            if host.leads and host.broker != self.broker:
                pair = (self.broker, host.broker)
                cluster.cut([pair, pair[::-1]], self.duration_ms)
        cluster.crash(cluster.host(self.broker), 10)


class LoseController(Fault):
    """The controller and it do not hear each other."""

    def strike(self, cluster: Cluster) -> None:
        cluster.cut([(0, self.broker), (self.broker, 0)], self.duration_ms)


class Expire(Fault):
    """Retention removes the beginning of the log."""

    def strike(self, cluster: Cluster) -> None:
        cluster.host(self.broker).expire()


KINDS: dict[str, Callable[[int, int, int], Fault]] = {
    kind.__name__: kind
    for kind in (
        Crash, CrashAll, CrashLeader, Pause, Isolate, Deafen, Silence, Split, OnePair, SlowDisk, ClockJump, Wipe,
        Transfer, Restart, Expire, LoseController, Reboot,
    )
}  # fmt: skip
_QUORUM_ONLY = ("Transfer",)
_IN_SYNC_ONLY = ("LoseController", "Reboot")
KIND_NAMES: dict[Mode, tuple[str, ...]] = {
    "quorum": ("CrashAt", *(name for name in KINDS if name not in _IN_SYNC_ONLY)),
    "isr": ("CrashAt", *(name for name in KINDS if name not in _QUORUM_ONLY)),
}


def plan(swarm: Swarm) -> tuple[Fault, ...]:
    """The faults of a seed."""
    chance = Random(f"faults {swarm.mode} {swarm.seed}")
    faults: list[Fault] = []
    at_ms = 0.0
    while True:
        at_ms += chance.expovariate(1 / swarm.fault_interval_ms)
        if at_ms >= swarm.trouble_ms:
            return tuple(faults)
        kind = chance.choice(swarm.fault_kinds)
        broker = chance.randint(1, swarm.brokers)
        duration_ms = int(chance.choice([30, 200, 800, 2500]) * (0.5 + chance.random()))
        if kind == "CrashAt":
            faults.append(CrashAt(int(at_ms), broker, duration_ms, chance.choice(CRASH_POINTS)))
        else:
            faults.append(KINDS[kind](int(at_ms), broker, duration_ms))
