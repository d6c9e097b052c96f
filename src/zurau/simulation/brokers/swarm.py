"""What a seed decides: how large and how bad a world of brokers is.

Every seed draws its own parameters, its own few kinds of faults, the settings of its brokers, and the constants inside
them: a world in which everything goes wrong a little finds less than worlds in which a few things go very wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from msgspec import structs

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.replica.core.settings import ReplicaSettings
from zurau.simulation import constants

Mode = Literal["quorum", "isr"]

#: Faults after which a broker starts on what its disk has kept.
CRASHES = ("PowerLoss", "PowerLossAt", "PowerLossAt", "RestartAndPowerLoss", "Kill")
#: The node is another one here.
ROOMS = ("records", "wire", "log", "journal", "partition", "machines", "api", "broker")


@dataclass(frozen=True, slots=True)
class Swarm:
    seed: int
    brokers: int
    #: Of the topics that everybody uses.
    mode: Mode
    #: For how long things go wrong.
    trouble_ms: int
    fault_interval_ms: int
    fault_kinds: tuple[str, ...]
    #: What operators do meanwhile.
    operation_kinds: tuple[str, ...]
    #: A disk changes what it holds.
    has_damage: bool
    delay_ms: float
    #: How often a frame takes twenty times as long.
    straggling: float
    #: At most, each.
    flush_ms: float
    operation_ms: float
    wake_ms: float
    partitions: int
    producers: int
    consumers: int
    #: Of a group.
    members: int
    think_ms: int
    #: Values are mostly as long as they need to be, and some are up to so long.
    longest: int
    request_timeout_ms: int
    log_settings: LogSettings
    broker_settings: BrokerSettings
    #: How long replicas wait for each other.
    timing: ReplicaSettings
    constants: Mapping[str, int]

    def __str__(self) -> str:
        return (
            f"{self.brokers} brokers, {self.mode} mode, {self.partitions} partitions, {self.producers} producers; "
            f"frames take up to {self.delay_ms} ms, a flush up to {self.flush_ms} ms; "
            f"constants: {constants.as_text(self.constants)}"
        )


def draw(seed: int, brokers: int, mode: Mode, kinds: tuple[str, ...], operations: tuple[str, ...] = ()) -> Swarm:
    rng = Random(f"brokers {brokers} {mode} {seed}")
    log_settings = LogSettings(
        segment_bytes=rng.choice([300, 2000, 40_000, 1 << 20]),
        segment_ms=rng.choice([500, 7 * 86_400_000]),
        segment_index_bytes=rng.choice([16, 10 << 20]),
        index_interval_bytes=rng.choice([0, 100, 4096]),
    )
    broker_settings = BrokerSettings(
        offsets_topic_num_partitions=rng.choice([1, 2, 3]),
        offsets_topic_segment_bytes=1 << 20,
        log_cleaner_backoff_ms=rng.choice([25, 300]),
        log_retention_check_interval_ms=rng.choice([25, 300]),
        auto_create_topics_enable=False,
        disk_low_bytes=0,
    )
    patience = Random(f"patience {brokers} {mode} {seed}")
    if brokers > 1:
        session_ms = patience.choice([2000, 800])
        broker_settings = replace(
            broker_settings, broker_session_timeout_ms=session_ms, broker_heartbeat_interval_ms=session_ms // 5
        )
    return Swarm(
        seed=seed,
        brokers=brokers,
        mode=mode,
        trouble_ms=rng.choice([1000, 3000, 6000]),
        fault_interval_ms=rng.choice([100, 300, 1000]),
        fault_kinds=_kinds(rng, kinds),
        operation_kinds=_operations(Random(f"operations {brokers} {mode} {seed}"), operations),
        has_damage=brokers > 1 and Random(f"has damage {brokers} {mode} {seed}").random() < 0.2,
        delay_ms=rng.choice([0.5, 3, 20]),
        straggling=rng.choice([0, 0, 0.02]),
        flush_ms=rng.choice([0.5, 2, 10, 60]),
        operation_ms=rng.choice([0.02, 0.2, 2]),
        wake_ms=rng.choice([0.05, 1, 8]),
        partitions=rng.randint(1, 3),
        producers=rng.randint(1, 4),
        consumers=rng.randint(1, 2),
        members=Random(f"members {brokers} {mode} {seed}").choice([0, 0, 0, 2, 3]) if brokers > 1 else 0,
        think_ms=rng.choice([5, 20, 80]),
        longest=rng.choice([0, 0, 100, 3000]),
        request_timeout_ms=rng.choice([300, 1500, 5000]),
        log_settings=log_settings,
        broker_settings=broker_settings,
        timing=_timing(patience.choice([1, 2, 4]) if brokers > 1 else 1),
        constants=constants.draw(seed, *ROOMS),
    )


def _timing(haste: int) -> ReplicaSettings:
    """The usual one, or one in which there are more elections in the same time."""
    usual = ReplicaSettings()
    return structs.replace(
        usual,
        fetch_timeout_ms=usual.fetch_timeout_ms // haste,
        election_timeout_ms=usual.election_timeout_ms // haste,
        retry_ms=usual.retry_ms // haste,
        fetch_wait_ms=usual.fetch_wait_ms // haste,
        stagger_ms=usual.stagger_ms // haste,
        lag_max_ms=usual.lag_max_ms // haste,
    )


def _kinds(rng: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """A few; and mostly one that shows what the disk has."""
    chosen = set(rng.sample(kinds, rng.randint(1, min(5, len(kinds)))))
    if rng.random() < 0.7:
        chosen.add(rng.choice(CRASHES))
    return tuple(sorted(chosen))


def _operations(rng: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Mostly none."""
    return tuple(sorted(rng.sample(kinds, rng.randint(1, len(kinds))))) if kinds and rng.random() < 0.4 else ()
