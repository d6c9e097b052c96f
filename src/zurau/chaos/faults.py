"""What can go wrong with real brokers, how it is done to them, and how it ends.

A fault is a generator: up to its `yield` it breaks something, after it it mends that again. What it yields is which
brokers it hit. How long things stay broken is drawn by whoever runs it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from zurau.chaos.load import GROUP_NAME
from zurau.client.cluster import Cluster as ClusterClient
from zurau.testing.cluster import Cluster

Breaking = Iterator[set[int]]

FLAPS = 6
FLAP_S = 0.4
SLOW_S = 0.1


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster, and how to choose in it."""

    cluster: Cluster
    topic: str
    partition_count: int
    random: Random

    def leader(self) -> int:
        """Who leads a partition that is drawn."""
        return self.cluster.leader_of(self.topic, self.random.randrange(self.partition_count))

    def any_broker(self) -> int:
        return self.random.choice(self.cluster.brokers)

    def some_brokers(self, count: int) -> list[int]:
        return sorted(self.random.sample(self.cluster.brokers, count))

    def controller(self) -> int:
        with ClusterClient(self.cluster.bootstrap) as client:
            while True:
                client.retry(lambda: client.refresh(()))
                if client.metadata.controller_id in self.cluster.brokers:
                    return client.metadata.controller_id
                time.sleep(0.05)

    def coordinator(self) -> int:
        """Who looks after the group that reads."""
        with ClusterClient(self.cluster.bootstrap) as client:
            return client.retry(lambda: client.coordinator_of(GROUP_NAME))

    def start_again(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.start_again(broker)
        self.cluster.wait_until_ready(*brokers)


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    run: Callable[[Scene], Breaking]
    #: Whether partitions are counted as hit that the brokers led, or those that they did not lead.
    hits_led: bool = True
    brokers_min: int = 2
    #: One broker dies, and what it led has another leader.
    is_death: bool = False


def _killed(choose: Callable[[Scene], int]) -> Callable[[Scene], Breaking]:
    def run(scene: Scene) -> Breaking:
        broker = choose(scene)
        scene.cluster.kill(broker)
        yield {broker}
        scene.start_again(broker)

    return run


def _paused(choose: Callable[[Scene], int]) -> Callable[[Scene], Breaking]:
    def run(scene: Scene) -> Breaking:
        broker = choose(scene)
        scene.cluster.pause(broker)
        yield {broker}
        scene.cluster.resume(broker)

    return run


def _minority_killed(scene: Scene) -> Breaking:
    brokers = scene.some_brokers((len(scene.cluster.brokers) - 1) // 2)
    for broker in brokers:
        scene.cluster.kill(broker)
    yield set(brokers)
    scene.start_again(*brokers)


def _all_killed(scene: Scene) -> Breaking:
    for broker in scene.cluster.brokers:
        scene.cluster.kill(broker)
    yield set(scene.cluster.brokers)
    scene.start_again(*scene.cluster.brokers)


def _link_cut(scene: Scene) -> Breaking:
    a, b = scene.some_brokers(2)
    scene.cluster.cut(a, b)
    yield {a, b}
    scene.cluster.heal()


def _link_cut_one_way(scene: Scene) -> Breaking:
    a, b = scene.random.sample(scene.cluster.brokers, 2)
    scene.cluster.cut(a, b, one_way=True)
    yield {a, b}
    scene.cluster.heal()


def _leader_isolated(scene: Scene) -> Breaking:
    broker = scene.leader()
    scene.cluster.isolate(broker)
    yield {broker}
    scene.cluster.heal()


def _split(scene: Scene) -> Breaking:
    """2-1, 3-2: a majority and a minority that do not hear each other."""
    minority = scene.some_brokers((len(scene.cluster.brokers) - 1) // 2)
    scene.cluster.split(tuple(minority), tuple(set(scene.cluster.brokers) - set(minority)))
    yield set(minority)
    scene.cluster.heal()


def _link_flapping(scene: Scene) -> Breaking:
    a, b = scene.some_brokers(2)
    for _ in range(FLAPS):
        scene.cluster.cut(a, b)
        time.sleep(scene.random.uniform(0, FLAP_S))
        scene.cluster.heal()
        time.sleep(scene.random.uniform(0, FLAP_S))
    yield {a, b}


def _link_slow(scene: Scene) -> Breaking:
    a, b = scene.some_brokers(2)
    scene.cluster.slow(a, b, SLOW_S)
    yield {a, b}
    scene.cluster.heal()


def _disk_full(scene: Scene) -> Breaking:
    """Every write to a file fails, by a limit of the system on the running process; and then there is room again."""
    broker = scene.leader()
    pid = scene.cluster.pid_of(broker)
    assert pid is not None, "a leader runs"
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    yield {broker}
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def _disk_wiped(scene: Scene) -> Breaking:
    broker = scene.any_broker()
    scene.cluster.wipe(broker)
    yield {broker}
    scene.start_again(broker)


def _rolling_restart(scene: Scene) -> Breaking:
    for broker in scene.cluster.brokers:
        scene.cluster.restart(broker)
    yield set(scene.cluster.brokers)


FAULTS = (
    Fault("leader killed", _killed(Scene.leader), is_death=True),
    Fault("follower killed", _killed(Scene.any_broker), hits_led=False),
    Fault("controller killed", _killed(Scene.controller), is_death=True),
    Fault("coordinator killed", _killed(Scene.coordinator), is_death=True),
    Fault("minority killed", _minority_killed, brokers_min=3),
    Fault("all killed", _all_killed),
    Fault("leader paused", _paused(Scene.leader)),
    Fault("follower paused", _paused(Scene.any_broker), hits_led=False),
    Fault("controller paused", _paused(Scene.controller)),
    Fault("link cut", _link_cut),
    Fault("link cut one way", _link_cut_one_way),
    Fault("link flapping", _link_flapping),
    Fault("link slow", _link_slow),
    Fault("leader isolated", _leader_isolated, brokers_min=3),
    Fault("cluster split", _split, brokers_min=3),
    Fault("disk full", _disk_full),
    Fault("disk wiped", _disk_wiped, brokers_min=3),
    Fault("rolling restart", _rolling_restart),
)
