"""A partition on an invented disk, with time that tests decide."""

from __future__ import annotations

import pytest

from zurau.ids import BrokerId, TopicId, TopicPartition
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.judging import Judges
from zurau.partition.opening import restore_producers
from zurau.partition.partition import Partition
from zurau.records.builder import NewRecord, build_batch
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
    """Opens `t-0`, again if it is there."""

    def open_partition(settings: LogSettings | None = None, *, clean: bool = False) -> Partition:
        log = Log.open(disk, "t-0", settings or LogSettings(), now_ms=clock.now_ms(), clean=clean)
        return Partition(
            TopicPartition("t", 0),
            TOPIC_ID,
            log,
            broker_id=BrokerId(1),
            replicas=[BrokerId(1)],
            producers=restore_producers(disk, log, clock.now_ms()),
            clock=clock,
            flusher=make_world(disk, clock).flusher,
            judges=Judges(make_world(disk, clock).workers),
        )

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
