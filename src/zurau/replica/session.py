"""One stream for everything that one broker asks another: all partitions in one question, and in one answer.

Most of a fetch is what was said before, so a question names only the partitions whose fetch is another one than last
time, and an answer only those with news. **Silence means unchanged**: whoever is not named asks the same again, or gets
the same answer, nothing new. An idle pair of brokers exchanges one empty question and one empty answer in a while,
however many partitions they share.

A question without news waits at the other side for some. What comes up meanwhile, say of a follower that has just
flushed what it got, does not wait with it: it is asked in a second question, and the first is answered at once. No more
than two are open, so that what comes up in one round trip travels together.

Silence is only understood while both sides mean the same by "last time":

- A session has two names that chance gave it, one from either side, and its questions have numbers; an answer to any
  other question, or of any other session, says nothing about anybody. One name would not do: a first question that
  comes a second time, after the other side has forgotten the session, would bring back what was asked then. Questions
  and answers arrive in order, or the session begins anew.
- A fetch *stands* from when it was asked in words until it is answered with news or refused: that uses it up, and its
  partition is silent from then on until it asks in words again.
- Whoever stops meaning what it said is put out of the session: a follower that turns elsewhere, a leader whose reign
  ends, a replica that fails. A broker that is alive must not make a dead partition look alive.

Silence is not passed on to the replicas, or an idle partition would cost something on every round: they are told when
it begins to speak for them, and when it has ended and how long it was true (`notices`, see `silence.py`).

Votes and the beginnings and ends of epochs travel along and are never left out. Two cores: `Asking` on the follower's
broker, `Answering` on the leader's; `streams.py` holds those of one broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from zurau.replica.events import AnswerStands, FetchProgressed, FetchStands, StoodUntil
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.messages import Fetch, Fetched, FetchRefused, Message

Said = tuple[PartitionId, Message]
Notice = tuple[PartitionId, AnswerStands | FetchStands | StoodUntil | FetchProgressed]


@dataclass(frozen=True, slots=True)
class Question:
    session: int
    number: int
    said: tuple[Said, ...] = ()
    #: Partitions that ask no more.
    closed: tuple[PartitionId, ...] = ()
    #: What the other side calls this session; not known in the first question.
    name: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    session: int
    number: int
    said: tuple[Said, ...] = ()
    #: Partitions that are not answered any more, until they ask anew.
    closed: tuple[PartitionId, ...] = ()
    #: The session is not known here, or this was not its next question: begin another.
    is_unknown: bool = False
    #: What this side calls the session.
    name: int | None = None


class Asking:
    def __init__(self, session: int) -> None:
        #: What each partition asks now.
        self._asks: dict[PartitionId, Fetch] = {}
        #: Those that were told that silence is their answer, with the leaders whose silence it is.
        self.silent: dict[PartitionId, ReplicaId] = {}
        #: What the replicas here are to be told, before anything else.
        self.notices: list[Notice] = []
        self._begin(session)

    def _begin(self, session: int) -> None:
        self._session = session
        self._name: int | None = None
        self._number = 0
        self._answered = 0
        #: What the other side last heard each partition ask, in which question, and what it said to that: nothing new.
        self._heard: dict[PartitionId, Fetch] = {}
        self._heard_in: dict[PartitionId, int] = {}
        self._answers: dict[PartitionId, Fetched] = {}
        self._answered_ms = 0
        #: What the next question has to say, each once and in order.
        self._unsaid: dict[PartitionId, None] = dict.fromkeys(self._asks)
        self._others: list[Said] = []
        self._closed: list[PartitionId] = []

    def tell(self, partition: PartitionId, message: Message) -> None:
        """A replica here wants this said."""
        if not isinstance(message, Fetch):
            self._others.append((partition, message))
            return
        self._asks[partition] = message
        if not self._stands(partition):
            self._unsaid[partition] = None
            self._end_silence(partition)
            return
        self._unsaid.pop(partition, None)
        if partition in self._answers:
            self.silent[partition] = self._answers[partition].sender
            self.notices.append((partition, AnswerStands(self._answers[partition])))

    def withdraw(self, partition: PartitionId) -> None:
        """The replica here has turned elsewhere, or is out of order: it asks no more."""
        if partition in self._heard:
            self._closed.append(partition)
        self._use_up(partition)

    def asks(self, partition: PartitionId) -> Fetch | None:
        return self._asks.get(partition)

    @property
    def open_questions(self) -> int:
        return self._number - self._answered

    @property
    def standing(self) -> dict[PartitionId, Fetch]:
        """What a question without words says: the fetches that are asked once more."""
        return {each: heard for each, heard in self._heard.items() if self._stands(each)}

    @property
    def answered_for(self) -> dict[PartitionId, Fetched]:
        """What an answer without words says."""
        return {each: last for each, last in self._answers.items() if self._stands(each)}

    def question(self) -> Question | None:
        """What to send now, if anything. Without news it is a sign of life, and waits for news of the other side; what
        comes up here meanwhile is said in a second one, which ends the wait of the first."""
        has_news = bool(self._unsaid or self._others or self._closed)
        if self.open_questions:
            is_due = has_news and self.open_questions == 1 and self._name is not None
        else:
            is_due = has_news or bool(self._asks)
        if not is_due:
            return None
        self._number += 1
        for partition in self._unsaid:
            self._heard[partition] = self._asks[partition]
            self._heard_in[partition] = self._number
            self._answers.pop(partition, None)
        said = (*((each, self._asks[each]) for each in self._unsaid), *self._others)
        question = Question(self._session, self._number, said, tuple(self._closed), self._name)
        self._unsaid, self._others, self._closed = {}, [], []
        return question

    def answered(self, answer: Answer, now_ms: int) -> tuple[Said, ...]:
        """What the replicas here hear. Raises nothing: an answer that fits no question is not one."""
        if answer.session != self._session or not self._answered < answer.number <= self._number:
            return ()
        if answer.is_unknown or answer.number != self._answered + 1:
            self.lost(self._session + 1)
            return ()
        self._answered = answer.number
        self._name = answer.name
        for partition in answer.closed:
            if not self._has_asked_since(partition):
                self._use_up(partition)
        self._answered_ms = now_ms
        return tuple(each for said in answer.said for each in self._hear(*said))

    def progressed(self) -> None:
        """Bytes of an answer are arriving: whoever waits for one has a reason to wait on."""
        self.notices += [(each, FetchProgressed()) for each in self._heard if each not in self.silent]

    def lost(self, session: int) -> None:
        """The connection is gone, or the other side has forgotten: everything is said anew, in another session."""
        for partition in list(self.silent):
            self._end_silence(partition)
        self._begin(session)

    def _stands(self, partition: PartitionId) -> bool:
        heard, now = self._heard.get(partition), self._asks.get(partition)
        return heard is not None and now is not None and _is_same(heard, now)

    def _has_asked_since(self, partition: PartitionId) -> bool:
        """Whether it asks something in a question that is open yet: the last answer is not about that."""
        return partition in self._heard and self._heard_in[partition] > self._answered

    def _hear(self, partition: PartitionId, message: Message) -> Iterator[Said]:
        if not isinstance(message, Fetched | FetchRefused):
            yield partition, message
            return
        if self._has_asked_since(partition):
            return
        if not self._stands(partition):
            self._heard.pop(partition, None)
            return  # it asks something else meanwhile: this is the answer to what it asked before
        heard, now = self._heard[partition], self._asks[partition]
        if isinstance(message, FetchRefused) or has_news(message, heard):
            self._use_up(partition)
        else:
            self._answers[partition] = message
        yield partition, replace(message, fetch_id=now.fetch_id)

    def _end_silence(self, partition: PartitionId) -> None:
        leader = self.silent.pop(partition, None)
        if leader is not None:
            self.notices.append((partition, StoodUntil(leader, self._answered_ms)))

    def _use_up(self, partition: PartitionId) -> None:
        self._heard.pop(partition, None)
        self._heard_in.pop(partition, None)
        self._asks.pop(partition, None)
        self._answers.pop(partition, None)
        self._unsaid.pop(partition, None)
        self._end_silence(partition)


class Answering:
    def __init__(self, name: int, max_bytes: int = 1 << 62) -> None:
        self._name = name
        self._max_bytes = max_bytes
        #: Those that were told that silence is a question, with the followers whose silence it is.
        self.silent: dict[PartitionId, ReplicaId] = {}
        #: What the replicas here are to be told, before anything else.
        self.notices: list[Notice] = []
        self._begin(None)

    def _begin(self, session: int | None) -> None:
        self._session = session
        self._name += 1
        self._number = 0
        self.is_open = False
        self._asked_ms = 0
        self._asks: dict[PartitionId, Fetch] = {}
        #: Partitions that asked in words are answered in words; from then on silence will do.
        self._unanswered: dict[PartitionId, None] = {}
        self._words: dict[PartitionId, Message] = {}
        self._others: list[Said] = []
        #: In order, and each once.
        self._closed: dict[PartitionId, None] = {}

    def make_way(self, question: Question) -> Answer | None:
        """Before `asked`: a second question does not wait for the first, which is answered now, if it is open."""
        return self.answer() if question.session == self._session else None

    def asked(self, question: Question, now_ms: int) -> tuple[Said, ...] | Answer:
        """What the replicas here hear: what this question says. What an earlier one said and nobody has answered yet
        is still being worked on, perhaps by a slow disk: to say it again would begin that work again, with every
        question of every other partition. Or a refusal to send back."""
        if question.number == 1 and question.session != self._session:
            self.lost(question.session)
        name = self._name if question.number > 1 else None
        asked = (question.session, question.number, question.name)
        if asked != (self._session, self._number + 1, name) or self.is_open:
            return Answer(question.session, question.number, is_unknown=True)
        self._number = question.number
        self.is_open = True
        for partition in question.closed:
            self._drop(partition)
        for partition, said in question.said:
            if isinstance(said, Fetch):
                self._drop(partition)  # whatever there was to say was about an older question
                self._closed.pop(partition, None)
                self._asks[partition] = said
                self._unanswered[partition] = None
        self._asked_ms = now_ms
        return question.said

    def tell(self, partition: PartitionId, message: Message) -> None:
        """A replica here answers, or wants something else said."""
        if not isinstance(message, Fetched | FetchRefused):
            self._others.append((partition, message))
            return
        asked = self._asks.get(partition)
        if asked is None or asked.fetch_id != message.fetch_id:
            return  # an answer that took so long that something else is asked now, or nothing
        if partition in self._unanswered or has_news(message, asked):
            self._words[partition] = message

    def close(self, partition: PartitionId) -> None:
        """The replica here is out of order, or another than it was: nobody may take silence for its sign of life."""
        if self._drop(partition):
            self._closed[partition] = None

    def lost(self, session: int | None = None) -> None:
        """The connection is gone, and whatever was understood with it. Perhaps there is another session already."""
        for partition in list(self.silent):
            self._end_silence(partition)
        self._begin(session)

    @property
    def expects_question(self) -> bool:
        """Whoever asked something and was answered asks again at once."""
        return bool(self._asks) and not self.is_open

    @property
    def has_news(self) -> bool:
        return bool(self._words or self._others or self._closed)

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

    def answer(self) -> Answer | None:
        """What to send back, when there is news or the question has waited long enough; None without a question. What
        has no room in it goes first in the next."""
        if not self.is_open or self._session is None:
            return None
        self.is_open = False
        later = self._split()
        said = (*self._words.items(), *self._others)
        answer = Answer(self._session, self._number, said, tuple(self._closed), name=self._name)
        for partition, message in self._words.items():
            self._unanswered.pop(partition, None)
            asked = self._asks[partition]
            if has_news(message, asked):
                del self._asks[partition]
                self._end_silence(partition)
            else:
                self.silent[partition] = asked.sender
                self.notices.append((partition, FetchStands(asked)))
        self._words, self._others, self._closed = later, [], {}
        return answer

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
        self._unanswered.pop(partition, None)
        self._end_silence(partition)
        return self._asks.pop(partition, None) is not None

    def _end_silence(self, partition: PartitionId) -> None:
        follower = self.silent.pop(partition, None)
        if follower is not None:
            self.notices.append((partition, StoodUntil(follower, self._asked_ms)))


def has_news(answer: Message, asked: Fetch) -> bool:
    """Whether an answer says more than that the leader is alive."""
    if not isinstance(answer, Fetched):
        return True
    corrects = answer.diverging is not None or answer.snapshot is not None
    has_moved = answer.high_watermark > asked.high_watermark or answer.log_start > asked.log_start
    return bool(corrects or answer.marks or answer.batches) or has_moved


def _is_same(heard: Fetch, now: Fetch) -> bool:
    return (heard.position, heard.epoch, heard.high_watermark, heard.sender, heard.broker_epoch, heard.log_start) == (
        now.position, now.epoch, now.high_watermark, now.sender, now.broker_epoch, now.log_start,
    )  # fmt: skip
