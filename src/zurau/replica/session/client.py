"""The follower's side of a fetch session."""

from __future__ import annotations

from zurau.replica.core.events import FetchProgressed, LeaderQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import (
    Fetch,
    Fetched,
    FetchRefused,
    HighWatermark,
    Message,
    for_fetch,
    with_high_watermark,
)
from zurau.replica.session.messages import ANSWERS, Addressed, Notice, SessionRequest, SessionResponse, has_news


class Asked:
    """What one partition asks."""

    __slots__ = ("fetch", "sent", "sent_in", "unchanged")

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        #: What the server knows that it asks, if anything, and by which request.
        self.sent: Fetch | None = None
        self.sent_in = 0
        #: What the server has answered to that: nothing new, and so until further notice.
        self.unchanged: Fetched | None = None

    def forget(self) -> None:
        self.sent = self.unchanged = None

    @property
    def stands(self) -> bool:
        """The server knows what the partition asks now."""
        sent = self.sent
        return sent is not None and (sent is self.fetch or _is_same(sent, self.fetch))


class SessionClient:
    def __init__(self, session: int, notices: list[Notice] | None = None) -> None:
        self._asked: dict[PartitionId, Asked] = {}
        #: Those that were told that the session speaks for their leader, with that leader.
        self.quiesced: dict[PartitionId, ReplicaId] = {}
        #: What the replicas here are to be told, before anything else.
        self.notices: list[Notice] = notices if notices is not None else []
        self._begin(session)

    def _begin(self, session: int) -> None:
        self._session = session
        self._server_session: int | None = None
        self._number = 0
        self._answered = 0
        self._answered_ms = 0
        for asked in self._asked.values():
            asked.forget()
        #: What the next request has to say, each once and in order.
        self._unsent: dict[PartitionId, None] = dict.fromkeys(self._asked)
        self._others: list[Addressed] = []
        self._closed: list[PartitionId] = []

    # What replicas here ask

    def send(self, partition: PartitionId, message: Message) -> None:
        if type(message) is not Fetch:
            self._others.append((partition, message))
            return
        asked = self._asked.get(partition)
        if asked is None:
            self._asked[partition] = Asked(message)
            self._unsent[partition] = None
            return
        asked.fetch = message
        if not asked.stands:
            self._unsent[partition] = None
            self._unquiesce(partition)
            return
        self._unsent.pop(partition, None)
        if asked.unchanged is not None:
            self.quiesced[partition] = asked.unchanged.sender
            self.notices.append((partition, LeaderQuiesced(asked.unchanged)))

    def withdraw(self, partition: PartitionId) -> None:
        """The replica here has turned to another leader, or does not work: it asks no more."""
        asked = self._asked.get(partition)
        if asked is not None:
            if asked.sent is not None:
                self._closed.append(partition)
            self._use_up(partition)

    def asks(self, partition: PartitionId) -> Fetch | None:
        asked = self._asked.get(partition)
        return asked.fetch if asked is not None else None

    # What the session is about to say, and says by leaving it out

    @property
    def open_requests(self) -> int:
        return self._number - self._answered

    @property
    def standing(self) -> dict[PartitionId, Fetch]:
        """What a request without names says: the fetches that are asked once more."""
        return {each: asked.sent for each, asked in self._asked.items() if asked.sent and asked.stands}

    @property
    def answered_for(self) -> dict[PartitionId, Fetched]:
        """What a response without names says."""
        return {each: asked.unchanged for each, asked in self._asked.items() if asked.unchanged and asked.stands}

    def next_request(self) -> SessionRequest | None:
        """What to send now, if anything. Without news it is a sign of life, and waits for news of the server; what
        comes up here meanwhile goes in a second one, which ends the wait of the first."""
        has_news = bool(self._unsent or self._others or self._closed)
        if self._number > self._answered:
            is_due = has_news and self._number == self._answered + 1 and self._server_session is not None
        else:
            is_due = has_news or bool(self._asked)
        if not is_due:
            return None
        self._number += 1
        messages: list[Addressed] = []
        for partition in self._unsent:
            asked = self._asked[partition]
            asked.sent, asked.sent_in, asked.unchanged = asked.fetch, self._number, None
            messages.append((partition, asked.fetch))
        messages += self._others
        closed = tuple(self._closed)
        self._unsent, self._others, self._closed = {}, [], []
        return SessionRequest(self._session, self._number, tuple(messages), closed, self._server_session)

    # What the server answers

    def receive(self, response: SessionResponse, now_ms: int) -> tuple[Addressed, ...]:
        """What the replicas here hear. A response that fits no open request says nothing."""
        if response.session != self._session or not self._answered < response.number <= self._number:
            return ()
        if response.is_unknown or response.number != self._answered + 1:
            self.lost(self._session + 1)
            return ()
        self._answered = response.number
        self._server_session = response.server_session
        for partition in response.closed:
            if not self._has_asked_since(self._asked.get(partition)):
                self._use_up(partition)
        self._answered_ms = now_ms
        heard: list[Addressed] = []
        for partition, message in response.messages:
            if type(message) not in ANSWERS:
                heard.append((partition, message))
                continue
            answer = self._answer(partition, message)  # type: ignore[arg-type]
            if answer is not None:
                heard.append((partition, answer))
        return tuple(heard)

    def progressed(self) -> None:
        """Bytes of a response are arriving: whoever waits for one has a reason to wait on."""
        for partition, asked in self._asked.items():
            if asked.sent is not None and partition not in self.quiesced:
                self.notices.append((partition, FetchProgressed()))

    def lost(self, session: int) -> None:
        """The connection is gone, or the server has forgotten: everything is asked anew, in another session."""
        for partition in list(self.quiesced):
            self._unquiesce(partition)
        self._begin(session)

    def _answer(self, partition: PartitionId, message: Fetched | FetchRefused | HighWatermark) -> Message | None:
        """The answer to what the partition asks now; None when it is the answer to something else."""
        asked = self._asked.get(partition)
        if asked is None or self._has_asked_since(asked):
            return None
        if not asked.stands:
            if type(message) is not HighWatermark:
                asked.forget()
            return None
        assert asked.sent is not None
        fetch_id = asked.fetch.fetch_id
        if type(message) is HighWatermark:
            is_one = asked.fetch is asked.sent
            asked.sent = with_high_watermark(asked.sent, message.high_watermark)
            asked.fetch = asked.sent if is_one else with_high_watermark(asked.fetch, message.high_watermark)
        elif type(message) is Fetched and not has_news(message, asked.sent):
            asked.unchanged = message
        else:
            self._use_up(partition)
        return message if message.fetch_id == fetch_id else for_fetch(message, fetch_id)

    def _has_asked_since(self, asked: Asked | None) -> bool:
        """Whether it asks something in a request that is still open: the last response is not about that."""
        return asked is not None and asked.sent is not None and asked.sent_in > self._answered

    def _use_up(self, partition: PartitionId) -> None:
        self._asked.pop(partition, None)
        self._unsent.pop(partition, None)
        if partition in self.quiesced:
            self._unquiesce(partition)

    def _unquiesce(self, partition: PartitionId) -> None:
        leader = self.quiesced.pop(partition, None)
        if leader is not None:
            self.notices.append((partition, Unquiesced(leader, self._answered_ms)))


def _is_same(sent: Fetch, now: Fetch) -> bool:
    return (
        sent.position == now.position
        and sent.high_watermark == now.high_watermark
        and sent.epoch == now.epoch
        and sent.sender == now.sender
        and sent.broker_epoch == now.broker_epoch
        and sent.log_start == now.log_start
    )
