"""Which faults there are, and which of them a seed has, when."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from zurau.simulation.cluster.controller import CONTROLLER_CRASH_POINTS
from zurau.simulation.cluster.faults import (
    CRASH_POINTS,
    ClockJump,
    Compact,
    Crash,
    CrashAll,
    CrashAt,
    CrashLeader,
    Deafen,
    Expire,
    Fault,
    Isolate,
    LoseController,
    OnePair,
    Pause,
    Reboot,
    Restart,
    Silence,
    SlowDisk,
    Split,
    Transfer,
    Wipe,
)
from zurau.simulation.cluster.swarm import Mode, Swarm
from zurau.simulation.cluster.wider_faults import (
    BreakDown,
    CrashController,
    CrashControllerAt,
    Recreate,
    ReplaceController,
    Reset,
    ResetOften,
    SlowController,
)

KINDS: dict[str, Callable[[int, int, int], Fault]] = {
    kind.__name__: kind
    for kind in (
        Crash, CrashAll, CrashLeader, Pause, Isolate, Deafen, Silence, Split, OnePair, SlowDisk, ClockJump, Wipe,
        Transfer, Restart, Expire, LoseController, Reboot,
        Reset, ResetOften, Recreate, BreakDown, CrashController, ReplaceController, SlowController,
    )
}  # fmt: skip
#: Drawn apart from the others (`swarm.py`).
KINDS_APART: dict[str, Callable[[int, int, int], Fault]] = {"Compact": Compact}
_QUORUM_ONLY = ("Transfer",)
_IN_SYNC_ONLY = (
    "LoseController", "Reboot", "CrashController", "ReplaceController", "SlowController", "CrashControllerAt",
)  # fmt: skip
KIND_NAMES: dict[Mode, tuple[str, ...]] = {
    "quorum": ("CrashAt", *(name for name in KINDS if name not in _IN_SYNC_ONLY)),
    "isr": ("CrashAt", "CrashControllerAt", *(name for name in KINDS if name not in _QUORUM_ONLY)),
}


def plan(swarm: Swarm) -> tuple[Fault, ...]:
    """The faults of a seed."""
    chance = Random(f"faults {swarm.mode} {swarm.seed}")
    faults: list[Fault] = []
    at_ms = 0.0
    while True:
        at_ms += chance.expovariate(1 / swarm.fault_interval_ms)
        if at_ms >= swarm.trouble_ms:
            return tuple(faults)
        kind = chance.choice(swarm.fault_kinds)
        broker = chance.randint(1, swarm.brokers)
        duration_ms = int(chance.choice([30, 200, 800, 2500]) * (0.5 + chance.random()))
        if kind == "CrashAt":
            faults.append(CrashAt(int(at_ms), broker, duration_ms, chance.choice(CRASH_POINTS)))
        elif kind == "CrashControllerAt":
            faults.append(CrashControllerAt(int(at_ms), broker, duration_ms, chance.choice(CONTROLLER_CRASH_POINTS)))
        else:
            faults.append((KINDS | KINDS_APART)[kind](int(at_ms), broker, duration_ms))
