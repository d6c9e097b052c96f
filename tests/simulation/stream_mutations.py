"""Bugs planted around the stream between brokers, topics, the controller and recovery: see mutations.py."""

from __future__ import annotations

import dataclasses
from typing import Any

from planted import in_sync, quorum

from zurau.epochs import Position
from zurau.replica.events import PartitionChanged, RecordsOffered
from zurau.replica.follower import Follower
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.in_sync import InSyncFollower
from zurau.replica.in_sync_replica import InSyncReplica
from zurau.replica.messages import Fetched, FetchRefused, Message
from zurau.replica.partition_state import PartitionState
from zurau.replica.progress import Progress
from zurau.replica.roles import Role
from zurau.replica.session import Answer, Answering, Asking, Question
from zurau.replica.streams import Streams
from zurau.simulation.cluster import controller as controller_module
from zurau.simulation.cluster import host as host_module
from zurau.simulation.cluster.controller import Controller
from zurau.simulation.cluster.machine import Machine
from zurau.simulation.cluster.service import Service
from zurau.simulation.cluster.storage import ReplicaDisk

# What silence says


def nobody_withdraws(self: Streams, partition: PartitionId, but: Any = None) -> None:
    """Whoever turns to another leader is still counted by the first."""


def turned_without_closing(self: Streams, partition: PartitionId, role: Role, epoch: int) -> None:
    """A leader whose reign has ended goes on answering by silence."""


def news_leave_the_question_standing(self: Asking, partition: PartitionId) -> None:
    """It is asked once more while the answer is being written down."""


def answer_and_leave_standing(self: Answering) -> Answer | None:
    asks = dict(self._asks)
    answer = _answer(self)
    self._asks = asks
    return answer


def closed_is_not_heard(self: Asking, answer: Answer, now_ms: int) -> Any:
    return _answered(self, dataclasses.replace(answer, closed=()), now_ms)


def nothing_is_closed(self: Answering, partition: PartitionId) -> None:
    """A replica that fails on a broker that goes on."""


def any_question_will_do(self: Answering, question: Question, now_ms: int) -> Any:
    """A second copy of a question is taken for the next."""
    if self._session == question.session and not self.is_open:
        self._number = question.number - 1
    return _asked(self, question, now_ms)


def any_answer_will_do(self: Asking, answer: Answer, now_ms: int) -> Any:
    if not answer.is_unknown:
        answer = dataclasses.replace(answer, session=self._session, number=self._answered + 1)
    return _answered(self, answer, now_ms)


def answers_are_about_what_is_asked_now(self: Asking, partition: PartitionId) -> bool:
    """What was asked after a question is taken for answered with it."""
    return False


def answers_that_took_too_long(self: Answering, partition: PartitionId, message: Message) -> None:
    asked = self._asks.get(partition)
    if isinstance(message, Fetched | FetchRefused) and asked is not None:
        message = dataclasses.replace(message, fetch_id=asked.fetch_id)
    _tell(self, partition, message)


# When silence ends


def nobody_hears_that_silence_ends(self: Asking | Answering, partition: PartitionId) -> None:
    self.silent.pop(partition, None)


def nobody_is_missed(self: Answering) -> bool:
    """Whoever asked once and then never again is believed to be there."""
    return False


def standing_is_forever(self: Progress, at_ms: int) -> None:
    """A leader goes on believing in whoever it heard once."""


def the_end_is_when_it_is_heard_of(self: Progress, at_ms: int) -> None:
    _stood_until(self, 1 << 60)


def hear_what_is_replayed(self: InSyncReplica, event: Any) -> Any:
    """What a broker's own metadata said before it was stopped is taken for what is so now."""
    if isinstance(event, PartitionChanged):
        self._partition_changed(event.partition)
        return None
    return _in_sync_handle(self, event)


def nothing_to_say(self: InSyncFollower) -> None:
    """That its broker was counted anew stays a secret."""


# How much is said


def everybody_is_named(self: Asking, partition: PartitionId) -> bool:
    return False


def nobody_waits(self: Streams, sender: Any, it: Any, now_ms: int) -> Any:
    said = _streams_heard(self, sender, it, now_ms)
    self._peer(sender).answer_due_ms = now_ms
    return said


def bytes_are_no_sign_of_life(self: Streams, broker: Any, now_ms: int) -> None:
    """An answer that takes long is given up, asked for again, and takes long again."""


# Topics


def known_by_name(self: Machine, partition: PartitionId, message: Message) -> None:
    host = self.host_of(partition.partition)
    if host is not None and host.is_up:
        host.receive(message)


# Recovery and clients


def lose_the_last_one(self: ReplicaDisk, chance: Any, *, loses: bool = True) -> None:
    """Recovery takes the last of what was flushed for torn."""
    _crash(self, chance, loses=loses)
    if loses and self.safe.items:
        self.safe.cut(Position(self.safe.items[-1].epoch, max(self.start_offset, self.safe.end_offset - 1)))
        self.seen = self.safe.copy()


def acknowledge_what_is_written(self: Service, client: int, value: bytes) -> None:
    host = self._host
    if host.leads and not host.is_paused:
        end = host.disk.seen.end_offset
        host.tell(RecordsOffered(value, 1))
        if host.disk.seen.end_offset > end:
            host.group.acknowledge(host, client, value, host.disk.seen.end_offset)
    else:
        _offer(self, client, value)


def always(*_: Any) -> bool:
    return True


def patience_begins_anew(self: Follower) -> None:
    if self.has_fetched and self._state.leader is not None:
        self._hear_again()
    _ask(self)


# The controller


def say_what_is_not_committed(self: Controller, broker: Any, life: int) -> Any:
    known = self._image.registrations.get(broker)
    if not self.is_up or known is None or known.life != life:
        return None
    return known.broker_epoch, dict(self._image.partitions)


def first_by_name(able: list[ReplicaId], led: Any) -> ReplicaId | None:
    return min(able, default=None)


def go_on_where_the_other_was(self: Controller, reign: int) -> None:
    """It takes what the one before it had decided for committed."""
    if reign == self.reign:
        image = self._image
        _take_over(self, reign)
        self._image = image


def let_the_failed_lead(self: Controller, partition: PartitionId, broker: Any) -> None:
    known: PartitionState = self._image.partitions[partition]
    if self._image.registrations[broker].is_fenced or known.leader is None or known.leader.broker != broker:
        _leave(self, partition, broker)


_stood_until = Progress.stood_until
_answer = Answering.answer
_asked = Answering.asked
_tell = Answering.tell
_answered = Asking.answered
_streams_heard = Streams.heard
_crash = ReplicaDisk.crash
_in_sync_handle = InSyncReplica._handle
_offer = Service.offer
_ask = Follower._ask
_take_over = Controller._take_over
_leave = Controller._leave

STREAM_MUTATIONS = (
    quorum("who turns to another leader asks the first by silence", 30, (Streams, "_withdraw", nobody_withdraws)),
    quorum("who leads no more answers by silence", 300, (Streams, "turned", turned_without_closing)),
    quorum(
        "an answer with news leaves the question standing",
        30,
        (Asking, "_use_up", news_leave_the_question_standing),
        (Answering, "answer", answer_and_leave_standing),
    ),
    quorum("a replica that failed answers by silence", 400, (Answering, "close", nothing_is_closed)),
    quorum("a follower's patience begins anew when it asks", 1200, (Follower, "_ask", patience_begins_anew), near=323),
    quorum("what was closed is heard in silence", 400, (Asking, "answered", closed_is_not_heard)),
    quorum("a second copy of a question is the next", 300, (Answering, "asked", any_question_will_do)),
    quorum("an answer to another question will do", 300, (Asking, "answered", any_answer_will_do)),
    quorum(
        "an answer that took too long is to what is asked now", 300, (Answering, "tell", answers_that_took_too_long)
    ),
    quorum(
        "an answer is about what was asked after its question",
        300,
        (Asking, "_has_asked_since", answers_are_about_what_is_asked_now),
        near=84,
    ),
    quorum(
        "nobody hears that silence has ended",
        30,
        (Asking, "_end_silence", nobody_hears_that_silence_ends),
        (Answering, "_end_silence", nobody_hears_that_silence_ends),
    ),
    quorum(
        "who stopped asking is not missed", 2500, (Answering, "expects_question", property(nobody_is_missed)), near=788
    ),
    quorum("a leader believes for ever in whoever was silent", 100, (Progress, "stood_until", standing_is_forever)),
    quorum(
        "silence counts until its end is heard of",
        600,
        (Progress, "stood_until", the_end_is_when_it_is_heard_of),
        near=180,
    ),
    in_sync("who is counted anew does not say so", 2000, (InSyncFollower, "registered", nothing_to_say), near=180),
    in_sync("metadata from before a start is heard", 60, (InSyncReplica, "_handle", hear_what_is_replayed)),
    quorum("every question names every partition", 100, (Asking, "_stands", everybody_is_named)),
    quorum("a question without news is answered at once", 100, (Streams, "heard", nobody_waits)),
    quorum("an answer that takes long is given up", 400, (Streams, "progressed", bytes_are_no_sign_of_life)),
    quorum("a topic is known by its name", 600, (Machine, "deliver", known_by_name), near=27),
    quorum(
        "who lost what was flushed keeps its name",
        30,
        (ReplicaDisk, "crash", lose_the_last_one),
        (host_module, "keeps_its_name", always),
    ),
    quorum("a record is acknowledged when it is written", 30, (Service, "offer", acknowledge_what_is_written)),
    in_sync("who leads no more answers by silence, in sync", 300, (Streams, "turned", turned_without_closing), near=28),
    in_sync(
        "who lost what was flushed keeps its name, in sync",
        30,
        (ReplicaDisk, "crash", lose_the_last_one),
        (host_module, "keeps_its_name", always),
    ),
    in_sync(
        "a record is acknowledged when it is written, in sync", 30, (Service, "offer", acknowledge_what_is_written)
    ),
    in_sync("the controller says what is not committed", 60, (Controller, "reply_to", say_what_is_not_committed)),
    in_sync("the first by name leads, however much it leads", 30, (controller_module, "choose_leader", first_by_name)),
    in_sync(
        "a new controller takes for committed what is not",
        300,
        (Controller, "_take_over", go_on_where_the_other_was),
        near=41,
    ),
    in_sync("a replica that failed leads on", 300, (Controller, "_leave", let_the_failed_lead)),
)
