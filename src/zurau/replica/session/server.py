"""The leader's side of a fetch session."""

from __future__ import annotations

from zurau.replica.core.events import FollowerQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetch, Fetched, FetchRefused, HighWatermark, Message, with_high_watermark
from zurau.replica.session.messages import ANSWERS, Addressed, Notice, SessionRequest, SessionResponse, has_news


class Waiting:
    """A fetch that stands, and what there is to answer."""

    __slots__ = ("advance", "answer", "fetch", "has_news", "is_unanswered")

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        #: A fetch that was named is answered by name; from then on, to be left out will do.
        self.is_unanswered = True
        self.answer: Fetched | FetchRefused | None = None
        self.has_news = False
        #: Only the high watermark has moved: told beside other news, or a little later by itself.
        self.advance: HighWatermark | None = None


class SessionServer:
    def __init__(self, server_session: int, max_bytes: int = 1 << 62, notices: list[Notice] | None = None) -> None:
        self._server_session = server_session
        self._max_bytes = max_bytes
        #: Those that were told that the session speaks for a follower, with that follower.
        self.quiesced: dict[PartitionId, ReplicaId] = {}
        #: What the replicas here are to be told, before anything else.
        self.notices: list[Notice] = notices if notices is not None else []
        self._begin(None)

    def _begin(self, session: int | None) -> None:
        self._session = session
        self._server_session += 1
        self._number = 0
        self.is_open = False
        self._asked_ms = 0
        self._waiting: dict[PartitionId, Waiting] = {}
        #: Those with an answer, and those with an advance only, in their order.
        self._answers: dict[PartitionId, None] = {}
        self._advances: dict[PartitionId, None] = {}
        self._others: list[Addressed] = []
        #: In order, and each once.
        self._closed: dict[PartitionId, None] = {}

    # What the client asks

    def release_waiting(self, request: SessionRequest) -> SessionResponse | None:
        """Before `receive`: a second request does not wait for the first, which is answered now, if it is open."""
        return self.next_response() if request.session == self._session else None

    def receive(self, request: SessionRequest, now_ms: int) -> tuple[Addressed, ...] | SessionResponse:
        """What the replicas here hear: what this request says; or a refusal to send back.

        What an earlier request said and nobody has answered yet is still being worked on, perhaps by a slow disk: to
        deliver it again would begin that work again, with every request of every other partition.
        """
        if request.number == 1 and request.session != self._session:
            self.lost(request.session)
        server_session = self._server_session if request.number > 1 else None
        asked = (request.session, request.number, request.server_session)
        if asked != (self._session, self._number + 1, server_session) or self.is_open:
            return SessionResponse(request.session, request.number, is_unknown=True)
        self._number = request.number
        self.is_open = True
        for partition in request.closed:
            self._drop(partition)
        for partition, message in request.messages:
            if type(message) is Fetch:
                if partition in self._waiting:
                    self._drop(partition)  # whatever there was to answer was about an older fetch
                self._closed.pop(partition, None)
                self._waiting[partition] = Waiting(message)
        self._asked_ms = now_ms
        return request.messages

    def lost(self, session: int | None = None) -> None:
        """The connection is gone, and whatever was understood with it. Perhaps there is another session already."""
        for partition in list(self.quiesced):
            self._unquiesce(partition)
        self._begin(session)

    # What replicas here answer

    def send(self, partition: PartitionId, message: Message) -> None:
        if type(message) not in ANSWERS:
            self._others.append((partition, message))
            return
        waiting = self._waiting.get(partition)
        if waiting is None or waiting.fetch.fetch_id != message.fetch_id:  # type: ignore[union-attr]
            return  # an answer that took so long that something else is asked now, or nothing
        if type(message) is HighWatermark:
            waiting.advance = message
            self._advances[partition] = None
            return
        assert isinstance(message, Fetched | FetchRefused)
        waiting.has_news = has_news(message, waiting.fetch)
        if waiting.has_news or waiting.is_unanswered:
            waiting.answer = message
            self._answers[partition] = None
            self._advances.pop(partition, None)

    def evict(self, partition: PartitionId) -> None:
        """The replica here does not work, or is in another role: the session does not speak for it any more."""
        if self._drop(partition):
            self._closed[partition] = None

    # What the session is about to say, and says by leaving it out

    @property
    def expects_request(self) -> bool:
        """A client that asked something and was answered asks again at once."""
        return bool(self._waiting) and not self.is_open

    @property
    def has_news(self) -> bool:
        return bool(self._answers or self._others or self._closed)

    @property
    def has_advances(self) -> bool:
        return bool(self._advances)

    @property
    def closing(self) -> tuple[PartitionId, ...]:
        """Partitions that are evicted, of which the client does not know it yet."""
        return tuple(self._closed)

    @property
    def asked_for(self) -> dict[PartitionId, Fetch]:
        """What a request without names says here."""
        return {each: waiting.fetch for each, waiting in self._waiting.items()}

    @property
    def standing(self) -> dict[PartitionId, Fetch]:
        """What a response without names says: these are asked, and have the answer that they had."""
        return {each: waiting.fetch for each, waiting in self._waiting.items() if not waiting.is_unanswered}

    def next_response(self) -> SessionResponse | None:
        """What to send back when there is news, or the request has waited long enough; None without a request. What has
        no room in it goes first in the next."""
        if not self.is_open or self._session is None:
            return None
        self.is_open = False
        messages = self._take_answers()
        for partition in self._advances:
            waiting = self._waiting[partition]
            assert waiting.advance is not None
            messages.append((partition, waiting.advance))
            waiting.fetch = with_high_watermark(waiting.fetch, waiting.advance.high_watermark)
        messages += self._others
        closed = tuple(self._closed)
        self._advances, self._others, self._closed = {}, [], {}
        return SessionResponse(
            self._session, self._number, tuple(messages), closed, server_session=self._server_session
        )

    def _take_answers(self) -> list[Addressed]:
        """As many as one response has room for, and at least one. News use a fetch up; it stands otherwise."""
        messages: list[Addressed] = []
        room = self._max_bytes
        for partition in self._answers:
            waiting = self._waiting[partition]
            answer = waiting.answer
            assert answer is not None
            if room <= 0:
                break
            messages.append((partition, answer))
            if type(answer) is Fetched:
                for batch in answer.batches:
                    room -= len(batch.data)
            if waiting.has_news:
                del self._waiting[partition]
                # The high watermark may have moved since: whoever asks next says which one it knows.
                self._advances.pop(partition, None)
                if partition in self.quiesced:
                    self._unquiesce(partition)
            else:
                waiting.is_unanswered, waiting.answer = False, None
                self.quiesced[partition] = waiting.fetch.sender
                self.notices.append((partition, FollowerQuiesced(waiting.fetch)))
        if len(messages) == len(self._answers):
            self._answers = {}
        else:
            for partition, _ in messages:
                del self._answers[partition]
        return messages

    def _drop(self, partition: PartitionId) -> bool:
        waiting = self._waiting.pop(partition, None)
        if waiting is None:
            return False
        if waiting.answer is not None:
            self._answers.pop(partition, None)
        if waiting.advance is not None:
            self._advances.pop(partition, None)
        self._unquiesce(partition)
        return True

    def _unquiesce(self, partition: PartitionId) -> None:
        follower = self.quiesced.pop(partition, None)
        if follower is not None:
            self.notices.append((partition, Unquiesced(follower, self._asked_ms)))
