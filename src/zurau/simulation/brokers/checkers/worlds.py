"""Invariants of a whole world, looked at now and then: what should have happened by itself, and did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from zurau.ids import BrokerId, Epoch, Offset
from zurau.machines.controller.snapshot import freeze
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Role
from zurau.replica.quorum.majority import majority
from zurau.replica.quorum.replica import Replica
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode

#: How long a leader that hears nobody may lead on, beside what its settings say: bytes under way, disks, threads.
SLACK_MS = 1000


class WorldChecker:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def look(self) -> None:
        raise NotImplementedError

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())


class LeadersHearAMajority(WorldChecker):
    """A leader that was elected, and that no majority of voters can reach, gives up in time; and so does one that
    cannot reach those who lack something. (Who has everything and asks on, unanswered, has turned to nobody else.)"""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        timing = cluster.swarm.timing
        # One that is heard by nobody still hears its followers ask, until they have lost their patience.
        self._patience_ms = (
            timing.check_quorum_ms + timing.fetch_timeout_ms * 2 + cluster.swarm.delay_ms * 40 + SLACK_MS
        )
        #: Since when a leadership is without a majority.
        self._alone_since: dict[tuple[PartitionId, ReplicaId, Epoch], float] = {}

    def look(self) -> None:
        now_ms = self.cluster.agenda.now_ms
        alone = {
            (partition, core.id, core.epoch): node
            for node in self.cluster.nodes
            if node.broker is not None and node.paused_until_ms <= now_ms
            for partition, shell in node.broker.replication.shells.items()
            if isinstance(core := shell.core, Replica) and core.role is Role.LEADER and not shell.is_stopped
            if not self._has_majority(node, partition, core)
        }
        self._alone_since = {each: self._alone_since.get(each, now_ms) for each in alone}
        for (partition, leader, _), since_ms in self._alone_since.items():
            name = self.cluster.partition_name(partition)
            self.require(
                now_ms - since_ms < self._patience_ms,
                lambda name=name, leader=leader: f"{leader} leads {name} all by itself",  # type: ignore[misc]
            )

    def _has_majority(self, node: SimulatedNode, partition: PartitionId, core: Replica) -> bool:
        voters = core.membership.voters
        return sum(self._is_reachable(node, partition, core, voter) for voter in voters) >= majority(len(voters))

    def _is_reachable(self, node: SimulatedNode, partition: PartitionId, core: Replica, voter: ReplicaId) -> bool:
        if voter == core.id:
            return True
        other = self.cluster.node(voter.broker)
        stalled = self.cluster.peer_network.is_stalled
        shell = None if other.watched is None else other.watched.replication.shells.get(partition)
        if shell is None or shell.core.id != voter or stalled((other.broker_id, node.broker_id)):
            return False
        return not stalled((node.broker_id, other.broker_id)) or shell.core.stored == core.log.position


class MetadataIsTheSame(WorldChecker):
    """At the same offset every broker has applied the same metadata, whether from records or from a snapshot."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._sums: dict[Offset, int] = {}
        self._looked_at: dict[BrokerId, tuple[int, Offset]] = {}

    def look(self) -> None:
        for node in self.cluster.nodes:
            if node.broker is None:
                continue
            upto = node.broker.metadata.last_offset
            place = (node.start_count, upto)
            if self._looked_at.get(node.broker_id) != place:
                self._looked_at[node.broker_id] = place
                found = _sum_of(node)
                known = self._sums.setdefault(upto, found)
                self.require(known == found, lambda node=node, upto=upto: f"{node} has another image at {upto}")  # type: ignore[misc]


def _sum_of(node: SimulatedNode) -> int:
    assert node.broker is not None
    # The order in which something was made may be lost in a snapshot.
    return crc32("\n".join(sorted(map(repr, freeze(node.broker.image)()))).encode())


class IdleBrokersSayLittle(WorldChecker):
    """When nothing happens, two brokers soon exchange one question and answer in a while, however many partitions they
    share, and nobody stands for election."""

    #: Questions of one broker to another in five times the longest wait for an answer.
    QUESTIONS_MAX = 7
    #: They need not be at rest at once: leadership goes back to whom it is meant for, logs are cleaned.
    LOOKS_MAX = 20

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._questions: Counter[tuple[BrokerId, BrokerId]] = Counter()

    def look(self) -> None:
        """Only at the end."""

    def asked(self, node: SimulatedNode, to: BrokerId) -> None:
        self._questions[node.broker_id, to] += 1

    def rest(self, run_until: Callable[[float], None]) -> None:
        """Nobody uses these brokers any more."""
        seen: list[tuple[int, bool]] = []
        while len(seen) < self.LOOKS_MAX:
            self._questions.clear()
            epochs = self._epochs()
            run_until(self.cluster.agenda.now_ms + 5 * self.cluster.swarm.timing.fetch_wait_ms)
            seen.append((max(self._questions.values(), default=0), self._epochs() == epochs))
            if seen[-1][0] <= self.QUESTIONS_MAX and seen[-1][1]:
                return
        self.require(False, lambda: f"questions of a pair, and whether nobody was elected: {seen}")

    def _epochs(self) -> list[Epoch]:
        return [core.epoch for core in self._cores()]

    def _cores(self) -> list[ReplicaCore]:
        brokers = [node.broker for node in self.cluster.nodes if node.broker is not None]
        return [shell.core for broker in brokers for shell in broker.replication.shells.values()]


WORLD_CHECKERS: tuple[type[WorldChecker], ...] = (LeadersHearAMajority, MetadataIsTheSame, IdleBrokersSayLittle)
