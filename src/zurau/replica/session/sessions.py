"""The fetch sessions of one broker with every other broker, in both directions.

    for each message of a replica             sessions.send(to, partition, message)
    when a replica's role has changed         sessions.role_changed(partition, role, epoch)
    when something arrives                    messages = sessions.receive(sender, it, now_ms)
      at once                                 for to, it in sessions.replies(): send it
      then                                    deliver sessions.notices(), then the messages
    while a large message is under way        sessions.progressed(broker, now_ms)
    afterwards, and at `deadline_ms`          for to, it in sessions.due(now_ms): send it; deliver sessions.notices()

A core, like a replica. A message that is no fetch travels with the response to the other side's open request, if there
is one, and otherwise with the next request.
"""

from __future__ import annotations

from zurau.ids import BrokerId, Epoch
from zurau.ports import Randomness
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetch, Message
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS, ReplicaSettings
from zurau.replica.session.client import SessionClient
from zurau.replica.session.messages import ANSWERS, Addressed, Notice, SessionRequest, SessionResponse
from zurau.replica.session.server import SessionServer

_SESSION_BOUND = 1 << 48
_ASKS = (Role.FOLLOWER, Role.PROSPECTIVE)


class Peer:
    """Another broker, and both directions."""

    __slots__ = (
        "advance_due_ms",
        "client",
        "give_up_ms",
        "next_request_due_ms",
        "response_due_ms",
        "server",
        "wake_ms",
    )

    def __init__(self, client: SessionClient, server: SessionServer) -> None:
        self.client = client
        self.server = server
        #: When to stop waiting for the response to our request.
        self.give_up_ms = 0
        #: When to respond to theirs without news, and when to stop waiting for the next.
        self.response_due_ms = 0
        self.next_request_due_ms = 0
        #: When to tell high watermarks that have moved, if nothing else is told before.
        self.advance_due_ms = NEVER_MS
        #: Nothing is due before, unless something happens.
        self.wake_ms = NEVER_MS

    @property
    def deadline_ms(self) -> int:
        client, server = self.client, self.server
        deadline_ms = self.give_up_ms if client.open_requests else NEVER_MS
        if server.is_open:
            return min(deadline_ms, self.response_due_ms, self.advance_due_ms)
        return min(deadline_ms, self.next_request_due_ms) if server.expects_request else deadline_ms


class Sessions:
    def __init__(self, settings: ReplicaSettings, randomness: Randomness) -> None:
        self._settings = settings
        self._randomness = randomness
        self.peers: dict[BrokerId, Peer] = {}
        #: Whom a partition here asked last. It asks no more than one.
        self._asked: dict[PartitionId, BrokerId] = {}
        #: Those with which something has happened since `due` looked at them.
        self._touched: set[BrokerId] = set()
        #: With the others nothing is due before.
        self._wake_ms = NEVER_MS
        #: Of all sessions, in their order.
        self._notices: list[Notice] = []
        self._replies: list[tuple[BrokerId, SessionResponse]] = []

    def _peer(self, broker: BrokerId) -> Peer:
        self._touched.add(broker)
        peer = self.peers.get(broker)
        if peer is None:
            below = self._randomness.below
            client = SessionClient(below(_SESSION_BOUND), self._notices)
            server = SessionServer(below(_SESSION_BOUND), self._settings.response_max_bytes, self._notices)
            peer = self.peers[broker] = Peer(client, server)
        return peer

    # What replicas here want

    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None:
        peer = self._peer(to)
        kind = type(message)
        if kind is Fetch:
            if self._asked.get(partition) != to:
                self._withdraw(partition)
                self._asked[partition] = to
            peer.client.send(partition, message)
        elif kind in ANSWERS or peer.server.is_open:
            peer.server.send(partition, message)
        else:
            peer.client.send(partition, message)

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:
        """A replica here has another role: no session may go on speaking for the role that it had."""
        self._touched.update(self.peers)
        for peer in self.peers.values():
            peer.server.evict(partition)
            asked = peer.client.asks(partition)
            if asked is not None and (role not in _ASKS or asked.epoch != epoch):
                peer.client.withdraw(partition)

    def fail(self, partition: PartitionId) -> None:
        """There is no replica here, or none that works; it neither asks nor answers."""
        self._touched.update(self.peers)
        self._withdraw(partition)
        for peer in self.peers.values():
            peer.server.evict(partition)

    def _withdraw(self, partition: PartitionId) -> None:
        broker = self._asked.pop(partition, None)
        if broker is not None:
            self._peer(broker).client.withdraw(partition)

    def evict(self, partition: PartitionId, broker: BrokerId) -> None:
        """What a replica there asked cannot be answered: it has to ask anew."""
        self._peer(broker).server.evict(partition)

    # What replicas here are told, before anything that is said to them

    def notices(self) -> list[Notice]:
        if not self._notices:
            return []
        found = list(self._notices)
        self._notices.clear()  # the sessions hold this very list
        return found

    # What comes from other brokers

    def receive(self, sender: BrokerId, it: SessionRequest | SessionResponse, now_ms: int) -> tuple[Addressed, ...]:
        peer = self._peer(sender)
        if isinstance(it, SessionResponse):
            return peer.client.receive(it, now_ms)
        first = peer.server.release_waiting(it)
        if first is not None:
            self._replies.append((sender, first))
        messages = peer.server.receive(it, now_ms)
        if isinstance(messages, SessionResponse):
            self._replies.append((sender, messages))
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
        """What has to be sent at once about what was just received: it would not be true for long."""
        found, self._replies = self._replies, []
        return found

    def due(self, now_ms: int) -> list[tuple[BrokerId, SessionRequest | SessionResponse]]:
        found: list[tuple[BrokerId, SessionRequest | SessionResponse]] = []
        if not self._touched and now_ms < self._wake_ms:
            return found
        self._wake_ms = NEVER_MS
        for broker, peer in self.peers.items():
            if broker not in self._touched and now_ms < peer.wake_ms:
                self._wake_ms = min(self._wake_ms, peer.wake_ms)
                continue
            response = self._next_response(peer, now_ms)
            if response is not None:
                found.append((broker, response))
            client = peer.client
            if now_ms >= peer.give_up_ms and client.open_requests:
                client.lost(self._randomness.below(_SESSION_BOUND))
            request = client.next_request()
            if request is not None:
                peer.give_up_ms = self._give_up_ms(now_ms)
                found.append((broker, request))
            peer.wake_ms = peer.deadline_ms
            self._wake_ms = min(self._wake_ms, peer.wake_ms)
        self._touched.clear()
        return found

    def _next_response(self, peer: Peer, now_ms: int) -> SessionResponse | None:
        server = peer.server
        if not server.has_advances:
            peer.advance_due_ms = NEVER_MS
        elif peer.advance_due_ms == NEVER_MS:
            peer.advance_due_ms = now_ms + self._settings.high_watermark_delay_ms
        if server.is_open:
            if server.has_news or now_ms >= peer.response_due_ms or now_ms >= peer.advance_due_ms:
                peer.advance_due_ms = NEVER_MS
                peer.next_request_due_ms = now_ms + self._settings.fetch_timeout_ms
                return server.next_response()
        elif now_ms >= peer.next_request_due_ms and server.expects_request:
            server.lost()
        return None

    @property
    def deadline_ms(self) -> int | None:
        """When something is due although nothing happens."""
        deadline_ms = self._wake_ms
        if self._touched:
            deadline_ms = min(peer.deadline_ms for peer in self.peers.values())
        return deadline_ms if deadline_ms < NEVER_MS else None
