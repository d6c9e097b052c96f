"""A leader whose connection has ended is waited for no longer than it takes to come back."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark
from zurau.replica.core.effects import Send
from zurau.replica.core.events import (
    Flushed,
    LeaderDisconnected,
    LeaderQuiesced,
    PartitionChanged,
    Received,
    TimePassed,
    Unquiesced,
)
from zurau.replica.core.messages import Fetch, Fetched, Vote, VoteAnswer
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.roles import Role

MARK = EpochMark(1, 0)


def asked_by(effects) -> int:
    return next(each.message.fetch_id for each in reversed(effects) if isinstance(each, Send))


@pytest.fixture
def follow(make, ids):
    """A voter of three that was answered by 2a, in epoch 1, at 0 ms."""

    def follow(name: str):
        voter = make(name)
        fetch_id = asked_by(voter.step(Received(Fetched(ids("2a")[0], 1, 7, 0)), 0))
        voter.step(Received(Fetched(ids("2a")[0], 1, fetch_id, 0, (MARK,))), 0)
        voter.step(Flushed(1), 0)
        return voter

    return follow


def granted(replica, ids, now_ms: int) -> bool:
    effects = replica.step(Received(Vote(ids("3a")[0], 1, replica.id, replica.log.position, is_pre=True)), now_ms)
    return next(each.message.is_granted for each in effects if type(getattr(each, "message", None)) is VoteAnswer)


def test_followers_of_a_leader_that_is_gone_stand_for_election_soon_and_one_after_the_other(follow):
    stood_ms = []
    for name in ("1a", "3a"):
        voter = follow(name)
        voter.step(LeaderDisconnected(), 100)
        while voter.role is Role.FOLLOWER:
            voter.step(TimePassed(), voter.deadline_ms)
        stood_ms.append(voter._state.now_ms)
    assert sorted(stood_ms) == [175, 325]


def test_a_leader_that_is_back_in_time_stays(follow, ids):
    voter = follow("1a")
    voter.step(LeaderDisconnected(), 100)
    voter.step(Received(Fetched(ids("2a")[0], 1, voter._state.last_fetch_id, 0)), 150)
    voter.step(TimePassed(), 900)
    assert (voter.role, voter.leader) == (Role.FOLLOWER, ids("2a")[0])


def test_who_hears_its_leader_would_not_vote_for_another(follow, ids):
    assert not granted(follow("1a"), ids, 100)


def test_who_has_lost_the_connection_to_its_leader_keeps_nobody_from_being_elected(follow, ids):
    voter = follow("1a")
    voter.step(LeaderDisconnected(), 100)
    assert granted(voter, ids, 100)


def test_a_leader_is_named_to_others_only_while_the_connection_to_it_lasts(follow, ids):
    voter = follow("1a")

    def named(now_ms: int):
        asked = Fetch(ids("3a")[0], 1, 9, voter.log.position, 0)
        return voter.step(Received(asked), now_ms)[-1].message.leader

    assert named(50) == ids("2a")[0]
    voter.step(LeaderDisconnected(), 100)
    assert named(110) is None
    voter.step(Received(Fetched(ids("2a")[0], 1, voter._state.last_fetch_id, 0)), 150)
    assert named(160) == ids("2a")[0]


def test_who_has_not_heard_its_leader_for_a_fetch_timeout_would_vote_though_it_waits_on_itself(make, ids):
    voter = make("1a")
    voter._state.randomness.below = lambda bound: bound - 1  # it waits for nearly twice as long
    fetch_id = asked_by(voter.step(Received(Fetched(ids("2a")[0], 1, 7, 0)), 0))
    voter.step(Received(Fetched(ids("2a")[0], 1, fetch_id, 0, (MARK,))), 0)
    voter.step(Flushed(1), 0)
    assert not granted(voter, ids, 999)
    assert granted(voter, ids, 1000)
    assert voter.role is Role.FOLLOWER


def test_a_leader_for_which_its_session_speaks_is_heard_however_long_it_says_nothing(follow, ids):
    voter = follow("1a")
    answer = Fetched(ids("2a")[0], 1, voter._state.last_fetch_id, 0)
    voter.step(Received(answer), 100)
    voter.step(LeaderQuiesced(answer), 100)
    assert not granted(voter, ids, 100_000)
    voter.step(Unquiesced(ids("2a")[0], 100_000), 100_100)
    voter.step(LeaderDisconnected(), 100_100)
    assert granted(voter, ids, 100_100)


def test_a_learner_has_no_election_to_stand_for(make, ids):
    learner = make("4a")
    learner.step(Received(Fetched(ids("2a")[0], 1, 7, 0)), 0)
    learner.step(LeaderDisconnected(), 100)
    learner.step(TimePassed(), 500)
    assert learner.role is Role.FOLLOWER


def test_whoever_does_not_follow_has_no_leader_to_lose(make, make_in_sync, ids):
    alone = make("1a", "1a")
    alone.step(TimePassed(), 0)
    alone.step(LeaderDisconnected(), 100)
    assert alone.role is Role.LEADER
    leader = make_in_sync()
    leader.step(PartitionChanged(PartitionState(leader.id, 1, ids("1a 2a"), 1), 4), 0)
    assert leader.step(LeaderDisconnected(), 100) == ()


def test_in_in_sync_mode_the_controller_chooses_and_a_follower_waits(make_in_sync, ids):
    follower = make_in_sync()
    follower.step(PartitionChanged(PartitionState(ids("2a")[0], 1, ids("1a 2a"), 1), 4), 0)
    follower.step(LeaderDisconnected(), 100)
    follower.step(TimePassed(), 5000)
    assert (follower.role, follower.leader) == (Role.FOLLOWER, ids("2a")[0])


def test_who_would_not_vote_is_asked_again_and_who_did_not_is_not(make, ids):
    replica = make("1a", "1a 2a 3a")
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 1000)
    replica.step(Received(VoteAnswer(ids("2a")[0], 0, False, True)), 1000)
    replica.step(TimePassed(), 1250)
    replica.step(Received(VoteAnswer(ids("2a")[0], 0, True, True)), 1260)
    assert replica.role is Role.CANDIDATE
    replica.step(Received(VoteAnswer(ids("2a")[0], 1, False, False)), 1270)
    effects = replica.step(TimePassed(), 1520)
    asked = [each.message.voter for each in effects if isinstance(each, Send) and isinstance(each.message, Vote)]
    assert asked == list(ids("3a"))
