"""The sessions of one broker: one to every other broker, and one from it (`session.py`).

    for each message of a replica           sessions.send(to, partition, message)
    when a replica's role has changed       sessions.role_changed(partition, role, epoch)
    when something arrives                  what the replicas hear = sessions.heard(sender, it, now_ms)
    while a large message is under way      sessions.progressed(sender, now_ms)
    and at once                             for to, it in sessions.replies(): send it
    before they hear it, and after `due`    what stands, and what does no more = sessions.notices()
    afterwards, and at `deadline_ms`        for to, it in sessions.due(now_ms): send it

A core, like a replica. What is no fetch travels with the answer to the other side's open question, if there is one, and
otherwise with the next question.
"""

from __future__ import annotations

from zurau.ids import BrokerId, Epoch
from zurau.ports import Randomness
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetch, Fetched, FetchRefused, HighWatermark, Message
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS, ReplicaSettings
from zurau.replica.session.session import (
    Addressed,
    Notice,
    SessionClient,
    SessionRequest,
    SessionResponse,
    SessionServer,
)

_SESSION_BOUND = 1 << 48
_ASKS = (Role.FOLLOWER, Role.PROSPECTIVE)


class Peer:
    """Another broker, and both directions."""

    __slots__ = (
        "advance_due_ms",
        "client",
        "give_up_ms",
        "next_request_due_ms",
        "replies",
        "response_due_ms",
        "server",
    )

    def __init__(self, session: int, name: int, max_bytes: int) -> None:
        self.client = SessionClient(session)
        self.server = SessionServer(name, max_bytes)
        #: When to stop waiting for the answer to our question.
        self.give_up_ms = 0
        #: When to answer theirs without news, and when to stop waiting for the next.
        self.response_due_ms = 0
        self.next_request_due_ms = 0
        #: When to tell high watermarks that have moved, if nothing else is told before.
        self.advance_due_ms = NEVER_MS
        #: Answers that wait for nothing.
        self.replies: list[SessionResponse] = []


class Sessions:
    def __init__(self, settings: ReplicaSettings, randomness: Randomness) -> None:
        self._settings = settings
        self._randomness = randomness
        self.peers: dict[BrokerId, Peer] = {}

    def _peer(self, broker: BrokerId) -> Peer:
        peer = self.peers.get(broker)
        if peer is None:
            below = self._randomness.below
            peer = self.peers[broker] = Peer(
                below(_SESSION_BOUND), below(_SESSION_BOUND), self._settings.response_max_bytes
            )
        return peer

    # What replicas here want

    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None:
        peer = self._peer(to)
        match message:
            case Fetch():
                self._withdraw(partition, but=to)  # one asks one leader
                peer.client.send(partition, message)
            case Fetched() | FetchRefused() | HighWatermark():
                peer.server.send(partition, message)
            case _ if peer.server.is_open:
                peer.server.send(partition, message)
            case _:
                peer.client.send(partition, message)

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:
        """A replica here has another role. Nobody's silence may stand for what it was before."""
        for peer in self.peers.values():
            peer.server.evict(partition)
            asked = peer.client.asks(partition)
            if asked is not None and (role not in _ASKS or asked.epoch != epoch):
                peer.client.withdraw(partition)

    def fail(self, partition: PartitionId) -> None:
        """There is no replica here, or none that works; it neither asks nor answers."""
        self._withdraw(partition)
        for peer in self.peers.values():
            peer.server.evict(partition)

    def _withdraw(self, partition: PartitionId, but: BrokerId | None = None) -> None:
        for broker, peer in self.peers.items():
            if broker != but:
                peer.client.withdraw(partition)

    def evict(self, partition: PartitionId, broker: BrokerId) -> None:
        """What a replica there asked cannot be answered: it has to ask anew."""
        self._peer(broker).server.evict(partition)

    # What replicas here are told, before anything that is said to them

    def notices(self) -> list[Notice]:
        found: list[Notice] = []
        for peer in self.peers.values():
            for side in (peer.client, peer.server):
                found += side.notices
                side.notices = []
        return found

    # What comes from other brokers

    def receive(self, sender: BrokerId, it: SessionRequest | SessionResponse, now_ms: int) -> tuple[Addressed, ...]:
        peer = self._peer(sender)
        if isinstance(it, SessionResponse):
            return peer.client.receive(it, now_ms)
        first = peer.server.release_waiting(it)
        if first is not None:
            peer.replies.append(first)
        messages = peer.server.receive(it, now_ms)
        if isinstance(messages, SessionResponse):
            peer.replies.append(messages)
            return ()
        # A little later than the replicas would answer by themselves, so that their first words are in time.
        peer.response_due_ms = now_ms + self._settings.fetch_wait_ms + 1
        return messages

    def progressed(self, broker: BrokerId, now_ms: int) -> None:
        """Part of a message has come from there, or gone there: both sides are alive, and it is not complete yet. To be
        said now and then while a large message is under way; the notices are to be passed on."""
        peer = self._peer(broker)
        peer.give_up_ms = self._give_up_ms(now_ms)
        peer.next_request_due_ms = max(peer.next_request_due_ms, now_ms + self._settings.fetch_timeout_ms)
        peer.client.progressed()

    def _give_up_ms(self, now_ms: int) -> int:
        return now_ms + self._settings.fetch_wait_ms + self._settings.retry_ms

    def lost(self, broker: BrokerId) -> None:
        """The connection is gone."""
        peer = self._peer(broker)
        peer.client.lost(self._randomness.below(_SESSION_BOUND))
        peer.server.lost()

    # What there is to send

    def replies(self) -> list[tuple[BrokerId, SessionResponse]]:
        """What has to be said at once about what was just heard: it would not be true for long."""
        found = [(broker, reply) for broker, peer in self.peers.items() for reply in peer.replies]
        for peer in self.peers.values():
            peer.replies = []
        return found

    def due(self, now_ms: int) -> list[tuple[BrokerId, SessionRequest | SessionResponse]]:
        found: list[tuple[BrokerId, SessionRequest | SessionResponse]] = []
        for broker, peer in self.peers.items():
            if not peer.server.has_advances:
                peer.advance_due_ms = NEVER_MS
            elif peer.advance_due_ms == NEVER_MS:
                peer.advance_due_ms = now_ms + self._settings.high_watermark_delay_ms
            is_due = now_ms >= min(peer.response_due_ms, peer.advance_due_ms)
            if peer.server.is_open and (peer.server.has_news or is_due):
                response = peer.server.next_response()
                peer.advance_due_ms = NEVER_MS
                found += [(broker, response)] if response is not None else []
                peer.next_request_due_ms = now_ms + self._settings.fetch_timeout_ms
            elif peer.server.expects_request and now_ms >= peer.next_request_due_ms:
                peer.server.lost()
            if peer.client.open_requests and now_ms >= peer.give_up_ms:
                peer.client.lost(self._randomness.below(_SESSION_BOUND))
            request = peer.client.next_request()
            if request is not None:
                peer.give_up_ms = self._give_up_ms(now_ms)
                found.append((broker, request))
        return found

    @property
    def deadline_ms(self) -> int | None:
        """When something is due although nothing happens."""
        open_ = [peer.give_up_ms for peer in self.peers.values() if peer.client.open_requests]
        open_ += [min(peer.response_due_ms, peer.advance_due_ms) for peer in self.peers.values() if peer.server.is_open]
        open_ += [peer.next_request_due_ms for peer in self.peers.values() if peer.server.expects_request]
        return min(open_, default=None)
