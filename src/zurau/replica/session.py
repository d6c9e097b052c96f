"""One stream for everything that one broker asks another: all partitions, in one question and one answer at a time.

Most of a fetch is what was said before, so a question names only the partitions whose fetch is another one than last
time, and an answer only those with news. **Silence means unchanged**: whoever is not named asks the same again, or gets
the same answer, nothing new. An idle pair of brokers exchanges one empty question and one empty answer in a while,
however many partitions they share.

That is only true while both sides mean the same by "last time". So a session has an id that chance gave it and its
questions have numbers; an answer to any other question, or of any other session, says nothing about anybody. A
partition that fails on either side is put out of the session: a broker that is alive must not make a dead partition
look alive. Votes and the beginnings and ends of epochs travel along and are never left out.

Two cores: `Asking` on the follower's broker, `Answering` on the leader's. Neither knows what a message means, except
which fetches are the same and which answers have no news.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from zurau.ids import TopicPartition
from zurau.replica.messages import Fetch, Fetched, Message

Said = tuple[TopicPartition, Message]


@dataclass(frozen=True, slots=True)
class Question:
    session: int
    number: int
    said: tuple[Said, ...] = ()
    #: Partitions that ask no more.
    closed: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    session: int
    number: int
    said: tuple[Said, ...] = ()
    #: Partitions that are not answered any more, until they ask anew.
    closed: tuple[TopicPartition, ...] = ()
    #: The session is not known here, or this was not its next question: begin another.
    is_unknown: bool = False


class Asking:
    def __init__(self, session: int) -> None:
        self._begin(session)
        #: What each partition asks now.
        self._asks: dict[TopicPartition, Fetch] = {}

    def _begin(self, session: int) -> None:
        self._session = session
        self._number = 0
        self._is_open = False
        #: What the other side last heard each partition ask, and what it said to that in words.
        self._heard: dict[TopicPartition, Fetch] = {}
        self._answers: dict[TopicPartition, Fetched] = {}
        self._others: list[Said] = []
        self._closed: list[TopicPartition] = []

    def tell(self, partition: TopicPartition, message: Message) -> None:
        """A replica here wants this said."""
        if isinstance(message, Fetch):
            self._asks[partition] = message
        else:
            self._others.append((partition, message))

    def fail(self, partition: TopicPartition) -> None:
        """The replica here is out of order: it asks no more."""
        self._asks.pop(partition, None)
        if self._heard.pop(partition, None) is not None:
            self._closed.append(partition)

    @property
    def has_news(self) -> bool:
        return bool(self._others or self._closed or any(self._changed()))

    def question(self) -> Question | None:
        """What to send now; None while the last question is open. Without news it is a sign of life."""
        if self._is_open:
            return None
        changed = list(self._changed())
        for partition, fetch in changed:
            self._heard[partition] = fetch
            self._answers.pop(partition, None)
        self._number += 1
        self._is_open = True
        question = Question(self._session, self._number, (*changed, *self._others), tuple(self._closed))
        self._others, self._closed = [], []
        return question

    def answered(self, answer: Answer) -> tuple[Said, ...]:
        """What the replicas here hear. Raises nothing: an answer that fits no question is not one."""
        if not self._is_open or (answer.session, answer.number) != (self._session, self._number):
            return ()
        if answer.is_unknown:
            self.lost(self._session + 1)
            return ()
        self._is_open = False
        for partition in answer.closed:
            self._heard.pop(partition, None)
            self._asks.pop(partition, None)
        return tuple(self._hear(dict(answer.said), answer))

    def lost(self, session: int) -> None:
        """The connection is gone, or the other side has forgotten: everything is said anew, in another session."""
        self._begin(session)

    def _changed(self) -> Iterator[tuple[TopicPartition, Fetch]]:
        for partition, fetch in self._asks.items():
            heard = self._heard.get(partition)
            if heard is None or not _is_same(heard, fetch):
                yield partition, fetch

    def _hear(self, said: dict[TopicPartition, Message], answer: Answer) -> Iterator[Said]:
        for partition, message in answer.said:
            if not isinstance(message, Fetched):
                yield partition, message
        for partition, heard in list(self._heard.items()):
            now = self._asks.get(partition)
            if now is None or not _is_same(heard, now):
                continue  # it asks something else meanwhile: this is the answer to what it asked before
            words = said.get(partition)
            if isinstance(words, Fetched):
                self._answers[partition] = replace(words, marks=(), batches=(), diverging=None, snapshot=None)
                yield partition, replace(words, fetch_id=now.fetch_id)
            elif partition in self._answers:
                yield partition, replace(self._answers[partition], fetch_id=now.fetch_id)


class Answering:
    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, session: int | None) -> None:
        self._session = session
        self._number = 0
        self._is_open = False
        self._asks: dict[TopicPartition, Fetch] = {}
        #: Partitions that asked in words are answered in words; from then on silence will do.
        self._unanswered: dict[TopicPartition, Fetch] = {}
        self._news: dict[TopicPartition, Fetched] = {}
        self._others: list[Said] = []
        self._closed: list[TopicPartition] = []

    def asked(self, question: Question) -> tuple[Said, ...] | Answer:
        """What the replicas here hear: what is new, and once more what is not. Or a refusal to send back."""
        if question.number == 1 and question.session != self._session:
            self._begin(question.session)
        if (question.session, question.number) != (self._session, self._number + 1) or self._is_open:
            return Answer(question.session, question.number, is_unknown=True)
        self._number = question.number
        self._is_open = True
        for partition in question.closed:
            self._asks.pop(partition, None)
        others = [said for said in question.said if not isinstance(said[1], Fetch)]
        for partition, said in question.said:
            if isinstance(said, Fetch):
                self._asks[partition] = self._unanswered[partition] = said
                self._news.pop(partition, None)  # it was news to an older question
        return (*others, *self._asks.items())

    def tell(self, partition: TopicPartition, message: Message) -> None:
        """A replica here answers, or wants something else said."""
        if not isinstance(message, Fetched):
            self._others.append((partition, message))
        elif partition in self._asks and (partition in self._unanswered or has_news(message, self._asks[partition])):
            self._news[partition] = message
            self._unanswered.pop(partition, None)

    def fail(self, partition: TopicPartition) -> None:
        """The replica here is out of order: nobody may take silence for its sign of life."""
        self._news.pop(partition, None)
        self._unanswered.pop(partition, None)
        if self._asks.pop(partition, None) is not None:
            self._closed.append(partition)

    @property
    def has_news(self) -> bool:
        return bool(self._news or self._others or self._closed)

    def answer(self) -> Answer | None:
        """What to send back, when there is news or the question has waited long enough; None without a question."""
        if not self._is_open or self._session is None:
            return None
        self._is_open = False
        said = (*self._news.items(), *self._others)
        answer = Answer(self._session, self._number, said, tuple(self._closed))
        self._news, self._others, self._closed = {}, [], []
        return answer


def has_news(answer: Fetched, asked: Fetch) -> bool:
    """Whether an answer says more than that the leader is alive."""
    corrects = answer.diverging is not None or answer.snapshot is not None
    return bool(corrects or answer.marks or answer.batches) or answer.high_watermark > asked.high_watermark


def _is_same(heard: Fetch, now: Fetch) -> bool:
    return replace(heard, fetch_id=now.fetch_id) == now
