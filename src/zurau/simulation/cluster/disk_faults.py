"""What happens to disks. Drawn apart from the other faults, so that there is some of it in every second world."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.swarm import Swarm

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World


class BitFlip(Fault):
    """A bit flips in something that was flushed; nobody knows until it is read. Not on more disks than can be lost."""

    def strike(self, world: World) -> None:
        host = world.group_of(self.at_ms).host(self.broker)
        if host.is_up and host.group.may_wipe(host):
            host.group.loses(host, disk=True)
            where = host.disk.flip_bit(world.rng)
            world.note(f"!! a bit flips on {host.name}: {where or 'nowhere of interest'}")


class FullDisk(Fault):
    """There is no room for records; for marks and votes there is, because it was kept for them."""

    def strike(self, world: World) -> None:
        node = world.node(self.broker)
        node.is_full = True
        world.at(world.now_ms + self.duration_ms, lambda: setattr(node, "is_full", False))


class FailingFlush(Fault):
    """The next flush fails: what of it is on the disk, nobody knows."""

    def strike(self, world: World) -> None:
        world.node(self.broker).flush_fails = True


class Kill(Fault):
    """The process dies without a word; the kernel writes what it has."""

    def strike(self, world: World) -> None:
        node = world.node(self.broker)
        for host in node.hosts.values():
            host.disk.survives_in_cache = host.is_up
        world.crash(node, self.duration_ms)


class RollBack(Fault):
    """Copies of the disks from before the last start are put back."""

    def strike(self, world: World) -> None:
        world.roll_back(world.node(self.broker), self.duration_ms)


class Compact(Fault):
    """Everybody else forgets the beginning of the logs, while this broker hears of nothing."""

    def strike(self, world: World) -> None:
        others = [each for each in world.broker_ids if each != self.broker]
        world.cut([pair for each in others for pair in ((self.broker, each), (each, self.broker))], self.duration_ms)
        for each in others:
            for host in list(world.node(each).hosts.values()):
                world.in_trouble(world.now_ms + self.duration_ms * 0.9, host.expire)


DISK_KINDS: tuple[Callable[[int, int, int], Fault], ...] = (
    BitFlip,
    FullDisk,
    FailingFlush,
    Kill,
    RollBack,
    Compact,
)


def plan_disks(swarm: Swarm) -> tuple[Fault, ...]:
    """The faults of a seed's disks."""
    rng = Random(f"disks {swarm.mode} {swarm.seed}")
    kinds = rng.sample(DISK_KINDS, rng.choice([0, 0, 1, 1, 2, 3]))
    faults: list[Fault] = []
    at_ms, interval_ms = 0.0, rng.choice([250, 600, 1200])
    while kinds:
        at_ms += rng.expovariate(1 / interval_ms)
        if at_ms >= swarm.trouble_ms:
            break
        duration_ms = int(rng.choice([30, 200, 800, 2500]) * (0.5 + rng.random()))
        faults.append(rng.choice(kinds)(int(at_ms), rng.randint(1, swarm.brokers), duration_ms))
    return tuple(faults)
