"""A controller without a log: what it decides is applied at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from zurau.errors import Refused, SettingsError
from zurau.ids import BrokerId
from zurau.machines.controller.changes import Change
from zurau.machines.controller.commands import ControllerCommand, RegisterBroker
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import decode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.machine import StateRecord, Ticket
from zurau.settings import setting


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """A few settings of each kind, so that these tests do not depend on what a log offers."""

    retention_ms: int = setting(1000, "retention.ms", broker_name="log.retention.ms", at_least=-1, doc="Age.")
    cleanup_policy: tuple[str, ...] = setting(
        ("delete",), "cleanup.policy", broker_name="log.cleanup.policy", choices=("delete", "compact"), doc="How."
    )
    lag_min_ms: int = setting(0, "min.lag.ms", doc="Smallest.")
    lag_max_ms: int = setting(100, "max.lag.ms", doc="Largest.")

    def __post_init__(self) -> None:
        if self.lag_min_ms > self.lag_max_ms:
            raise SettingsError("min.lag.ms is larger than max.lag.ms; make it smaller")


@dataclass(frozen=True)
class CreationDefaults:
    num_partitions: int = 4
    default_replication_factor: int = 1


@dataclass
class Cluster:
    """A controller, what it wrote, and what that changes for a broker that follows it."""

    changes: list[Change] = field(default_factory=list)
    records: list[StateRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.controller = Controller(CreationDefaults(), TopicSettings())
        self._followed = ClusterImage()

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def ask(self, command: ControllerCommand) -> Any:
        """The reply, once its records are applied; a refusal is raised."""
        decision = self.controller.decide(Ticket(7), command, now_ms=0)
        for record in decision.records:
            self.records.append(record)
            self.controller.apply(record)
            change = apply_record(self._followed, decode_record(record))
            self.changes += [] if change is None else [change]
        ((ticket, reply),) = decision.replies
        assert ticket == 7
        if isinstance(reply, Refused):
            raise reply
        return reply


@pytest.fixture
def cluster_of():
    """Makes a cluster with the given number of brokers, numbered from 1."""

    def make(broker_count: int) -> Cluster:
        cluster = Cluster()
        for broker in range(1, broker_count + 1):
            cluster.ask(RegisterBroker(BrokerId(broker), bytes(15) + bytes([broker]), bytes(16)))
        return cluster

    return make


@pytest.fixture
def cluster(cluster_of):
    return cluster_of(1)
