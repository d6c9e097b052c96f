"""A partition on an invented disk, with time that tests decide."""

from __future__ import annotations

from functools import partial

import pytest

from zurau.ids import BrokerId, TopicId, TopicPartition
from zurau.journal.records import ReplicaFacts
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.opening import restore_producers
from zurau.partition.partition import Partition
from zurau.partition.replicas import make_quorum_replica
from zurau.partition.unpacking import Unpacking
from zurau.partition.validation import RecordValidator
from zurau.records.builder import NewRecord, build_batch
from zurau.replica.core.identity import ReplicaId
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world

TOPIC_ID = TopicId(b"0123456789abcdef")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(1)


@pytest.fixture
def open_partition(disk, clock):
    """Opens a partition of `t`, again if it is there. This broker is its only voter, and leads it."""

    def open_partition(settings: LogSettings | None = None, *, clean: bool = False, number: int = 0) -> Partition:
        log = Log.open(disk, f"t-{number}", settings or LogSettings(), now_ms=clock.now_ms(), clean=clean)
        world = make_world(disk, clock)
        replica_id = ReplicaId(BrokerId(1), "a")
        restore = partial(restore_producers, disk, log, clock.now_ms())
        partition = Partition(
            TopicPartition("t", number),
            TOPIC_ID,
            log,
            replica=make_quorum_replica(replica_id, (replica_id,), log, ReplicaFacts(), world.randomness),
            producers=restore(),
            restore_producers=restore,
            world=world,
            validator=RecordValidator(Unpacking(world.workers)),
        )
        partition.start()
        clock.advance(1)
        return partition

    return open_partition


@pytest.fixture
def partition(open_partition) -> Partition:
    return open_partition()


@pytest.fixture
def batch(clock):
    """Makes a batch of these values as of now, in memory that may be stamped."""

    def batch(*values: bytes, key: bytes | None = None, **facts) -> memoryview:
        records = [NewRecord(key, value, timestamp=clock.now_ms()) for value in values]
        return memoryview(build_batch(records, **facts))

    return batch
