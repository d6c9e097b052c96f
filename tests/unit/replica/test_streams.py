"""The streams of one broker to all others: what travels when, and with what."""

from __future__ import annotations

import pytest

from zurau.epochs import Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.events import AnswerStands, FetchProgressed, FetchStands, StoodUntil
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.messages import BeginEpoch, Fetch, Fetched, FetchRefused
from zurau.replica.roles import Role
from zurau.replica.session import Answer, Question
from zurau.replica.settings import ReplicaSettings
from zurau.replica.streams import Streams

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
P = PartitionId(TopicId(bytes(15) + b"o"), 0)
SETTINGS = ReplicaSettings(fetch_wait_ms=200, retry_ms=250)
FOLLOWER, LEADER = ReplicaId(ONE, "a"), ReplicaId(TWO, "a")
BEGIN = BeginEpoch(FOLLOWER, 4)


class Counting:
    """Chance that gives every session another number."""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        self.count += 100
        return self.count


def fetch(fetch_id: int = 1, epoch: int = 1) -> Fetch:
    return Fetch(FOLLOWER, epoch, fetch_id, Position(1, 5), 5)


def fetched(fetch_id: int = 1) -> Fetched:
    return Fetched(LEADER, 1, fetch_id, 5)


@pytest.fixture
def one() -> Streams:
    return Streams(SETTINGS, Counting())


@pytest.fixture
def two() -> Streams:
    return Streams(SETTINGS, Counting())


def ask(one: Streams, two: Streams, now_ms: int = 0) -> None:
    """One's partition has asked two's, and been told that there is nothing new."""
    one.send(TWO, P, fetch())
    [(_, question)] = one.due(now_ms)
    assert two.heard(ONE, question, now_ms) == ((P, fetch()),)
    two.send(ONE, P, fetched())
    [(_, answer)] = two.due(now_ms)
    assert one.heard(TWO, answer, now_ms) == ((P, fetched()),)
    one.send(TWO, P, fetch(2))


def test_a_question_without_news_is_answered_after_a_while(one, two):
    ask(one, two)
    [(_, question)] = one.due(10)
    two.heard(ONE, question, 10)
    assert (two.due(210), two.deadline_ms) == ([], 211)
    [(to, answer)] = two.due(211)
    assert (to, answer.said) == (ONE, ())
    assert one.heard(TWO, answer, 212) == ()


def test_replicas_are_told_when_silence_begins_to_speak_for_them(one, two):
    ask(one, two)
    assert (one.notices(), two.notices()) == ([(P, AnswerStands(fetched()))], [(P, FetchStands(fetch()))])
    assert (one.notices(), two.notices()) == ([], [])


def test_who_is_not_asked_again_in_time_stops_to_believe_in_the_one_who_asked(one, two):
    ask(one, two)
    two.notices()
    assert two.deadline_ms == SETTINGS.fetch_timeout_ms
    two.due(SETTINGS.fetch_timeout_ms)
    assert (two.notices(), two.deadline_ms) == ([(P, StoodUntil(FOLLOWER, 0))], None)


def test_what_cannot_be_answered_is_put_out_and_asks_anew(one, two):
    ask(one, two)
    [(_, question)] = one.due(10)
    two.heard(ONE, question, 10)
    two.put_out(P, ONE)
    [(_, answer)] = two.due(10)
    one.heard(TWO, answer, 10)
    one.send(TWO, P, fetch(3))
    [(_, again)] = one.due(10)
    assert (answer.closed, again.said) == ((P,), ((P, fetch(3)),))


def test_nothing_to_say_is_not_said(one):
    one.send(TWO, P, fetched())
    assert (one.due(0), one.deadline_ms) == ([], None)


def test_a_question_that_is_not_answered_is_asked_anew_in_another_session(one):
    one.send(TWO, P, fetch())
    [(_, first)] = one.due(0)
    assert (one.due(449), one.deadline_ms) == ([], 450)
    [(_, second)] = one.due(450)
    assert second.session != first.session
    assert second.said == first.said


def test_an_answer_of_which_more_comes_is_not_given_up(one):
    one.send(TWO, P, fetch())
    one.due(0)
    for now_ms in (400, 800, 1200):
        one.progressed(TWO, now_ms)
        assert one.due(now_ms) == []
    assert (one.deadline_ms, one.notices()[-1]) == (1650, (P, FetchProgressed()))
    [(_, question)] = one.due(1650)
    assert question.number == 1


def test_who_is_still_being_told_something_is_not_missed(one, two):
    ask(one, two)
    two.notices()
    two.progressed(ONE, 900)
    assert two.deadline_ms == 900 + SETTINGS.fetch_timeout_ms


def test_a_second_question_ends_the_wait_of_the_first(one, two):
    ask(one, two)
    [(_, first)] = one.due(10)
    two.heard(ONE, first, 10)
    one.send(TWO, P, BEGIN)
    [(_, second)] = one.due(20)
    assert two.heard(ONE, second, 20) == ((P, BEGIN),)
    [(_, answer)] = two.replies()
    assert answer == Answer(first.session, first.number, name=202)
    assert two.deadline_ms == 221


def test_a_question_of_another_session_ends_the_one_that_waited_without_an_answer(one, two):
    ask(one, two)
    [(_, first)] = one.due(10)
    two.heard(ONE, first, 10)
    one.lost(TWO)
    [(_, anew)] = one.due(20)
    assert two.heard(ONE, anew, 20) == ((P, fetch(2)),)
    assert two.replies() == []


def test_a_message_waits_for_the_answer_to_the_first_question_of_a_session(one):
    one.send(TWO, P, fetch())
    one.due(0)
    one.send(TWO, P, BEGIN)
    assert one.due(1) == []


def test_a_message_travels_with_an_answer_if_a_question_is_open_here(one, two):
    ask(one, two)
    [(_, question)] = one.due(10)
    two.heard(ONE, question, 10)
    two.send(ONE, P, BEGIN)
    [(_, answer)] = two.due(11)
    assert isinstance(answer, Answer)
    assert (P, BEGIN) in one.heard(TWO, answer, 12)


def test_a_message_travels_with_a_question_otherwise(one):
    one.send(TWO, P, BEGIN)
    assert one.due(0) == [(TWO, Question(100, 1, ((P, BEGIN),)))]


def test_who_turns_to_another_leader_does_not_ask_the_first_by_silence(one, two):
    ask(one, two)
    one.send(THREE, P, fetch(3))
    questions = dict(one.due(10))
    assert questions[TWO].closed == (P,)
    assert questions[THREE].said == ((P, fetch(3)),)


@pytest.mark.parametrize(("role", "epoch"), [(Role.LEADER, 1), (Role.CANDIDATE, 1), (Role.FOLLOWER, 2)])
def test_who_leads_or_is_in_another_epoch_asks_no_more(one, two, role, epoch):
    ask(one, two)
    one.turned(P, role, epoch)
    assert dict(one.due(10))[TWO].closed == (P,)


def test_who_follows_in_the_same_epoch_goes_on_asking(one, two):
    ask(one, two)
    one.turned(P, Role.PROSPECTIVE, 1)
    assert dict(one.due(10))[TWO] == Question(100, 2, name=202)


def test_a_leader_whose_reign_has_ended_is_not_made_to_look_alive(one, two):
    ask(one, two)
    [(_, question)] = one.due(10)
    two.heard(ONE, question, 10)
    two.turned(P, Role.FOLLOWER, 2)
    [(_, answer)] = two.due(11)
    assert answer.closed == (P,)
    assert one.heard(TWO, answer, 12) == ()


def test_a_partition_that_is_not_there_is_put_out_of_the_session(one, two):
    one.send(TWO, P, fetch())
    [(_, question)] = one.due(0)
    two.heard(ONE, question, 0)
    two.fail(P)
    [(_, answer)] = two.due(1)
    assert answer.closed == (P,)
    one.heard(TWO, answer, 2)
    assert one.due(3) == []


def test_a_refusal_of_a_fetch_is_said_at_once(one, two):
    one.send(TWO, P, fetch())
    [(_, question)] = one.due(0)
    two.heard(ONE, question, 0)
    refused = FetchRefused(LEADER, 1, 1, None)
    two.send(ONE, P, refused)
    [(_, answer)] = two.due(0)
    assert one.heard(TWO, answer, 0) == ((P, refused),)


def test_a_session_that_is_not_known_is_refused_and_begun_anew(one, two):
    ask(one, two)
    two.lost(ONE)
    [(_, question)] = one.due(10)
    assert two.heard(ONE, question, 10) == ()
    [(_, refusal)] = two.replies()
    assert one.heard(TWO, refusal, 11) == ()
    [(_, again)] = one.due(11)
    assert again.said == ((P, fetch(2)),)


def test_a_lost_connection_begins_another_session_at_once(one):
    one.send(TWO, P, fetch())
    one.due(0)
    one.lost(TWO)
    assert one.due(1) == [(TWO, Question(300, 1, ((P, fetch()),)))]
