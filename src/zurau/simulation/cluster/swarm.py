"""What a seed decides: how large and how bad a world is.

Every seed draws its own parameters, and its own few kinds of faults: a world in which everything goes wrong a little
finds less than worlds in which a few things go very wrong.
"""

from __future__ import annotations

from random import Random
from typing import Literal

import msgspec
from msgspec.structs import replace

from zurau.replica.core.settings import ReplicaSettings

Mode = Literal["quorum", "isr"]


class Swarm(msgspec.Struct, frozen=True):
    seed: int
    mode: Mode
    brokers: int
    clients: int
    think_ms: int
    #: For how long things go wrong.
    trouble_ms: int
    fault_interval_ms: int
    fault_kinds: tuple[str, ...]
    loss: float
    duplication: float
    delay_ms: int
    #: How often a message takes ten times as long, and arrives behind later ones.
    straggling: float
    #: Whether messages of one broker to another arrive in order, as on one connection.
    keeps_order: bool
    flush_ms: int
    settings: ReplicaSettings
    #: How long it may take to send a snapshot.
    snapshot_ms: int
    #: How many of the brokers hold and vote for the partition at first; the others come later.
    replicas: int = 0
    partitions: int = 1
    #: Whether brokers talk through one stream per pair, or about every partition by itself.
    is_coalesced: bool = True
    #: How long the controller's decisions take to be committed.
    commit_ms: int = 0
    #: How long a leader waits for the disk before it can answer a fetch.
    read_ms: int = 0
    #: How long a batch takes between two brokers.
    batch_ms: int = 0

    def __str__(self) -> str:
        network = f"messages take up to {self.delay_ms} ms, {self.loss:.0%} are lost, {self.duplication:.0%} doubled"
        size = f"{self.brokers} brokers, {self.partitions} partitions, {self.clients} clients"
        return f"{size}; {network}; a flush takes up to {self.flush_ms} ms"


def draw(seed: int, mode: Mode, kinds: tuple[str, ...]) -> Swarm:
    rng = Random(f"swarm {mode} {seed}")
    brokers = rng.choice([1, 2, 3, 3, 3, 3, 4, 5, 5])
    settings = ReplicaSettings(
        fetch_timeout_ms=rng.choice([300, 600, 1000]),
        election_timeout_ms=rng.choice([100, 200, 500]),
        retry_ms=rng.choice([50, 100, 250]),
        fetch_wait_ms=rng.choice([20, 100, 200]),
        stagger_ms=rng.choice([30, 150]),
    )
    swarm = Swarm(
        seed=seed,
        mode=mode,
        brokers=brokers,
        clients=rng.randint(1, 4),
        think_ms=rng.choice([5, 20, 100, 2500]),  # the last so rarely that replicas come to rest between
        trouble_ms=rng.choice([2000, 4000, 8000]),
        fault_interval_ms=rng.choice([100, 250, 600, 1200]),
        fault_kinds=tuple(sorted(rng.sample(kinds, rng.randint(1, min(5, len(kinds)))))),
        loss=rng.choice([0, 0, 0.01, 0.1, 0.3]),
        duplication=rng.choice([0, 0, 0.05, 0.3]),
        delay_ms=rng.choice([1, 5, 20, 60]),
        straggling=rng.choice([0, 0, 0.02, 0.15]),
        keeps_order=rng.random() < 0.5,
        flush_ms=rng.choice([1, 3, 10, 40, 120]),
        settings=settings,
        snapshot_ms=Random(f"snapshots {mode} {seed}").choice([1, 100, 3000]),
        replicas=brokers,
        partitions=rng.choice([1, 1, 1, 2, 2, 3, 4]),
        is_coalesced=rng.random() < 0.7,
        commit_ms=rng.choice([0, 2, 20, 100]),
        read_ms=rng.choice([0, 0, 0, 5, 60]),
    )
    if Random(f"topics {mode} {seed}").random() < 0.1:
        swarm = replace(swarm, fault_kinds=tuple(sorted({*swarm.fault_kinds, "Recreate", "BreakDown"})))
    if Random(f"compaction {mode} {seed}").random() < 0.15:
        swarm = replace(swarm, fault_kinds=tuple(sorted({*swarm.fault_kinds, "Compact"})))
    links = Random(f"links {mode} {seed}")
    swarm = replace(
        swarm,
        batch_ms=links.choice([0, 0, 0, 0, 10, 40]),
        settings=replace(
            swarm.settings,
            fetch_max_bytes=links.choice([1, 1 << 20, 1 << 20]),
            high_watermark_delay_ms=links.choice([0, 10, 60]),
            response_max_bytes=links.choice([1, 12, 1 << 20, 1 << 20]),
        ),
    )
    if mode == "isr":
        return _in_sync(swarm, rng)
    return swarm


def _in_sync(swarm: Swarm, rng: Random) -> Swarm:
    settings = replace(
        swarm.settings,
        lag_max_ms=rng.choice([300, 800]),
        in_sync_min=rng.choice([1, 1, 2]) if swarm.brokers > 2 else 1,
        waits_for_flush=rng.random() < 0.5,
    )
    if settings.waits_for_flush:
        return replace(swarm, settings=settings)
    # Nobody waits for the page cache, and it takes its time.
    return replace(swarm, settings=settings, flush_ms=rng.choice([40, 400, 3000]))


def calm(swarm: Swarm) -> Swarm:
    """The same world on a good day."""
    return replace(
        swarm,
        loss=0.0,
        duplication=0.0,
        straggling=0.0,
        keeps_order=True,
        delay_ms=min(swarm.delay_ms, 5),
        flush_ms=2,
        read_ms=0,
    )
