"""Invariants of the sessions between brokers: what absence says, and how little is said when nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zurau.ids import BrokerId
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetch
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import AnyReplica
    from zurau.simulation.cluster.node import Node
    from zurau.simulation.cluster.world import World


Standing = dict[PartitionId, Fetch]


class SessionChecker:
    def __init__(self, world: World) -> None:
        self.world = world

    def see(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        """Something is about to be sent."""

    def hear(self, node: Node, sender: BrokerId, it: SessionRequest | SessionResponse) -> None:
        """Something has arrived, and the replicas here are about to be told."""

    def idle(self) -> None:
        """Everything is whole: look what happens when nothing does."""

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())


class AbsentMeansUnchanged(SessionChecker):
    """Whoever a question does not name asks what it asked before, and whoever an answer does not name leads as before.

    What a session says for a replica that says nothing is looked up at that replica.
    """

    def see(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        named = {partition for partition, _ in it.messages}
        peer = node.sessions.peers[to]
        if isinstance(it, SessionRequest):
            for partition, fetch in peer.client.standing.items():
                if partition not in named:
                    host = node.hosts.get(partition)
                    replica = host.replica if host is not None else None
                    asks = replica is not None and self._asks(replica, fetch)
                    self.require(asks, lambda fetch=fetch: f"{node.broker} is silent and does not ask {fetch}")  # type: ignore[misc]
        elif not it.is_unknown:
            for partition, fetch in peer.server.standing.items():
                if partition not in named:
                    host = node.hosts.get(partition)
                    leads = host is not None and host.leads and host.replica is not None
                    same = leads and host is not None and host.replica is not None and host.replica.epoch == fetch.epoch
                    self.require(same, lambda fetch=fetch: f"{node.broker} is silent and does not lead {fetch}")  # type: ignore[misc]

    @staticmethod
    def _asks(replica: AnyReplica, fetch: Fetch) -> bool:
        if replica.role is Role.PROSPECTIVE:
            # Whoever asks for votes does not ask for records anew, and may have flushed something since: it has more.
            return replica.epoch == fetch.epoch and replica.stored >= fetch.position
        return replica.role is Role.FOLLOWER and (replica.epoch, replica.stored, replica.high_watermark) == (
            fetch.epoch, fetch.position, fetch.high_watermark,
        )  # fmt: skip


class SessionsAgree(SessionChecker):
    """What both sides of a session take absence for is the same, whenever one has heard the other.

    Who asks a second question does not know yet what the answer to the first uses up: it may believe more than is so.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: What the last message of one broker to another took absence for.
        self._last: dict[tuple[type, BrokerId, BrokerId], tuple[int, int, Standing]] = {}
        self._is_second: dict[tuple[BrokerId, BrokerId], bool] = {}

    def see(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        if isinstance(it, SessionRequest) or not it.is_unknown:
            peer = node.sessions.peers[to]
            standing = peer.client.standing if isinstance(it, SessionRequest) else peer.server.standing
            self._last[type(it), node.broker, to] = (it.session, it.number, standing)
            if isinstance(it, SessionRequest):
                self._is_second[node.broker, to] = peer.client.open_requests > 1

    def hear(self, node: Node, sender: BrokerId, it: SessionRequest | SessionResponse) -> None:
        peer = node.sessions.peers[sender]
        session, number, said = self._last.get((type(it), sender, node.broker), (0, 0, {}))
        if (session, number) != (it.session, it.number):
            return  # an old one: nothing that it says is taken for anything else than what it says in words
        if isinstance(it, SessionRequest):
            if not any(reply.number == it.number for to, reply in node.sessions._replies if to == sender):
                heard = peer.server.asked_for
                meant = {each: fetch for each, fetch in said.items() if each not in peer.server.closing}
                if self._is_second[sender, node.broker]:
                    meant = {each: fetch for each, fetch in meant.items() if each in heard}
                same = _places(heard) == _places(meant)
                self.require(same, lambda: f"{sender} asks {meant}, and {node.broker} hears {heard}")
        elif not peer.client.open_requests:
            missing = peer.client.answered_for.keys() - said.keys()
            self.require(not missing, lambda: f"{node.broker} believes that {sender} answers {missing}")


def _places(standing: Standing) -> dict[PartitionId, tuple[object, ...]]:
    """Without high watermarks: one that has moved is told in an answer that the other side may not have yet."""
    return {each: (fetch.sender, fetch.epoch, fetch.position) for each, fetch in standing.items()}


class QuiescedAreWoken(SessionChecker):
    """Whoever is quiesced has a session that speaks for the other side, and that would say when it ends."""

    def see(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        self._check(node)

    def hear(self, node: Node, sender: BrokerId, it: SessionRequest | SessionResponse) -> None:
        self._check(node)

    def _check(self, node: Node) -> None:
        for partition, host in node.hosts.items():
            for other in host.replica.quiesced_with if host.replica is not None else ():
                peer = node.sessions.peers[other.broker]
                side = peer.server if host.leads else peer.client
                speaks = partition in side.quiesced or any(partition == about for about, _ in side.notices)
                self.require(speaks, lambda host=host, other=other: f"{host.name} is quiesced with {other}")  # type: ignore[misc]


class IdleBrokersSayLittle(SessionChecker):
    """When nothing happens, two brokers exchange one empty question and answer in a while, however many partitions they
    share; replicas rest, and nobody stands for election."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._questions: dict[tuple[BrokerId, BrokerId], int] = {}
        self._is_counting = False

    def see(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        if not self._is_counting:
            return
        self.require(not it.messages and not it.closed, lambda: f"{node.broker} says to {to}: {it}")
        if isinstance(it, SessionRequest):
            self._questions[node.broker, to] = self._questions.get((node.broker, to), 0) + 1

    def idle(self) -> None:
        world, settings = self.world, self.world.swarm.settings
        wait_ms = settings.fetch_wait_ms
        if not world.swarm.is_coalesced:
            return
        # A fault of the last moment may still end a leadership, although everything looks whole.
        aftermath_ms = settings.check_quorum_ms + 4 * (settings.fetch_timeout_ms + settings.election_timeout_ms)
        world.run_until(world.now_ms + aftermath_ms + 3 * wait_ms + 2 * settings.retry_ms + 100)
        self._is_counting = True
        epochs = self._epochs()
        self._check_rest()
        world.run_until(world.now_ms + 5 * wait_ms)
        most = max(self._questions.values(), default=0)
        self.require(most <= 7, lambda: f"{most} questions in five times {wait_ms} ms")
        self.require(self._epochs() == epochs, lambda: "an election although nothing happens")

    def _check_rest(self) -> None:
        """Followers have no deadline. Leaders may still wait for one that is gone for good, until they forget it."""
        for group in self.world.current:
            replicas = [host.replica for host in group.hosts if host.replica is not None]
            followers = {replica.id for replica in replicas if replica.role is not Role.LEADER}
            for replica in replicas:
                is_quiescent = replica.id not in followers or replica.deadline_ms == NEVER_MS
                quiesced_with = {replica.leader} if replica.id in followers else followers
                rests = is_quiescent and quiesced_with <= set(replica.quiesced_with)
                self.require(rests, lambda replica=replica: f"{replica.id} rests on {replica.quiesced_with}")  # type: ignore[misc]

    def _epochs(self) -> list[int]:
        return [host.replica.epoch for group in self.world.current for host in group.hosts if host.replica is not None]


SESSION_CHECKERS: tuple[type[SessionChecker], ...] = (
    AbsentMeansUnchanged,
    SessionsAgree,
    QuiescedAreWoken,
    IdleBrokersSayLittle,
)
