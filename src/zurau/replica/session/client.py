"""The follower's side of a fetch session."""

from __future__ import annotations

from collections.abc import Iterator

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
from zurau.replica.session.messages import Addressed, Notice, SessionRequest, SessionResponse, has_news


class SessionClient:
    def __init__(self, session: int, notices: list[Notice] | None = None) -> None:
        #: What each partition asks now.
        self._asks: dict[PartitionId, Fetch] = {}
        #: Those that were told that silence is their answer, with the leaders whose silence it is.
        self.quiesced: dict[PartitionId, ReplicaId] = {}
        #: What the replicas here are to be told, before anything else.
        self.notices: list[Notice] = notices if notices is not None else []
        self._begin(session)

    def _begin(self, session: int) -> None:
        self._session = session
        self._server_session: int | None = None
        self._number = 0
        self._answered = 0
        #: What the other side last heard each partition ask, in which question, and what it said to that: nothing new.
        self._heard: dict[PartitionId, Fetch] = {}
        self._heard_in: dict[PartitionId, int] = {}
        self._answers: dict[PartitionId, Fetched] = {}
        self._answered_ms = 0
        #: What the next question has to say, each once and in order.
        self._unsaid: dict[PartitionId, None] = dict.fromkeys(self._asks)
        self._others: list[Addressed] = []
        self._closed: list[PartitionId] = []

    def send(self, partition: PartitionId, message: Message) -> None:
        """A replica here wants this said."""
        if not isinstance(message, Fetch):
            self._others.append((partition, message))
            return
        self._asks[partition] = message
        if not self._stands(partition):
            self._unsaid[partition] = None
            self._unquiesce(partition)
            return
        self._unsaid.pop(partition, None)
        if partition in self._answers:
            self.quiesced[partition] = self._answers[partition].sender
            self.notices.append((partition, LeaderQuiesced(self._answers[partition])))

    def withdraw(self, partition: PartitionId) -> None:
        """The replica here has role_changed elsewhere, or is out of order: it asks no more."""
        if partition in self._heard:
            self._closed.append(partition)
        self._use_up(partition)

    def asks(self, partition: PartitionId) -> Fetch | None:
        return self._asks.get(partition)

    @property
    def open_requests(self) -> int:
        return self._number - self._answered

    @property
    def standing(self) -> dict[PartitionId, Fetch]:
        """What a question without words says: the fetches that are asked once more."""
        return {each: heard for each, heard in self._heard.items() if self._stands(each)}

    @property
    def answered_for(self) -> dict[PartitionId, Fetched]:
        """What an answer without words says."""
        return {each: last for each, last in self._answers.items() if self._stands(each)}

    def next_request(self) -> SessionRequest | None:
        """What to send now, if anything. Without news it is a sign of life, and waits for news of the other side; what
        comes up here meanwhile is said in a second one, which ends the wait of the first."""
        has_news = bool(self._unsaid or self._others or self._closed)
        if self.open_requests:
            is_due = has_news and self.open_requests == 1 and self._server_session is not None
        else:
            is_due = has_news or bool(self._asks)
        if not is_due:
            return None
        self._number += 1
        for partition in self._unsaid:
            self._heard[partition] = self._asks[partition]
            self._heard_in[partition] = self._number
            self._answers.pop(partition, None)
        messages = (*((each, self._asks[each]) for each in self._unsaid), *self._others)
        request = SessionRequest(self._session, self._number, messages, tuple(self._closed), self._server_session)
        self._unsaid, self._others, self._closed = {}, [], []
        return request

    def receive(self, response: SessionResponse, now_ms: int) -> tuple[Addressed, ...]:
        """What the replicas here hear. Raises nothing: an answer that fits no question is not one."""
        if response.session != self._session or not self._answered < response.number <= self._number:
            return ()
        if response.is_unknown or response.number != self._answered + 1:
            self.lost(self._session + 1)
            return ()
        self._answered = response.number
        self._server_session = response.server_session
        for partition in response.closed:
            if not self._has_asked_since(partition):
                self._use_up(partition)
        self._answered_ms = now_ms
        return tuple(each for messages in response.messages for each in self._hear(*messages))

    def progressed(self) -> None:
        """Bytes of an answer are arriving: whoever waits for one has a reason to wait on."""
        self.notices += [(each, FetchProgressed()) for each in self._heard if each not in self.quiesced]

    def lost(self, session: int) -> None:
        """The connection is gone, or the other side has forgotten: everything is said anew, in another session."""
        for partition in list(self.quiesced):
            self._unquiesce(partition)
        self._begin(session)

    def _stands(self, partition: PartitionId) -> bool:
        heard, now = self._heard.get(partition), self._asks.get(partition)
        return heard is not None and now is not None and _is_same(heard, now)

    def _has_asked_since(self, partition: PartitionId) -> bool:
        """Whether it asks something in a question that is open yet: the last answer is not about that."""
        return partition in self._heard and self._heard_in[partition] > self._answered

    def _hear(self, partition: PartitionId, message: Message) -> Iterator[Addressed]:
        if not isinstance(message, Fetched | FetchRefused | HighWatermark):
            yield partition, message
            return
        if self._has_asked_since(partition):
            return
        if not self._stands(partition):
            if not isinstance(message, HighWatermark):
                self._heard.pop(partition, None)
            return  # it asks something else meanwhile: this is the answer to what it asked before
        heard, now = self._heard[partition], self._asks[partition]
        if isinstance(message, HighWatermark):
            self._heard[partition] = with_high_watermark(heard, message.high_watermark)
            self._asks[partition] = with_high_watermark(now, message.high_watermark)
        elif isinstance(message, FetchRefused) or has_news(message, heard):
            self._use_up(partition)
        else:
            self._answers[partition] = message
        yield partition, for_fetch(message, now.fetch_id)

    def _unquiesce(self, partition: PartitionId) -> None:
        leader = self.quiesced.pop(partition, None)
        if leader is not None:
            self.notices.append((partition, Unquiesced(leader, self._answered_ms)))

    def _use_up(self, partition: PartitionId) -> None:
        self._heard.pop(partition, None)
        self._heard_in.pop(partition, None)
        self._asks.pop(partition, None)
        self._answers.pop(partition, None)
        self._unsaid.pop(partition, None)
        self._unquiesce(partition)


def _is_same(heard: Fetch, now: Fetch) -> bool:
    return (heard.position, heard.epoch, heard.high_watermark, heard.sender, heard.broker_epoch, heard.log_start) == (
        now.position, now.epoch, now.high_watermark, now.sender, now.broker_epoch, now.log_start,
    )  # fmt: skip
