"""The leader's side of a fetch session."""

from __future__ import annotations

from zurau.replica.core.events import FollowerQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetch, Fetched, FetchRefused, HighWatermark, Message, with_high_watermark
from zurau.replica.session.messages import Addressed, Notice, SessionRequest, SessionResponse, has_news


class SessionServer:
    def __init__(self, server_session: int, max_bytes: int = 1 << 62, notices: list[Notice] | None = None) -> None:
        self._server_session = server_session
        self._max_bytes = max_bytes
        #: Those that were told that silence is a question, with the followers whose silence it is.
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
        self._asks: dict[PartitionId, Fetch] = {}
        #: Partitions that asked in words are answered in words; from then on silence will do.
        self._unanswered: dict[PartitionId, None] = {}
        self._words: dict[PartitionId, Message] = {}
        #: Those for which only the high watermark has moved: told with other words, or a little later by themselves.
        self._advances: dict[PartitionId, HighWatermark] = {}
        self._others: list[Addressed] = []
        #: In order, and each once.
        self._closed: dict[PartitionId, None] = {}

    def release_waiting(self, request: SessionRequest) -> SessionResponse | None:
        """Before `asked`: a second question does not wait for the first, which is answered now, if it is open."""
        return self.next_response() if request.session == self._session else None

    def receive(self, request: SessionRequest, now_ms: int) -> tuple[Addressed, ...] | SessionResponse:
        """What the replicas here hear: what this question says. What an earlier one said and nobody has answered yet
        is still being worked on, perhaps by a slow disk: to say it again would begin that work again, with every
        question of every other partition. Or a refusal to send back."""
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
        for partition, messages in request.messages:
            if isinstance(messages, Fetch):
                self._drop(partition)  # whatever there was to say was about an older question
                self._closed.pop(partition, None)
                self._asks[partition] = messages
                self._unanswered[partition] = None
        self._asked_ms = now_ms
        return request.messages

    def send(self, partition: PartitionId, message: Message) -> None:
        """A replica here answers, or wants something else said."""
        if not isinstance(message, Fetched | FetchRefused | HighWatermark):
            self._others.append((partition, message))
            return
        asked = self._asks.get(partition)
        if asked is None or asked.fetch_id != message.fetch_id:
            return  # an answer that took so long that something else is asked now, or nothing
        if isinstance(message, HighWatermark):
            self._advances[partition] = message
        elif partition in self._unanswered or has_news(message, asked):
            self._words[partition] = message
            self._advances.pop(partition, None)

    def evict(self, partition: PartitionId) -> None:
        """The replica here is out of order, or another than it was: nobody may take silence for its sign of life."""
        if self._drop(partition):
            self._closed[partition] = None

    def lost(self, session: int | None = None) -> None:
        """The connection is gone, and whatever was understood with it. Perhaps there is another session already."""
        for partition in list(self.quiesced):
            self._unquiesce(partition)
        self._begin(session)

    @property
    def expects_request(self) -> bool:
        """Whoever asked something and was answered asks again at once."""
        return bool(self._asks) and not self.is_open

    @property
    def has_news(self) -> bool:
        return bool(self._words or self._others or self._closed)

    @property
    def has_advances(self) -> bool:
        return bool(self._advances)

    @property
    def closing(self) -> tuple[PartitionId, ...]:
        """Partitions that are not answered any more, of which the other side does not know it yet."""
        return tuple(self._closed)

    @property
    def asked_for(self) -> dict[PartitionId, Fetch]:
        """What a question without words says here."""
        return dict(self._asks)

    @property
    def standing(self) -> dict[PartitionId, Fetch]:
        """What an answer without words says: these are asked, and have the answer that they had."""
        return {each: asked for each, asked in self._asks.items() if each not in self._unanswered}

    def next_response(self) -> SessionResponse | None:
        """What to send back, when there is news or the question has waited long enough; None without a question. What
        has no room in it goes first in the next."""
        if not self.is_open or self._session is None:
            return None
        self.is_open = False
        later = self._split()
        messages = (*self._words.items(), *self._advances.items(), *self._others)
        for partition, news in self._advances.items():
            self._asks[partition] = with_high_watermark(self._asks[partition], news.high_watermark)
        self._advances = {}
        response = SessionResponse(
            self._session, self._number, messages, tuple(self._closed), server_session=self._server_session
        )
        for partition, message in self._words.items():
            self._unanswered.pop(partition, None)
            asked = self._asks[partition]
            if has_news(message, asked):
                del self._asks[partition]
                self._unquiesce(partition)
            else:
                self.quiesced[partition] = asked.sender
                self.notices.append((partition, FollowerQuiesced(asked)))
        self._words, self._others, self._closed = later, [], {}
        return response

    def _split(self) -> dict[PartitionId, Message]:
        """Leave in `_words` what has room in one answer, one partition at least; returns the others."""
        room = self._max_bytes
        for count, message in enumerate(self._words.values()):
            if room <= 0:
                words = list(self._words.items())
                self._words = dict(words[:count])
                return dict(words[count:])
            if isinstance(message, Fetched) and message.batches:
                room -= sum(len(batch.data) for batch in message.batches)
        return {}

    def _drop(self, partition: PartitionId) -> bool:
        self._words.pop(partition, None)
        self._advances.pop(partition, None)
        self._unanswered.pop(partition, None)
        self._unquiesce(partition)
        return self._asks.pop(partition, None) is not None

    def _unquiesce(self, partition: PartitionId) -> None:
        follower = self.quiesced.pop(partition, None)
        if follower is not None:
            self.notices.append((partition, Unquiesced(follower, self._asked_ms)))
