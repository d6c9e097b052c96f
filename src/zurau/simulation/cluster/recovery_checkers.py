"""Invariants of what comes back after a failure, and of failures that only somebody else can notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zurau.epochs import Position
from zurau.ids import Epoch, Offset
from zurau.replica.effects import CutEnd, Effect, RestartLog
from zurau.replica.identity import ReplicaId
from zurau.replica.replica import Replica
from zurau.simulation.cluster.checkers import Checker, LookingChecker
from zurau.simulation.cluster.cluster import Cluster
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.storage import StoredLog


class Promised(NamedTuple):
    """What a replica was told to be safe: whoever counts on it counts on this."""

    end: Offset
    checksum: int | None
    epoch: Epoch


class RecoveryKeepsWhatWasFlushed(Checker):
    """What a replica was told to be flushed is there when it starts again, with its last mark, unless it was cut.

    A cut names an epoch of the leader's, which this log need not have: what is left is the last mark before it."""

    watches = (CutEnd, RestartLog)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._promised: dict[ReplicaId, Promised] = {}

    def flushed(self, host: Host) -> None:
        self._promised[host.id] = self._left(host.disk.safe, host.disk.open_cuts)

    def disk_lost(self, host: Host) -> None:
        self._promised.pop(host.id, None)

    def see(self, host: Host, effect: Effect) -> None:
        """A cut may reach the disk before it is flushed, or not."""
        known = self._promised.get(host.id)
        if isinstance(effect, RestartLog):
            self._promised.pop(host.id, None)
        elif isinstance(effect, CutEnd) and known is not None:
            left = self._left(host.disk.safe, [effect.point])
            end = min(known.end, left.end)
            self._promised[host.id] = Promised(end, host.disk.safe.sum_at(end), min(known.epoch, left.epoch))

    def _left(self, log: StoredLog, cuts: Sequence[Position]) -> Promised:
        """What is there, whatever comes of cuts that are not flushed yet."""
        if cuts:
            log = log.copy()
        for cut in cuts:
            log.cut(cut)
        return Promised(log.end_offset, log.sum_at(log.end_offset), log.items[-1].epoch if log.items else -1)

    def started(self, host: Host) -> None:
        known = self._promised.get(host.id)
        if known is None:
            return
        log, view = host.disk.seen, host.disk.view()
        found = log.sum_at(known.end)
        kept = known.end < view.start_offset or known.checksum is None or found == known.checksum
        self.require(kept, lambda: f"{host.name} was told that {known.end} is flushed, and starts with {view.position}")
        self.require(view.epochs.last >= known.epoch, lambda: f"{host.name} has lost the mark of {known.epoch}")


class FailedReplicasAreNoticed(LookingChecker):
    """A replica that has failed on a machine that goes on is not taken for alive for long."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        settings, swarm = cluster.swarm.settings, cluster.swarm
        waits_ms = 2 * (settings.fetch_timeout_ms + settings.fetch_wait_ms + settings.retry_ms)
        self._patience_ms = waits_ms + 24 * swarm.delay_ms + 500

    def look(self) -> None:
        limit_ms = self.cluster.now_ms - self._patience_ms
        for host in self.cluster.hosts:
            if host.is_broken and host.broken_ms < limit_ms:
                for other in self.cluster.hosts:
                    self._look_at(host, other, limit_ms)

    def _look_at(self, broken: Host, other: Host, limit_ms: float) -> None:
        replica = other.replica
        if isinstance(replica, Replica) and other.machine.paused_until_ms < limit_ms:
            hears = replica.hears_leader and replica.leader == broken.id
            self.require(not hears, lambda: f"{other.name} takes {broken.name} for alive")
