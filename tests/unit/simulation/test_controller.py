"""The model of the controller, told by hand what brokers say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from zurau.ids import BrokerId
from zurau.replica.core.identity import ReplicaId
from zurau.simulation.cluster.plan import KIND_NAMES
from zurau.simulation.cluster.swarm import draw
from zurau.simulation.cluster.world import World


class Partition:
    """One partition of three brokers, which do not wait for flushes; nothing happens that the test does not say."""

    def __init__(self) -> None:
        drawn = draw(0, "isr", KIND_NAMES["isr"])
        settings = replace(drawn.settings, waits_for_flush=False, in_sync_min=1)
        world = World(replace(drawn, brokers=3, replicas=3, partitions=1, settings=settings), ())
        self.controller = world.controller
        self.id = world.current[0].partition

    def starts(
        self, broker: int, incarnation: int, *, name: str = "a", works: bool = True, was_clean: bool = True
    ) -> None:
        names = {self.id: ReplicaId(BrokerId(broker), name)}
        self.controller.heard(BrokerId(broker), incarnation, names if works else {}, names, was_clean=was_clean)

    @property
    def leader(self) -> str:
        return str(self.controller.chosen(self.id))


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_a_partition_that_nobody_has_led_had_nothing_to_lose(partition):
    partition.starts(2, 1, works=False, was_clean=False)
    partition.starts(3, 1, works=False, was_clean=False)
    partition.starts(1, 1, name="b", was_clean=False)
    assert partition.leader == "1b"


def test_an_unclean_start_is_a_loss_of_a_replica_that_does_not_work_too(partition):
    for broker in (1, 2, 3):
        partition.starts(broker, 1)
    partition.starts(2, 2, works=False, was_clean=False)
    partition.starts(2, 2)
    partition.starts(1, 2, was_clean=False)
    assert partition.leader == "3a"
    partition.starts(3, 2, was_clean=False)
    assert partition.leader == "3a"


def test_a_disk_that_is_gone_is_a_loss_of_a_replica_that_does_not_work_too(partition):
    for broker in (1, 2, 3):
        partition.starts(broker, 1)
    partition.starts(2, 2, name="b", works=False)
    partition.starts(1, 2, name="b")
    partition.starts(3, 2, was_clean=False)
    assert partition.leader == "3a"
