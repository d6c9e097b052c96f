"""How a high watermark reaches followers: with records, or a little later by itself; and log starts with it."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.effects import AdvanceHighWatermark, AdvanceStart, ReadAndSend, Send
from zurau.replica.core.events import (
    Flushed,
    LogStartMoved,
    PartitionChanged,
    Received,
    RecordsWritten,
    TimePassed,
    VoterChangeAsked,
)
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import BeginEpoch, Fetch, Fetched, FetchRefused, HighWatermark, VoteAnswer, for_fetch
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.session.client import SessionClient
from zurau.replica.session.server import SessionServer
from zurau.replica.session.sessions import Sessions

FOLLOWER, LEADER = ReplicaId(BrokerId(1), "a"), ReplicaId(BrokerId(2), "a")
P = PartitionId(TopicId(bytes(16)), 0)
NEWS = HighWatermark(LEADER, 1, 1, 6)


def fetch(fetch_id: int = 1, high_watermark: int = 5) -> Fetch:
    return Fetch(FOLLOWER, 1, fetch_id, Position(1, 6), high_watermark)


@pytest.fixture
def pair() -> tuple[SessionClient, SessionServer]:
    """A partition that waits for news."""
    client, server = SessionClient(7), SessionServer(50)
    client.send(P, fetch())
    server.receive(client.next_request(), 0)
    return client, server


def test_a_fetch_goes_on_waiting_when_only_the_high_watermark_has_moved(pair):
    client, server = pair
    server.send(P, NEWS)
    assert (server.has_news, server.has_advances) == (False, True)
    assert client.receive(server.next_response(), 0) == ((P, NEWS),)
    assert client.standing == server.asked_for == {P: fetch(high_watermark=6)}


def test_news_of_a_high_watermark_reach_the_fetch_that_is_open_now(pair):
    client, server = pair
    client.send(P, fetch(2))
    server.send(P, NEWS)
    assert client.receive(server.next_response(), 0) == ((P, HighWatermark(LEADER, 1, 2, 6)),)


def test_news_of_a_high_watermark_say_nothing_to_a_partition_that_asks_something_else_by_now(pair):
    client, server = pair
    client.send(P, Fetch(FOLLOWER, 1, 2, Position(1, 4), 5))
    server.send(P, NEWS)
    assert client.receive(server.next_response(), 0) == ()
    assert client.next_request().messages == ((P, Fetch(FOLLOWER, 1, 2, Position(1, 4), 5)),)


def test_records_take_the_place_of_news_of_a_high_watermark(pair):
    client, server = pair
    answer = Fetched(LEADER, 1, 1, 6, (), (Batch(1, 6, 1, b"x"),))
    server.send(P, NEWS)
    server.send(P, answer)
    assert client.receive(server.next_response(), 0) == ((P, answer),)


def test_news_of_a_high_watermark_are_forgotten_with_the_fetch(pair):
    _, server = pair
    server.send(P, NEWS)
    server.evict(P)
    assert not server.has_advances


def test_an_answer_of_another_kind_keeps_what_it_says_for_another_fetch():
    assert for_fetch(FetchRefused(LEADER, 1, 1, None), 4) == FetchRefused(LEADER, 1, 4, None)


def test_a_high_watermark_is_told_after_a_few_ms_if_nothing_else_is():
    class Zero:
        def bytes(self, count: int) -> bytes:
            return bytes(count)

        def below(self, bound: int) -> int:
            return 0

    one, two = (Sessions(ReplicaSettings(high_watermark_delay_ms=10), Zero()) for _ in range(2))
    one.send(LEADER.broker, P, fetch())
    [(_, request)] = one.due(0)
    two.receive(FOLLOWER.broker, request, 0)
    two.send(FOLLOWER.broker, P, NEWS)
    assert (two.due(100), two.deadline_ms) == ([], 110)
    [(_, response)] = two.due(110)
    assert one.receive(LEADER.broker, response, 110) == ((P, NEWS),)


@pytest.fixture
def follower(make, ids):
    """1a, which has a record of 2a's, flushed, and has asked for more."""
    replica, leader = make(), ids("2a")[0]
    [asked] = [each.message for each in replica.step(Received(BeginEpoch(leader, 3)), 0) if isinstance(each, Send)][-1:]
    answer = Fetched(leader, 3, asked.fetch_id, 0, (EpochMark(3, 0),), (Batch(3, 0, 1, b"x"),), log_start=1)
    replica.step(Received(answer), 0)
    [asked] = [each.message for each in replica.step(Flushed(1), 0) if isinstance(each, Send)]
    return replica, asked.fetch_id


def test_a_follower_deletes_what_its_leader_has_deleted_when_it_knows_that_it_is_committed(follower, ids):
    replica, fetch_id = follower
    [advance, start, asked] = replica.step(Received(HighWatermark(ids("2a")[0], 3, fetch_id, 1)), 0)
    assert (advance, start) == (AdvanceHighWatermark(1), AdvanceStart(1))
    assert asked.message.log_start == 1


@pytest.mark.parametrize(("sender", "late"), [("3a", 0), ("2a", 1)])
def test_news_of_a_high_watermark_for_another_fetch_or_from_another_leader_are_not_taken(follower, ids, sender, late):
    replica, fetch_id = follower
    assert replica.step(Received(HighWatermark(ids(sender)[0], 3, fetch_id - late, 1)), 0) == ()


def test_what_every_replica_has_deleted_is_known_to_the_leader_only(make_in_sync, ids):
    leader, other = make_in_sync(waits_for_flush=False), ids("2a")[0]
    assert leader.low_watermark is None
    leader.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a 2a"), 1), 4), 0)
    leader.step(RecordsWritten(1), 0)
    leader.step(Flushed(1), 0)
    leader.step(Flushed(2), 0)
    leader.step(Received(Fetch(other, 1, 1, Position(1, 1), 0, 9)), 0)
    leader.step(Received(Fetch(other, 1, 2, Position(1, 1), 1, 9)), 0)
    [told] = leader.step(LogStartMoved(1), 0)
    assert (type(told), told.message.log_start, leader.low_watermark) == (ReadAndSend, 1, 0)
    leader.step(Received(Fetch(other, 1, 3, Position(1, 1), 1, 9, log_start=1)), 0)
    assert leader.low_watermark == 1


def test_a_leader_that_is_no_voter_any_more_does_not_wait_for_its_own_disk(make, ids):
    leader, other = make(voters="1a 2a"), ids("2a")[0]
    leader.step(TimePassed(), 0)
    leader.step(TimePassed(), 1000)
    for epoch, is_pre in ((0, True), (1, False)):
        leader.step(Received(VoteAnswer(other, epoch, True, is_pre)), 1000)
    leader.step(Flushed(1), 1000)
    leader.step(Received(Fetch(other, 1, 1, Position(1, 0), 0)), 1000)
    leader.step(VoterChangeAsked(remove=ids("1a")[0]), 1100)
    leader.step(TimePassed(), 2499)
    assert (leader.role, leader.voters) == (Role.LEADER, ids("2a"))
    leader.step(TimePassed(), 2500)
    assert leader.role is Role.FOLLOWER


def test_one_whose_removal_may_not_be_committed_can_lead_until_it_is(make, ids):
    removed, other = make(voters="1a 2a"), ids("2a")[0]
    removed.step(TimePassed(), 0)
    removed.step(TimePassed(), 1000)
    for epoch, is_pre in ((0, True), (1, False)):
        removed.step(Received(VoteAnswer(other, epoch, True, is_pre)), 1000)
    removed.step(Flushed(1), 1000)
    removed.step(Received(Fetch(other, 1, 1, Position(1, 0), 0)), 1000)
    removed.step(VoterChangeAsked(remove=ids("1a")[0]), 1100)
    removed.step(TimePassed(), 2500)
    assert removed.role is Role.FOLLOWER
    removed.step(TimePassed(), 5000)
    for epoch, is_pre in ((1, True), (2, False)):
        removed.step(Received(VoteAnswer(other, epoch, True, is_pre)), 5000)
    assert removed.role is Role.LEADER
    removed.step(Received(Fetch(other, 2, 2, Position(2, 1), 0)), 5000)
    assert (removed.role, removed.high_watermark) == (Role.FOLLOWER, 1)
    removed.step(TimePassed(), 9000)
    assert removed.role is Role.FOLLOWER
