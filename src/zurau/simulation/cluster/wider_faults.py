"""What happens to connections, to topics, to one partition of a machine that goes on, and to the controller."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from zurau.replica.events import ShutdownAsked
from zurau.simulation.cluster.faults import Fault

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World


class Reset(Fault):
    """The connections of a broker are reset; one side notices at once, the other a little later."""

    def strike(self, world: World) -> None:
        machine = world.machine(self.broker)
        for other in world.machines:
            if other is not machine:
                world.reset(machine, other, (0, min(self.duration_ms, 200)))


class ResetOften(Fault):
    """Two brokers whose connection does not last, for a while."""

    def strike(self, world: World) -> None:
        chance = Random(self.at_ms)
        one, other = world.machine(self.broker), world.machine(chance.choice(world.broker_ids))
        at_ms = world.now_ms
        until_ms = at_ms + self.duration_ms
        while one is not other and at_ms < until_ms:
            notice_ms = (chance.random() * 30, chance.random() * 30)
            world.in_trouble(at_ms, lambda notice_ms=notice_ms: world.reset(one, other, notice_ms))  # type: ignore[misc]
            at_ms += 5 + chance.expovariate(1 / 60)


class Recreate(Fault):
    """A topic is deleted and made again under the same name."""

    def strike(self, world: World) -> None:
        world.recreate(self.at_ms % len(world.current))


class BreakDown(Fault):
    """One replica fails on a machine that goes on; somebody restarts the machine after a while."""

    def strike(self, world: World) -> None:
        machine = world.machine(self.broker)
        hosts = [host for host in machine.hosts.values() if host.is_up]
        if hosts and machine.is_up:
            hosts[self.at_ms % len(hosts)].break_down()
            life = machine.life
            world.in_trouble(world.now_ms + 4 * self.duration_ms, lambda: self._restart(world, life))

    def _restart(self, world: World, life: int) -> None:
        machine = world.machine(self.broker)
        if machine.life == life and machine.is_up:
            for host in list(machine.hosts.values()):
                host.tell(ShutdownAsked())
            world.crash(machine, 100, loses=False)


class CrashController(Fault):
    """The controller fails; after a while there is another."""

    def strike(self, world: World) -> None:
        world.controller.crash(self.duration_ms)


@dataclass(frozen=True, slots=True)
class CrashControllerAt(Fault):
    """The controller fails at the next such moment: while an in-sync set changes, for one."""

    point: str = ""

    def strike(self, world: World) -> None:
        world.controller.crash_at = self.point
        world.controller.crash_down_ms = self.duration_ms

    def __str__(self) -> str:
        return f"CrashController, {self.duration_ms} ms: The controller stops at the next moment {self.point}"


class ReplaceController(Fault):
    """There is another controller, and some brokers do not know it yet; nor does the one that was."""

    def strike(self, world: World) -> None:
        misled = tuple(broker for broker in world.broker_ids if (self.at_ms >> broker) & 1 or broker == self.broker)
        world.controller.replace(misled, self.duration_ms)


class SlowController(Fault):
    """What the controller decides takes long to be committed."""

    def strike(self, world: World) -> None:
        controller, usual_ms = world.controller, world.swarm.commit_ms
        controller.commit_ms = 400
        world.at(world.now_ms + self.duration_ms, lambda: setattr(controller, "commit_ms", usual_ms))
