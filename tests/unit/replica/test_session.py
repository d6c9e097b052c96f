"""The stream between two brokers: quiescence means unchanged, and only while both mean the same by it."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.events import FetchProgressed, FollowerQuiesced, LeaderQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import BeginEpoch, Fetch, Fetched, FetchRefused, HighWatermark, VoteAnswer
from zurau.replica.session.client import SessionClient
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.server import SessionServer

FOLLOWER, LEADER = ReplicaId(BrokerId(1), "a"), ReplicaId(BrokerId(2), "a")
ORDERS = TopicId(bytes(15) + b"o")
P, Q = PartitionId(ORDERS, 0), PartitionId(ORDERS, 1)
BATCH = Batch(1, 5, 1, b"x")
NOW_MS = 1000


def fetch(fetch_id: int, offset: int = 5, epoch: int = 1) -> Fetch:
    return Fetch(FOLLOWER, epoch, fetch_id, Position(epoch, offset), 5)


def fetched(fetch_id: int = 0, *, high_watermark: int = 5, batches: tuple[Batch, ...] = ()) -> Fetched:
    return Fetched(LEADER, 1, fetch_id, high_watermark, (), batches)


@pytest.fixture
def pair() -> tuple[SessionClient, SessionServer]:
    """Two partitions that have asked and been told that there is nothing new, and ask the same again."""
    client, server = SessionClient(7), SessionServer(50)
    for partition in (P, Q):
        client.send(partition, fetch(1))
    assert server.receive(client.next_request(), NOW_MS) == ((P, fetch(1)), (Q, fetch(1)))
    for partition in (P, Q):
        server.send(partition, fetched(1))
    assert client.receive(server.next_response(), NOW_MS) == ((P, fetched(1)), (Q, fetched(1)))
    for partition in (P, Q):
        client.send(partition, fetch(2))
    assert server.notices == [(P, FollowerQuiesced(fetch(1))), (Q, FollowerQuiesced(fetch(1)))]
    assert client.notices == [(P, LeaderQuiesced(fetched(1))), (Q, LeaderQuiesced(fetched(1)))]
    client.notices, server.notices = [], []
    return client, server


def test_who_asks_the_same_again_is_not_named_and_nobody_hears_of_it(pair):
    client, server = pair
    request = client.next_request()
    assert request == SessionRequest(7, 2, server_session=52)
    assert (server.receive(request, 2000), server.notices) == ((), [])


def test_an_answer_without_news_is_silent_and_nobody_hears_of_it(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    server.send(P, fetched(1))
    assert not server.has_news
    assert (client.receive(server.next_response(), 2001), client.notices) == ((), [])


def test_quiescence_was_a_sign_of_life_until_the_last_answer(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    client.receive(server.next_response(), 2001)
    client.next_request()
    client.lost(99)
    assert client.notices == [(P, Unquiesced(LEADER, 2001)), (Q, Unquiesced(LEADER, 2001))]


def test_quiescence_was_a_sign_of_life_until_the_last_request(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    server.lost()
    assert server.notices == [(P, Unquiesced(FOLLOWER, 2000)), (Q, Unquiesced(FOLLOWER, 2000))]


def test_another_session_ends_what_quiescence_said_in_the_one_before(pair):
    _, server = pair
    server.receive(SessionRequest(8, 1, ((P, fetch(9)),)), 3000)
    assert server.notices == [(P, Unquiesced(FOLLOWER, NOW_MS)), (Q, Unquiesced(FOLLOWER, NOW_MS))]


def test_who_asks_something_else_has_ended_its_quiescence_on_both_sides(pair):
    client, server = pair
    client.send(P, fetch(3, offset=6))
    assert client.notices == [(P, Unquiesced(LEADER, NOW_MS))]
    assert server.receive(client.next_request(), 2000) == ((P, fetch(3, offset=6)),)
    assert server.notices == [(P, Unquiesced(FOLLOWER, NOW_MS))]


def test_whoever_asks_the_same_once_more_is_told_once_more_that_quiescence_is_the_answer(pair):
    client, _ = pair
    client.send(P, fetch(3))
    assert client.notices == [(P, LeaderQuiesced(fetched(1)))]


def test_news_reach_the_request_that_is_open_now(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    server.send(Q, fetched(1, high_watermark=6, batches=(BATCH,)))
    assert server.has_news
    heard = dict(client.receive(server.next_response(), NOW_MS))
    assert heard[Q] == fetched(2, high_watermark=6, batches=(BATCH,))


def test_an_answer_with_news_uses_the_request_up(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    server.send(P, fetched(1, batches=(BATCH,)))
    client.receive(server.next_response(), 2001)
    assert server.notices == [(P, Unquiesced(FOLLOWER, 2000))]
    assert client.notices == [(P, Unquiesced(LEADER, 2001))]
    request = client.next_request()  # P writes down what it got, and does not ask meanwhile
    assert (request.messages, request.closed) == ((), ())
    server.receive(request, 2002)
    assert list(server.asked_for) == [Q]


def test_a_high_watermark_that_moves_behind_an_answer_with_news_is_told_when_its_partition_asks_again(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    server.send(P, fetched(1, batches=(BATCH,)))
    server.send(P, HighWatermark(LEADER, 1, 1, 6))
    assert client.receive(server.next_response(), 2001) == ((P, fetched(2, batches=(BATCH,))),)
    assert not server.has_advances


def test_a_refusal_uses_the_request_up_and_has_the_number_that_is_awaited(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    server.send(P, FetchRefused(LEADER, 1, 1, None))
    assert client.receive(server.next_response(), NOW_MS) == ((P, FetchRefused(LEADER, 1, 2, None)),)
    server.receive(client.next_request(), NOW_MS)
    assert list(server.asked_for) == [Q]


def test_an_answer_to_what_a_partition_asked_before_is_not_heard(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    client.send(P, fetch(3, offset=2))
    server.send(P, fetched(1, batches=(BATCH,)))
    assert P not in dict(client.receive(server.next_response(), NOW_MS))
    assert client.next_request().messages == ((P, fetch(3, offset=2)),)


def test_an_answer_that_took_too_long_is_not_an_answer_to_what_is_asked_now(pair):
    client, server = pair
    client.send(P, fetch(3, offset=9))
    server.receive(client.next_request(), NOW_MS)
    server.send(P, fetched(1, batches=(BATCH,)))
    assert not server.has_news


def test_a_partition_that_asks_something_else_is_answered_in_words(pair):
    client, server = pair
    client.send(P, fetch(3, offset=9))
    server.send(P, fetched(1, batches=(BATCH,)))
    server.receive(client.next_request(), NOW_MS)
    assert client.next_request() is None
    assert P not in dict(client.receive(server.next_response(), NOW_MS))
    server.receive(client.next_request(), NOW_MS)
    server.send(P, fetched(3))
    assert dict(client.receive(server.next_response(), NOW_MS))[P] == fetched(3)


def test_a_partition_that_fails_at_the_leader_is_not_made_to_look_alive(pair):
    client, server = pair
    server.receive(client.next_request(), 2000)
    server.evict(P)
    server.evict(P)
    client.receive(server.next_response(), 2001)
    assert client.notices == [(P, Unquiesced(LEADER, NOW_MS))]
    server.receive(client.next_request(), 2002)
    assert list(server.asked_for) == [Q]
    server.send(P, fetched(1))
    assert not server.has_news


def test_who_asks_anew_before_it_hears_that_it_was_evicted_is_answered(pair):
    client, server = pair
    server.evict(P)
    client.send(P, fetch(3, offset=9))
    server.receive(client.next_request(), NOW_MS)
    server.send(P, fetched(3))
    response = server.next_response()
    assert (response.closed, dict(client.receive(response, NOW_MS))[P]) == ((), fetched(3))


def test_a_partition_that_fails_at_the_follower_asks_no_more(pair):
    client, server = pair
    client.withdraw(Q)
    client.withdraw(Q)
    request = client.next_request()
    assert request.closed == (Q,)
    server.receive(request, 2000)
    assert (list(server.asked_for), server.notices) == ([P], [(Q, Unquiesced(FOLLOWER, NOW_MS))])


def test_a_partition_that_fails_before_it_was_named_is_not_closed():
    client = SessionClient(1)
    client.send(P, fetch(1))
    client.withdraw(P)
    assert client.next_request() is None


def test_an_answer_to_a_partition_that_asks_no_more_is_not_heard(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    client.withdraw(P)
    server.send(P, fetched(1, batches=(BATCH,)))
    assert client.receive(server.next_response(), NOW_MS) == ()


def test_quiescence_is_no_answer_before_there_was_one_in_words():
    client = SessionClient(1)
    client.send(P, fetch(1))
    client.next_request()
    client.send(P, fetch(2))
    assert client.notices == []


def test_a_fetch_that_is_not_answered_yet_is_not_delivered_again_with_the_next_request():
    client, server = SessionClient(1), SessionServer(50)
    client.send(P, fetch(1))
    server.receive(client.next_request(), NOW_MS)
    client.receive(server.next_response(), NOW_MS)
    client.send(Q, fetch(1))
    assert server.receive(client.next_request(), NOW_MS) == ((Q, fetch(1)),)
    server.send(P, fetched(1, batches=(BATCH,)))
    assert client.receive(server.next_response(), NOW_MS) == ((P, fetched(1, batches=(BATCH,))),)


def test_what_stands_is_what_quiescence_says(pair):
    client, server = pair
    assert client.standing == server.standing == {P: fetch(1), Q: fetch(1)}
    client.withdraw(P)
    server.evict(Q)
    assert (client.asks(P), client.asks(Q)) == (None, fetch(2))
    assert (list(client.standing), list(server.standing)) == ([Q], [P])
    assert (list(client.answered_for), list(server.asked_for), server.closing) == ([Q], [P], (Q,))


def test_other_messages_travel_along_both_ways(pair):
    client, server = pair
    begin, vote = BeginEpoch(FOLLOWER, 4), VoteAnswer(LEADER, 4, is_granted=True, is_pre=False)
    client.send(P, begin)
    assert (P, begin) in server.receive(client.next_request(), NOW_MS)
    server.send(P, vote)
    assert (P, vote) in client.receive(server.next_response(), NOW_MS)


def test_a_session_that_is_not_known_is_begun_anew_and_everything_said_again(pair):
    client, _ = pair
    forgetful = SessionServer(50)
    refusal = forgetful.receive(client.next_request(), NOW_MS)
    assert refusal == SessionResponse(7, 2, is_unknown=True)
    assert client.receive(refusal, NOW_MS) == ()
    request = client.next_request()
    assert request == SessionRequest(8, 1, ((P, fetch(2)), (Q, fetch(2))))
    assert forgetful.receive(request, NOW_MS) == request.messages


def test_a_request_that_comes_twice_is_no_second_acknowledgement(pair):
    client, server = pair
    request = client.next_request()
    server.receive(request, NOW_MS)
    assert server.receive(request, NOW_MS) == SessionResponse(7, 2, is_unknown=True)


@pytest.mark.parametrize("response", [SessionResponse(7, 1), SessionResponse(6, 2), SessionResponse(7, 3)])
def test_an_answer_to_another_request_says_nothing_about_anybody(pair, response):
    client, _ = pair
    client.next_request()
    assert client.receive(response, NOW_MS) == ()
    assert client.next_request() is None


def test_a_copy_of_a_request_that_was_answered_is_not_the_next(pair):
    client, server = pair
    request = client.next_request()
    server.receive(request, 2000)
    assert server.next_response() is not None
    assert server.receive(request, 2000) == SessionResponse(7, 2, is_unknown=True)


def test_what_comes_up_while_a_request_waits_is_asked_in_a_second_one(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    client.send(P, fetch(3, offset=6))
    second = client.next_request()
    assert second == SessionRequest(7, 3, ((P, fetch(3, offset=6)),), server_session=52)
    assert client.receive(server.next_response(), NOW_MS) == ()
    assert server.receive(second, NOW_MS) == ((P, fetch(3, offset=6)),)


def test_no_more_than_two_requests_are_open(pair):
    client, _ = pair
    client.next_request()
    client.send(P, fetch(3, offset=6))
    client.next_request()
    client.send(Q, fetch(3, offset=6))
    assert (client.open_requests, client.next_request()) == (2, None)


def test_a_second_request_is_not_asked_without_news(pair):
    client, _ = pair
    client.next_request()
    client.send(P, fetch(3, offset=6))
    client.send(P, fetch(4))  # as before
    assert client.next_request() is None


def test_an_answer_says_nothing_about_what_was_asked_after_its_request(pair):
    client, server = pair
    server.receive(client.next_request(), NOW_MS)
    server.send(P, fetched(1, batches=(BATCH,)))
    server.evict(Q)
    for partition in (P, Q):
        client.send(partition, fetch(3, offset=6))
    second = client.next_request()
    assert client.receive(server.next_response(), NOW_MS) == ()
    assert server.receive(second, NOW_MS) == ((P, fetch(3, offset=6)), (Q, fetch(3, offset=6)))
    for partition in (P, Q):
        server.send(partition, fetched(3))
    assert client.receive(server.next_response(), NOW_MS) == ((P, fetched(3)), (Q, fetched(3)))


def test_a_session_whose_answers_come_out_of_order_is_begun_anew(pair):
    client, _ = pair
    client.next_request()
    client.send(P, fetch(3, offset=6))
    client.next_request()
    assert client.receive(SessionResponse(7, 3, server_session=52), NOW_MS) == ()
    assert client.next_request() == SessionRequest(8, 1, ((P, fetch(3, offset=6)), (Q, fetch(2))))


def test_without_a_request_there_is_nothing_to_answer(pair):
    _, server = pair
    assert server.next_response() is None


def test_a_lost_connection_forgets_what_was_understood(pair):
    client, _ = pair
    client.next_request()
    client.lost(99)
    assert client.next_request() == SessionRequest(99, 1, ((P, fetch(2)), (Q, fetch(2))))


def test_a_first_request_that_comes_again_does_not_bring_back_a_session_that_was_forgotten():
    client, server = SessionClient(7), SessionServer(50)
    client.send(P, fetch(1))
    first = client.next_request()
    server.receive(first, NOW_MS)
    server.send(P, fetched(1))
    client.receive(server.next_response(), NOW_MS)
    server.lost()
    server.receive(first, NOW_MS)
    server.next_response()
    assert server.receive(client.next_request(), NOW_MS) == SessionResponse(7, 2, is_unknown=True)


def test_who_answers_forgets_everything_with_the_connection(pair):
    client, server = pair
    server.lost()
    assert server.receive(client.next_request(), NOW_MS) == SessionResponse(7, 2, is_unknown=True)


def test_an_idle_pair_says_and_hears_nothing_however_many_partitions_it_shares():
    client, server = SessionClient(1), SessionServer(50)
    for index in range(1000):
        client.send(PartitionId(ORDERS, index), fetch(1))
    for partition, _ in server.receive(client.next_request(), NOW_MS):
        server.send(partition, fetched(1))
    for partition, _ in client.receive(server.next_response(), NOW_MS):
        client.send(partition, fetch(2))
    client.notices, server.notices = [], []
    request = client.next_request()
    heard = server.receive(request, NOW_MS)
    response = server.next_response()
    heard += client.receive(response, NOW_MS)
    assert (request.messages, response.messages, heard, client.notices, server.notices) == ((), (), (), [], [])


def test_an_answer_has_about_so_many_bytes_and_what_is_left_goes_first_in_the_next():
    client, server = SessionClient(1), SessionServer(50, max_bytes=2)
    for index in range(4):
        client.send(PartitionId(ORDERS, index), fetch(1))
    server.receive(client.next_request(), NOW_MS)
    for index in range(4):
        server.send(PartitionId(ORDERS, index), fetched(1, batches=(Batch(1, 5, 1, b"xy"[: 1 + index // 2]),)))
    first = server.next_response()
    assert [partition.partition for partition, _ in first.messages] == [0, 1]
    assert [each.partition for each, _ in client.receive(first, NOW_MS)] == [0, 1]
    server.receive(client.next_request(), NOW_MS)
    assert server.has_news
    assert [partition.partition for partition, _ in server.next_response().messages] == [2]


def test_who_waits_for_an_answer_hears_that_bytes_are_coming(pair):
    client, _ = pair
    client.send(P, fetch(3, offset=6))
    client.next_request()
    client.notices = []
    client.progressed()
    assert client.notices == [(P, FetchProgressed())]


def test_corrections_are_news_and_are_said_once():
    client, server = SessionClient(1), SessionServer(50)
    client.send(P, fetch(1, offset=9))
    server.receive(client.next_request(), NOW_MS)
    correction = Fetched(LEADER, 1, 1, 5, (EpochMark(1, 0),), diverging=Position(1, 4))
    server.send(P, correction)
    assert client.receive(server.next_response(), NOW_MS) == ((P, correction),)


def test_a_partition_is_named_by_its_topics_id_and_number():
    assert str(Q) == "AAAAAAAAAAAAAAAAAAAAbw-1"
