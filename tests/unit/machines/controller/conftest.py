"""A controller on an invented log, the brokers that talk to it, and one that follows what it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from zurau.errors import Refused, SettingsError
from zurau.ids import BrokerId, Epoch, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.changes import Change
from zurau.machines.controller.commands import (
    AlterPartition,
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    ControllerCommand,
    CreateTopic,
    RegisterBroker,
)
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage, PartitionImage
from zurau.machines.controller.records import decode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.machine import StateRecord
from zurau.settings import setting
from zurau.simulation.machine_stage import MachineStage

SESSION_MS = 2000
#: The partition that most of these tests are about.
ORDERS = PartitionId(TopicId(bytes(range(16))), 0)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """A few settings of each kind, so that these tests do not depend on what a log offers."""

    retention_ms: int = setting(1000, "retention.ms", broker_name="log.retention.ms", at_least=-1, doc="Age.")
    cleanup_policy: tuple[str, ...] = setting(
        ("delete",), "cleanup.policy", broker_name="log.cleanup.policy", choices=("delete", "compact"), doc="How."
    )
    lag_min_ms: int = setting(0, "min.lag.ms", doc="Smallest.")
    lag_max_ms: int = setting(100, "max.lag.ms", doc="Largest.")
    replication_mode: str = setting("quorum", "replication.mode", choices=("quorum", "isr"), doc="Who elects.")
    flush: str = setting("os", "flush", choices=("fsync", "os"), doc="When it is stored.")

    @property
    def waits_for_flush(self) -> bool:
        return self.flush == "fsync"

    def __post_init__(self) -> None:
        if self.lag_min_ms > self.lag_max_ms:
            raise SettingsError("min.lag.ms is larger than max.lag.ms; make it smaller")


@dataclass(frozen=True)
class Settings:
    num_partitions: int = 4
    default_replication_factor: int = 1
    broker_session_timeout_ms: int = SESSION_MS
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_s: int = 60


class Cluster:
    """A controller, what it wrote, and what that changes for a broker that follows it."""

    def __init__(self) -> None:
        self.stage: MachineStage[ControllerCommand] = MachineStage(lambda: Controller(Settings(), TopicSettings()))
        self._followed = ClusterImage()
        self.changes: list[Change] = []
        self._starts = 0

    @property
    def controller(self) -> Controller:
        machine = self.stage.machine
        assert isinstance(machine, Controller)
        return machine

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    @property
    def records(self) -> list[StateRecord]:
        return self.stage.log

    def ask(self, command: ControllerCommand) -> Any:
        """The reply, once its records are applied; a refusal is raised."""
        first_offset = len(self.records)
        reply = self.stage.answers.pop(self.stage.ask(command))
        for offset in range(first_offset, len(self.records)):
            change = apply_record(self._followed, decode_record(self.records[offset]), offset)
            self.changes += [] if change is None else [change]
        if isinstance(reply, Refused):
            raise reply
        return reply

    # Brokers

    def register(self, broker: int, *, directory: int | None = None, **rest: Any) -> Epoch:
        """A start of a broker, fenced; one disk for each number unless told otherwise."""
        self._starts += 1
        directory_id = bytes([broker if directory is None else directory]) * 16
        return self.ask(RegisterBroker(BrokerId(broker), directory_id, self._starts.to_bytes(16), **rest))

    def beat(self, broker: int, **rest: Any) -> BrokerHeartbeatReply:
        """A heartbeat of a broker that follows the metadata closely."""
        epoch = self.image.brokers[broker].broker_epoch
        return self.ask(BrokerHeartbeat(BrokerId(broker), epoch, len(self.records) - 1, **rest))

    def start(self, broker: int, **rest: Any) -> Epoch:
        epoch = self.register(broker, **rest)
        self.beat(broker)
        return epoch

    def lose_sight_of(self, *brokers: int) -> None:
        """A session passes in which these are not heard of, and all others are."""
        for _ in range(3):
            self.stage.advance(SESSION_MS // 2)
            for broker in set(self.image.brokers) - set(brokers):
                self.beat(broker)

    # A partition in in-sync mode

    @property
    def orders(self) -> PartitionImage:
        partition = self.image.partition(ORDERS)
        assert partition is not None
        return partition

    def create_orders(self, *replicas: int, **configs: str) -> None:
        configs = {"replication.mode": "isr", **configs}
        self.ask(CreateTopic("orders", ORDERS.topic_id, assignments={0: list(replicas)}, configs=configs))

    def replica(self, broker: int) -> ReplicaId:
        found = self.orders.replica_on(BrokerId(broker))
        assert found is not None
        return found

    def in_sync(self) -> list[int]:
        return [replica.broker for replica in self.orders.in_sync]

    def proposal(self, *brokers: int, **changes: Any) -> AlterPartition:
        """What the leader would ask for now."""
        orders, registered = self.orders, self.image.brokers
        fields: dict[str, Any] = {
            "partition": ORDERS,
            "leader": orders.leader,
            "leader_epoch": orders.leader_epoch,
            "partition_epoch": orders.partition_epoch,
            "in_sync": tuple(map(self.replica, brokers)),
            "broker_epochs": tuple(registered[broker].broker_epoch for broker in brokers),
        }
        return AlterPartition(**(fields | changes))

    def alter(self, *brokers: int, **changes: Any) -> PartitionImage:
        return self.ask(self.proposal(*brokers, **changes))


@pytest.fixture
def cluster_of():
    """Makes a cluster with the given number of brokers, numbered from 1."""

    def make(broker_count: int) -> Cluster:
        cluster = Cluster()
        for broker in range(1, broker_count + 1):
            cluster.start(broker)
        return cluster

    return make


@pytest.fixture
def cluster(cluster_of):
    return cluster_of(1)
