"""Invariants of the sessions between brokers: what absence says, and that whoever is quiesced will be woken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zurau.broker.broker import Broker
from zurau.ids import BrokerId
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetch
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Role
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.sessions import Sessions
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.brokers.node import SimulatedNode

Standing = dict[PartitionId, Fetch]
Said = SessionRequest | SessionResponse


class SessionChecker:
    def said(self, node: SimulatedNode, broker: Broker, sessions: Sessions, to: BrokerId, it: Said) -> None:
        """Something is about to be sent."""

    def heard(self, node: SimulatedNode, broker: Broker, sessions: Sessions, sender: BrokerId, it: Said) -> None:
        """Something has arrived, and the replicas here are about to be told."""

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())


class AbsentMeansUnchanged(SessionChecker):
    """Whoever a request does not name asks what it asked before, and whoever a response does not name leads as before.

    What a session says for a replica that says nothing is looked up at that replica. One that has decided something and
    waits for its disk has not said so yet.
    """

    def said(self, node: SimulatedNode, broker: Broker, sessions: Sessions, to: BrokerId, it: Said) -> None:
        named = {partition for partition, _ in it.messages}
        peer = sessions.peers[to]
        if isinstance(it, SessionRequest):
            for partition, fetch in peer.client.standing.items():
                if partition not in named:
                    shell = broker.replication._shells.get(partition)
                    asks = shell is not None and (not shell.is_settled or self._asks(shell.core, fetch))
                    self.require(asks, lambda fetch=fetch: f"{node} is silent and does not ask {fetch}")  # type: ignore[misc]
        elif not it.is_unknown:
            for partition, fetch in peer.server.standing.items():
                if partition not in named:
                    shell = broker.replication._shells.get(partition)
                    leads = shell is not None and (not shell.is_settled or self._leads(shell.core, fetch))
                    self.require(leads, lambda fetch=fetch: f"{node} is silent and does not lead {fetch}")  # type: ignore[misc]

    @staticmethod
    def _asks(core: ReplicaCore, fetch: Fetch) -> bool:
        is_flushing = core.stored != core.log.position
        if core.role is Role.PROSPECTIVE or (core.role is Role.FOLLOWER and is_flushing):
            # Whoever asks for votes does not ask for records anew, and may have flushed something since: it has more.
            # So has one that was told then who leads, and asks that one as soon as it has flushed everything.
            return core.epoch == fetch.epoch and core.stored >= fetch.position
        return core.role is Role.FOLLOWER and (core.epoch, core.stored, core.high_watermark) == (
            fetch.epoch, fetch.position, fetch.high_watermark,
        )  # fmt: skip

    @staticmethod
    def _leads(core: ReplicaCore, fetch: Fetch) -> bool:
        return core.role is Role.LEADER and core.epoch == fetch.epoch


class SessionsAgree(SessionChecker):
    """What both sides of a session take absence for is the same, whenever one has heard the other.

    Who asks a second question does not know yet what the answer to the first uses up: it may believe more than is so.
    """

    def __init__(self) -> None:
        #: What the last message of one broker to another took absence for.
        self._last: dict[tuple[type, BrokerId, BrokerId], tuple[int, int, Standing]] = {}
        self._is_second: dict[tuple[BrokerId, BrokerId], bool] = {}

    def said(self, node: SimulatedNode, broker: Broker, sessions: Sessions, to: BrokerId, it: Said) -> None:
        if isinstance(it, SessionRequest) or not it.is_unknown:
            peer = sessions.peers[to]
            standing = peer.client.standing if isinstance(it, SessionRequest) else peer.server.standing
            self._last[type(it), node.broker_id, to] = (it.session, it.number, standing)
            if isinstance(it, SessionRequest):
                self._is_second[node.broker_id, to] = peer.client.open_requests > 1

    def heard(self, node: SimulatedNode, broker: Broker, sessions: Sessions, sender: BrokerId, it: Said) -> None:
        peer = sessions.peers[sender]
        session, number, meant = self._last.get((type(it), sender, node.broker_id), (0, 0, {}))
        if (session, number) != (it.session, it.number):
            return  # an old one: nothing that it says is taken for anything else than what it says in words
        if isinstance(it, SessionRequest):
            if any(reply.number == it.number for to, reply in sessions._replies if to == sender):
                return
            heard = peer.server.asked_for
            meant = {each: fetch for each, fetch in meant.items() if each not in peer.server.closing}
            if self._is_second[sender, node.broker_id]:
                meant = {each: fetch for each, fetch in meant.items() if each in heard}
            same = _places(heard) == _places(meant)
            self.require(same, lambda: f"{sender} asks {meant}, and {node} hears {heard}")
        elif not peer.client.open_requests:
            missing = peer.client.answered_for.keys() - meant.keys()
            self.require(not missing, lambda: f"{node} believes that {sender} answers {missing}")


def _places(standing: Standing) -> dict[PartitionId, tuple[object, ...]]:
    """Without high watermarks: one that has moved is told in an answer that the other side may not have yet."""
    return {each: (fetch.sender, fetch.epoch, fetch.position) for each, fetch in standing.items()}


class QuiescedAreWoken(SessionChecker):
    """Whoever is quiesced has a session that speaks for the other side, and that would say when it ends."""

    #: Looked at with every so many messages, since it looks at all replicas: one that nobody would wake stays so.
    EVERY = 4

    def __init__(self) -> None:
        self._count = 0

    def said(self, node: SimulatedNode, broker: Broker, sessions: Sessions, to: BrokerId, it: Said) -> None:
        self._check(node, broker, sessions)

    def heard(self, node: SimulatedNode, broker: Broker, sessions: Sessions, sender: BrokerId, it: Said) -> None:
        self._check(node, broker, sessions)

    def _check(self, node: SimulatedNode, broker: Broker, sessions: Sessions) -> None:
        self._count += 1
        if self._count % self.EVERY:
            return
        for partition, shell in broker.replication._shells.items():
            core = shell.core
            for other in core.quiesced_with if shell.is_settled and not shell.is_stopped else ():
                peer = sessions.peers[other.broker]
                side = peer.server if core.role is Role.LEADER else peer.client
                speaks = partition in side.quiesced or any(partition == about for about, _ in side.notices)
                self.require(
                    speaks,
                    lambda partition=partition, other=other: f"{node}: {partition} is quiesced with {other}",  # type: ignore[misc]
                )


SESSION_CHECKERS: tuple[type[SessionChecker], ...] = (AbsentMeansUnchanged, SessionsAgree, QuiescedAreWoken)
