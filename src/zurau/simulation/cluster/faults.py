"""What happens to a world.

Faults are values that are drawn before anything runs, so that a list of them can be shortened while what is left still
breaks something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zurau.replica.events import ShutdownAsked, TransferAsked

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World

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

    def strike(self, world: World) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        meaning = (type(self).__doc__ or "").partition(".")[0].partition(";")[0]
        return f"{type(self).__name__} of {self.broker}, {self.duration_ms} ms: {meaning}"


class Crash(Fault):
    """The power goes; what was not flushed is gone, or some of it."""

    def strike(self, world: World) -> None:
        world.crash(world.machine(self.broker), self.duration_ms)


@dataclass(frozen=True, slots=True)
class CrashAt(Fault):
    """The power goes at the next such moment."""

    point: str = ""

    def strike(self, world: World) -> None:
        machine = world.machine(self.broker)
        machine.crash_at = self.point
        machine.crash_down_ms = self.duration_ms

    def __str__(self) -> str:
        return f"Crash of {self.broker}, {self.duration_ms} ms: The power goes at the next moment {self.point}"


class CrashAll(Fault):
    """The power goes for everybody at once."""

    def strike(self, world: World) -> None:
        for machine in world.machines:
            world.crash(machine, self.duration_ms)


class CrashLeader(Fault):
    """The power goes for whoever leads some partition."""

    def strike(self, world: World) -> None:
        for host in world.group_of(self.at_ms).hosts:
            if host.leads:
                world.crash(host.machine, self.duration_ms)


class Pause(Fault):
    """The process is stopped; what comes meanwhile is heard afterwards."""

    def strike(self, world: World) -> None:
        world.machine(self.broker).paused_until_ms = world.now_ms + self.duration_ms


class Isolate(Fault):
    """Nothing goes in or out."""

    def strike(self, world: World) -> None:
        others = [each for each in world.broker_ids if each != self.broker]
        world.cut([pair for each in others for pair in ((self.broker, each), (each, self.broker))], self.duration_ms)


class Deafen(Fault):
    """It is heard, and hears nothing."""

    def strike(self, world: World) -> None:
        world.cut([(each, self.broker) for each in world.broker_ids if each != self.broker], self.duration_ms)


class Silence(Fault):
    """It hears, and is not heard."""

    def strike(self, world: World) -> None:
        world.cut([(self.broker, each) for each in world.broker_ids if each != self.broker], self.duration_ms)


class Split(Fault):
    """Two sides that do not hear each other; the side of each broker is in the bits of a number."""

    def strike(self, world: World) -> None:
        sides = {each: (self.at_ms // 7 + self.broker) >> index & 1 for index, each in enumerate(world.broker_ids)}
        pairs = [(a, b) for a in world.broker_ids for b in world.broker_ids if sides[a] != sides[b]]
        world.cut(pairs, self.duration_ms)


class OnePair(Fault):
    """Two that do not hear each other, while everybody else hears both."""

    def strike(self, world: World) -> None:
        other = world.broker_ids[self.at_ms % len(world.broker_ids)]
        world.cut([(self.broker, other), (other, self.broker)], self.duration_ms)


class SlowDisk(Fault):
    """Flushes take much longer."""

    def strike(self, world: World) -> None:
        machine = world.machine(self.broker)
        machine.slow_flush_ms = 250
        world.at(world.now_ms + self.duration_ms, lambda: setattr(machine, "slow_flush_ms", 0))


class ClockJump(Fault):
    """Its clock goes ahead, for good."""

    def strike(self, world: World) -> None:
        world.machine(self.broker).clock_ahead_ms += self.duration_ms


class Wipe(Fault):
    """The disk is replaced by an empty one; not when too many were for anybody to recover."""

    def strike(self, world: World) -> None:
        world.wipe(world.machine(self.broker), self.duration_ms)


class Transfer(Fault):
    """The leader is asked to let this one lead."""

    def strike(self, world: World) -> None:
        for group in world.groups:
            for host in group.hosts:
                if host.leads:
                    host.tell(TransferAsked(group.host(self.broker).id))


class Restart(Fault):
    """An orderly stop: everything is flushed."""

    def strike(self, world: World) -> None:
        machine = world.machine(self.broker)
        for host in list(machine.hosts.values()):
            host.tell(ShutdownAsked())
        machine.pump()
        world.crash(machine, self.duration_ms, loses=False)


class Reboot(Fault):
    """The power goes for a moment, and whoever leads does not hear from it for a while."""

    def strike(self, world: World) -> None:
        for host in world.group_of(self.at_ms).hosts:
            if host.leads and host.broker != self.broker:
                pair = (self.broker, host.broker)
                world.cut([pair, pair[::-1]], self.duration_ms)
        world.crash(world.machine(self.broker), 10)


class LoseController(Fault):
    """The controller and it do not hear each other."""

    def strike(self, world: World) -> None:
        world.cut([(0, self.broker), (self.broker, 0)], self.duration_ms)


class Compact(Fault):
    """Compaction removes batches from within the logs."""

    def strike(self, world: World) -> None:
        for host in list(world.machine(self.broker).hosts.values()):
            host.compact()


class Expire(Fault):
    """Retention removes the beginning of the logs."""

    def strike(self, world: World) -> None:
        for host in list(world.machine(self.broker).hosts.values()):
            host.expire()
