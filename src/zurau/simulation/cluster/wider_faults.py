"""What happens to connections, to topics, to one partition of a node that goes on, and to the controller."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from zurau.replica.core.events import ShutdownAsked
from zurau.simulation.cluster.faults import Fault

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World


class Reset(Fault):
    """The connections of a broker are reset; one side notices at once, the other a little later."""

    def strike(self, world: World) -> None:
        node = world.node(self.broker)
        for other in world.nodes:
            if other is not node:
                world.reset(node, other, (0, min(self.duration_ms, 200)))


class ResetOften(Fault):
    """Two brokers whose connection does not last, for a while."""

    def strike(self, world: World) -> None:
        rng = Random(self.at_ms)
        one, other = world.node(self.broker), world.node(rng.choice(world.broker_ids))
        at_ms = world.now_ms
        until_ms = at_ms + self.duration_ms
        while one is not other and at_ms < until_ms:
            notice_ms = (rng.random() * 30, rng.random() * 30)
            world.in_trouble(at_ms, lambda notice_ms=notice_ms: world.reset(one, other, notice_ms))  # type: ignore[misc]
            at_ms += 5 + rng.expovariate(1 / 60)


class Recreate(Fault):
    """A topic is deleted and made again under the same name."""

    def strike(self, world: World) -> None:
        world.recreate(self.at_ms % len(world.current))


class BreakDown(Fault):
    """One replica fails on a node that goes on; somebody restarts the node after a while."""

    def strike(self, world: World) -> None:
        node = world.node(self.broker)
        hosts = [host for host in node.hosts.values() if host.is_up]
        if hosts and node.is_up:
            hosts[self.at_ms % len(hosts)].break_down()
            incarnation = node.incarnation
            world.in_trouble(world.now_ms + 4 * self.duration_ms, lambda: self._restart(world, incarnation))

    def _restart(self, world: World, incarnation: int) -> None:
        node = world.node(self.broker)
        if node.incarnation == incarnation and node.is_up:
            for host in list(node.hosts.values()):
                host.tell(ShutdownAsked())
            world.crash(node, 100, loses=False)


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
