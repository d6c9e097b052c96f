"""The streams of one broker: one to every other broker, and one from it (`session.py`).

    for each message of a replica           streams.send(to, partition, message)
    when a replica's role has changed       streams.turned(partition, role, epoch)
    when something arrives                  what the replicas hear = streams.heard(sender, it, now_ms)
    while a large message is under way      streams.progressed(sender, now_ms)
    and at once                             for to, it in streams.replies(): send it
    before they hear it, and after `due`    what stands, and what does no more = streams.notices()
    afterwards, and at `deadline_ms`        for to, it in streams.due(now_ms): send it

A core, like a replica. What is no fetch travels with the answer to the other side's open question, if there is one, and
otherwise with the next question.
"""

from __future__ import annotations

from zurau.ids import BrokerId, Epoch
from zurau.ports import Randomness
from zurau.replica.identity import PartitionId
from zurau.replica.messages import Fetch, Fetched, FetchRefused, Message
from zurau.replica.roles import Role
from zurau.replica.session import Answer, Answering, Asking, Notice, Question, Said
from zurau.replica.settings import ReplicaSettings

_SESSION_BOUND = 1 << 48
_ASKS = (Role.FOLLOWER, Role.PROSPECTIVE)


class Peer:
    """Another broker, and both directions."""

    __slots__ = ("answer_due_ms", "answering", "asking", "give_up_ms", "next_question_due_ms", "replies")

    def __init__(self, session: int, name: int, max_bytes: int) -> None:
        self.asking = Asking(session)
        self.answering = Answering(name, max_bytes)
        #: When to stop waiting for the answer to our question.
        self.give_up_ms = 0
        #: When to answer theirs without news, and when to stop waiting for the next.
        self.answer_due_ms = 0
        self.next_question_due_ms = 0
        #: Answers that wait for nothing.
        self.replies: list[Answer] = []


class Streams:
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
                peer.asking.tell(partition, message)
            case Fetched() | FetchRefused():
                peer.answering.tell(partition, message)
            case _ if peer.answering.is_open:
                peer.answering.tell(partition, message)
            case _:
                peer.asking.tell(partition, message)

    def turned(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:
        """A replica here has another role. Nobody's silence may stand for what it was before."""
        for peer in self.peers.values():
            peer.answering.close(partition)
            asked = peer.asking.asks(partition)
            if asked is not None and (role not in _ASKS or asked.epoch != epoch):
                peer.asking.withdraw(partition)

    def fail(self, partition: PartitionId) -> None:
        """There is no replica here, or none that works; it neither asks nor answers."""
        self._withdraw(partition)
        for peer in self.peers.values():
            peer.answering.close(partition)

    def _withdraw(self, partition: PartitionId, but: BrokerId | None = None) -> None:
        for broker, peer in self.peers.items():
            if broker != but:
                peer.asking.withdraw(partition)

    def put_out(self, partition: PartitionId, broker: BrokerId) -> None:
        """What a replica there asked cannot be answered: it has to ask anew."""
        self._peer(broker).answering.close(partition)

    # What replicas here are told, before anything that is said to them

    def notices(self) -> list[Notice]:
        found: list[Notice] = []
        for peer in self.peers.values():
            for side in (peer.asking, peer.answering):
                found += side.notices
                side.notices = []
        return found

    # What comes from other brokers

    def heard(self, sender: BrokerId, it: Question | Answer, now_ms: int) -> tuple[Said, ...]:
        peer = self._peer(sender)
        if isinstance(it, Answer):
            return peer.asking.answered(it, now_ms)
        first = peer.answering.make_way(it)
        if first is not None:
            peer.replies.append(first)
        said = peer.answering.asked(it, now_ms)
        if isinstance(said, Answer):
            peer.replies.append(said)
            return ()
        # A little later than the replicas would answer by themselves, so that their first words are in time.
        peer.answer_due_ms = now_ms + self._settings.fetch_wait_ms + 1
        return said

    def progressed(self, broker: BrokerId, now_ms: int) -> None:
        """Part of a message has come from there, or gone there: both sides are alive, and it is not complete yet. To be
        said now and then while a large message is under way; the notices are to be passed on."""
        peer = self._peer(broker)
        peer.give_up_ms = self._give_up_ms(now_ms)
        peer.next_question_due_ms = max(peer.next_question_due_ms, now_ms + self._settings.fetch_timeout_ms)
        peer.asking.progressed()

    def _give_up_ms(self, now_ms: int) -> int:
        return now_ms + self._settings.fetch_wait_ms + self._settings.retry_ms

    def lost(self, broker: BrokerId) -> None:
        """The connection is gone."""
        peer = self._peer(broker)
        peer.asking.lost(self._randomness.below(_SESSION_BOUND))
        peer.answering.lost()

    # What there is to send

    def replies(self) -> list[tuple[BrokerId, Answer]]:
        """What has to be said at once about what was just heard: it would not be true for long."""
        found = [(broker, reply) for broker, peer in self.peers.items() for reply in peer.replies]
        for peer in self.peers.values():
            peer.replies = []
        return found

    def due(self, now_ms: int) -> list[tuple[BrokerId, Question | Answer]]:
        found: list[tuple[BrokerId, Question | Answer]] = []
        for broker, peer in self.peers.items():
            if peer.answering.is_open and (peer.answering.has_news or now_ms >= peer.answer_due_ms):
                answer = peer.answering.answer()
                found += [(broker, answer)] if answer is not None else []
                peer.next_question_due_ms = now_ms + self._settings.fetch_timeout_ms
            elif peer.answering.expects_question and now_ms >= peer.next_question_due_ms:
                peer.answering.lost()
            if peer.asking.open_questions and now_ms >= peer.give_up_ms:
                peer.asking.lost(self._randomness.below(_SESSION_BOUND))
            question = peer.asking.question()
            if question is not None:
                peer.give_up_ms = self._give_up_ms(now_ms)
                found.append((broker, question))
        return found

    @property
    def deadline_ms(self) -> int | None:
        """When something is due although nothing happens."""
        open_ = [peer.give_up_ms for peer in self.peers.values() if peer.asking.open_questions]
        open_ += [peer.answer_due_ms for peer in self.peers.values() if peer.answering.is_open]
        open_ += [peer.next_question_due_ms for peer in self.peers.values() if peer.answering.expects_question]
        return min(open_, default=None)
