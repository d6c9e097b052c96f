"""The sessions of one broker to all others: what travels when, and with what."""

from __future__ import annotations

import pytest

from zurau.epochs import Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.events import FetchProgressed, FollowerQuiesced, LeaderQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import BeginEpoch, Fetch, Fetched, FetchRefused
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.sessions import Sessions

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
def one() -> Sessions:
    return Sessions(SETTINGS, Counting())


@pytest.fixture
def two() -> Sessions:
    return Sessions(SETTINGS, Counting())


def ask(one: Sessions, two: Sessions, now_ms: int = 0) -> None:
    """One's partition has asked two's, and been told that there is nothing new."""
    one.send(TWO, P, fetch())
    [(_, request)] = one.due(now_ms)
    assert two.receive(ONE, request, now_ms) == ((P, fetch()),)
    two.send(ONE, P, fetched())
    [(_, response)] = two.due(now_ms)
    assert one.receive(TWO, response, now_ms) == ((P, fetched()),)
    one.send(TWO, P, fetch(2))


def test_a_request_without_news_is_answered_after_a_while(one, two):
    ask(one, two)
    [(_, request)] = one.due(10)
    two.receive(ONE, request, 10)
    assert (two.due(210), two.deadline_ms) == ([], 211)
    [(to, response)] = two.due(211)
    assert (to, response.messages) == (ONE, ())
    assert one.receive(TWO, response, 212) == ()


def test_replicas_are_told_when_quiescence_begins_to_speak_for_them(one, two):
    ask(one, two)
    assert (one.notices(), two.notices()) == ([(P, LeaderQuiesced(fetched()))], [(P, FollowerQuiesced(fetch()))])
    assert (one.notices(), two.notices()) == ([], [])


def test_who_is_not_asked_again_in_time_stops_to_believe_in_the_one_who_asked(one, two):
    ask(one, two)
    two.notices()
    assert two.deadline_ms == SETTINGS.fetch_timeout_ms
    two.due(SETTINGS.fetch_timeout_ms)
    assert (two.notices(), two.deadline_ms) == ([(P, Unquiesced(FOLLOWER, 0))], None)


def test_what_cannot_be_answered_is_evicted_and_asks_anew(one, two):
    ask(one, two)
    [(_, request)] = one.due(10)
    two.receive(ONE, request, 10)
    two.evict(P, ONE)
    [(_, response)] = two.due(10)
    one.receive(TWO, response, 10)
    one.send(TWO, P, fetch(3))
    [(_, again)] = one.due(10)
    assert (response.closed, again.messages) == ((P,), ((P, fetch(3)),))


def test_nothing_to_say_is_not_said(one):
    one.send(TWO, P, fetched())
    assert (one.due(0), one.deadline_ms) == ([], None)


def test_a_request_that_is_not_answered_is_asked_anew_in_another_session(one):
    one.send(TWO, P, fetch())
    [(_, first)] = one.due(0)
    assert (one.due(449), one.deadline_ms) == ([], 450)
    [(_, second)] = one.due(450)
    assert second.session != first.session
    assert second.messages == first.messages


def test_an_answer_of_which_more_comes_is_not_given_up(one):
    one.send(TWO, P, fetch())
    one.due(0)
    for now_ms in (400, 800, 1200):
        one.progressed(TWO, now_ms)
        assert one.due(now_ms) == []
    assert (one.deadline_ms, one.notices()[-1]) == (1650, (P, FetchProgressed()))
    [(_, request)] = one.due(1650)
    assert request.number == 1


def test_who_is_still_being_told_something_is_not_missed(one, two):
    ask(one, two)
    two.notices()
    two.progressed(ONE, 900)
    assert two.deadline_ms == 900 + SETTINGS.fetch_timeout_ms


def test_a_second_request_ends_the_wait_of_the_first(one, two):
    ask(one, two)
    [(_, first)] = one.due(10)
    two.receive(ONE, first, 10)
    one.send(TWO, P, BEGIN)
    [(_, second)] = one.due(20)
    assert two.receive(ONE, second, 20) == ((P, BEGIN),)
    [(_, response)] = two.replies()
    assert response == SessionResponse(first.session, first.number, server_session=202)
    assert two.deadline_ms == 221


def test_a_request_of_another_session_ends_the_one_that_waited_without_an_answer(one, two):
    ask(one, two)
    [(_, first)] = one.due(10)
    two.receive(ONE, first, 10)
    one.lost(TWO)
    [(_, anew)] = one.due(20)
    assert two.receive(ONE, anew, 20) == ((P, fetch(2)),)
    assert two.replies() == []


def test_a_message_waits_for_the_answer_to_the_first_request_of_a_session(one):
    one.send(TWO, P, fetch())
    one.due(0)
    one.send(TWO, P, BEGIN)
    assert one.due(1) == []


def test_a_message_travels_with_an_answer_if_a_request_is_open_here(one, two):
    ask(one, two)
    [(_, request)] = one.due(10)
    two.receive(ONE, request, 10)
    two.send(ONE, P, BEGIN)
    [(_, response)] = two.due(11)
    assert isinstance(response, SessionResponse)
    assert (P, BEGIN) in one.receive(TWO, response, 12)


def test_a_message_travels_with_a_request_otherwise(one):
    one.send(TWO, P, BEGIN)
    assert one.due(0) == [(TWO, SessionRequest(100, 1, ((P, BEGIN),)))]


def test_who_turns_to_another_leader_does_not_ask_the_first_by_quiescence(one, two):
    ask(one, two)
    one.send(THREE, P, fetch(3))
    questions = dict(one.due(10))
    assert questions[TWO].closed == (P,)
    assert questions[THREE].messages == ((P, fetch(3)),)


@pytest.mark.parametrize(("role", "epoch"), [(Role.LEADER, 1), (Role.CANDIDATE, 1), (Role.FOLLOWER, 2)])
def test_who_leads_or_is_in_another_epoch_asks_no_more(one, two, role, epoch):
    ask(one, two)
    one.role_changed(P, role, epoch)
    assert dict(one.due(10))[TWO].closed == (P,)


def test_who_follows_in_the_same_epoch_goes_on_asking(one, two):
    ask(one, two)
    one.role_changed(P, Role.PROSPECTIVE, 1)
    assert dict(one.due(10))[TWO] == SessionRequest(100, 2, server_session=202)


def test_a_leader_whose_leadership_has_ended_is_not_made_to_look_alive(one, two):
    ask(one, two)
    [(_, request)] = one.due(10)
    two.receive(ONE, request, 10)
    two.role_changed(P, Role.FOLLOWER, 2)
    [(_, response)] = two.due(11)
    assert response.closed == (P,)
    assert one.receive(TWO, response, 12) == ()


def test_a_partition_that_is_not_there_is_evicted_of_the_session(one, two):
    one.send(TWO, P, fetch())
    [(_, request)] = one.due(0)
    two.receive(ONE, request, 0)
    two.fail(P)
    [(_, response)] = two.due(1)
    assert response.closed == (P,)
    one.receive(TWO, response, 2)
    assert one.due(3) == []


def test_a_refusal_of_a_fetch_is_said_at_once(one, two):
    one.send(TWO, P, fetch())
    [(_, request)] = one.due(0)
    two.receive(ONE, request, 0)
    refused = FetchRefused(LEADER, 1, 1, None)
    two.send(ONE, P, refused)
    [(_, response)] = two.due(0)
    assert one.receive(TWO, response, 0) == ((P, refused),)


def test_a_session_that_is_not_known_is_refused_and_begun_anew(one, two):
    ask(one, two)
    two.lost(ONE)
    [(_, request)] = one.due(10)
    assert two.receive(ONE, request, 10) == ()
    [(_, refusal)] = two.replies()
    assert one.receive(TWO, refusal, 11) == ()
    [(_, again)] = one.due(11)
    assert again.messages == ((P, fetch(2)),)


def test_a_lost_connection_begins_another_session_at_once(one):
    one.send(TWO, P, fetch())
    one.due(0)
    one.lost(TWO)
    assert one.due(1) == [(TWO, SessionRequest(300, 1, ((P, fetch()),)))]
