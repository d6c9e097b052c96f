"""Replicas at rest: quiescence speaks for them, they have no deadlines, and they hear when that ends."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.replica.core.effects import AlterPartition, ReadAndSend, Send
from zurau.replica.core.events import (
    BrokerRegistered,
    FetchProgressed,
    Flushed,
    FollowerQuiesced,
    LeaderQuiesced,
    PartitionChanged,
    Received,
    RecordsWritten,
    TimePassed,
    Unquiesced,
)
from zurau.replica.core.messages import EndEpoch, Fetch, Fetched, FetchRefused, VoteAnswer
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS

MARK = EpochMark(1, 0)


def asked_by(effects) -> int:
    return next(each.message.fetch_id for each in reversed(effects) if isinstance(each, Send))


@pytest.fixture
def follower(make_in_sync, ids):
    """1a, which has everything that 2a has, and knows that its fetch stands since 100 ms."""
    follower = make_in_sync(waits_for_flush=False)
    fetch_id = asked_by(follower.step(PartitionChanged(PartitionState(ids("2a")[0], 1, ids("1a 2a"), 1), 4), 0)[:1])
    effects = follower.step(Received(Fetched(ids("2a")[0], 1, fetch_id, 0, (MARK,))), 0)
    answer = Fetched(ids("2a")[0], 1, asked_by(effects), 0)
    follower.step(Received(answer), 100)
    follower.step(LeaderQuiesced(answer), 100)
    return follower


@pytest.fixture
def voter(make, ids):
    """The same in quorum mode."""
    voter = make()
    fetch_id = asked_by(voter.step(Received(Fetched(ids("2a")[0], 1, 7, 0)), 0))
    effects = (*voter.step(Received(Fetched(ids("2a")[0], 1, fetch_id, 0, (MARK,))), 0), *voter.step(Flushed(1), 0))
    answer = Fetched(ids("2a")[0], 1, asked_by(effects), 0)
    voter.step(Received(answer), 100)
    voter.step(LeaderQuiesced(answer), 100)
    return voter


@pytest.fixture
def primary(make_in_sync, ids):
    """1a, which leads; 2a has everything, and its fetch stands."""
    primary = make_in_sync(waits_for_flush=False)
    primary.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a 2a"), 1), 4), 0)
    primary.step(FollowerQuiesced(Fetch(ids("2a")[0], 1, 5, Position(1, 0), 0, 9)), 0)
    return primary


@pytest.fixture
def leader(make, ids):
    """1a, voted for by 2a, which has everything; its fetch stands. Of 3a nobody has heard."""
    leader = make()
    leader.step(TimePassed(), 0)
    leader.step(TimePassed(), 1000)
    leader.step(Received(VoteAnswer(ids("2a")[0], 0, True, True)), 1000)
    leader.step(Received(VoteAnswer(ids("2a")[0], 1, True, False)), 1000)
    leader.step(Flushed(1), 1000)
    leader.step(FollowerQuiesced(Fetch(ids("2a")[0], 1, 5, Position(1, 0), 0)), 1000)
    return leader


@pytest.mark.parametrize("name", ["follower", "voter", "primary"])
def test_a_replica_at_rest_has_no_deadline_and_does_nothing(name, request):
    replica = request.getfixturevalue(name)
    assert replica.deadline_ms == NEVER_MS
    assert replica.step(TimePassed(), 1_000_000) == ()


@pytest.mark.parametrize("name", ["follower", "voter", "primary", "leader"])
def test_it_is_known_whose_quiescence_a_replica_takes_for_a_sign_of_life(name, request, ids):
    assert request.getfixturevalue(name).quiesced_with == ids("2a")


def test_a_follower_refuses_a_fetch_that_is_said_to_go_on(voter, ids):
    [refused] = voter.step(FollowerQuiesced(Fetch(ids("3a")[0], 1, 6, Position(1, 0), 0)), 200)
    assert isinstance(refused.message, FetchRefused)


def test_who_has_heard_nobody_rests_on_nobody(make, make_in_sync):
    assert make().quiesced_with == make_in_sync().quiesced_with == ()


def test_a_leader_takes_no_quiescence_for_an_answer(primary, ids):
    primary.step(LeaderQuiesced(Fetched(ids("2a")[0], 1, 0, 0)), 200)
    assert primary.quiesced_with == ids("2a")


def test_a_follower_asks_again_when_its_leader_is_silent_no_more(follower, ids):
    follower.step(Unquiesced(ids("2a")[0], 5000), 5400)
    assert follower.deadline_ms == 5650
    [asked] = follower.step(TimePassed(), 5650)
    assert isinstance(asked.message, Fetch)


def test_a_follower_that_is_registered_anew_says_so_to_its_leader(follower):
    [asked] = follower.step(BrokerRegistered(12), 5000)
    assert asked.message.broker_epoch == 12


def test_a_voter_is_patient_from_when_its_leader_was_last_heard(voter, ids):
    voter.step(Unquiesced(ids("2a")[0], 5000), 5400)
    voter.step(TimePassed(), 5999)
    assert voter.role is Role.FOLLOWER
    voter.step(TimePassed(), 6000)
    assert voter.role is Role.PROSPECTIVE


def test_the_end_of_somebody_elses_quiescence_changes_nothing(voter, ids):
    voter.step(Unquiesced(ids("3a")[0], 5000), 5400)
    assert voter.deadline_ms == NEVER_MS


@pytest.mark.parametrize(("sender", "epoch"), [("3a", 1), ("2a", 0)])
def test_the_quiescence_of_another_leader_or_epoch_stands_for_nothing(voter, ids, sender, epoch):
    voter.step(LeaderQuiesced(Fetched(ids(sender)[0], epoch, 0, 0)), 200)
    assert voter.deadline_ms < NEVER_MS


def test_a_candidate_takes_no_quiescence_for_an_answer(make, ids):
    candidate = make()
    candidate.step(TimePassed(), 0)
    candidate.step(TimePassed(), 1000)
    candidate.step(LeaderQuiesced(Fetched(ids("2a")[0], 0, 0, 0)), 1000)
    candidate.step(Unquiesced(ids("2a")[0], 1000), 1000)
    assert (candidate.role, candidate.deadline_ms) == (Role.PROSPECTIVE, 1031)


def test_a_voter_at_rest_whose_leader_resigns_is_at_rest_no_more(voter, ids):
    voter.step(Received(EndEpoch(ids("2a")[0], 1, ids("3a 1a"))), 200)
    assert voter.deadline_ms == 350


def test_a_follower_at_rest_that_is_refused_asks_again(voter, ids):
    fetch_id = voter._state.last_fetch_id
    voter.step(Received(FetchRefused(ids("2a")[0], 1, fetch_id, None)), 200)
    assert voter.deadline_ms < NEVER_MS


def test_a_voter_is_patient_while_bytes_of_an_answer_come(voter, ids):
    voter.step(Unquiesced(ids("2a")[0], 5000), 5000)
    for now_ms in (5900, 6800, 7700):
        voter.step(FetchProgressed(), now_ms)
    assert voter.role is Role.FOLLOWER
    voter.step(TimePassed(), 8700)
    assert voter.role is Role.PROSPECTIVE
    assert not any(isinstance(each, Send) for each in voter.step(FetchProgressed(), 8700))


def test_a_replica_that_waits_for_nothing_takes_no_bytes_for_a_sign_of_life(make, make_in_sync, primary):
    for replica in (make(), make_in_sync(), primary):
        deadline_ms = (replica.step(TimePassed(), 100), replica.deadline_ms)[1]
        replica.step(FetchProgressed(), 100)
        assert replica.deadline_ms == deadline_ms


@pytest.mark.parametrize("name", ["primary", "leader"])
def test_a_fetch_that_stands_is_answered_as_soon_as_there_is_news(name, request):
    replica = request.getfixturevalue(name)
    effects = replica.step(RecordsWritten(1), 9000)
    assert [each.message.fetch_id for each in effects if isinstance(each, ReadAndSend)] == [5]


def test_a_backup_that_is_being_told_news_lags_from_then_on(primary, ids):
    primary.step(RecordsWritten(1), 9000)
    assert primary.deadline_ms < NEVER_MS
    assert [each for each in primary.step(TimePassed(), 11_000) if isinstance(each, AlterPartition)] == []
    [asked] = [each for each in primary.step(TimePassed(), 11_250) if isinstance(each, AlterPartition)]
    assert asked.proposal.in_sync == ids("1a")


def test_a_backup_whose_quiescence_ended_lags_from_when_it_was_last_heard(primary, ids):
    primary.step(Unquiesced(ids("2a")[0], 9000), 9300)
    assert primary.deadline_ms == 9550
    assert [each for each in primary.step(TimePassed(), 11_000) if isinstance(each, AlterPartition)] == []
    [asked] = [each for each in primary.step(TimePassed(), 11_250) if isinstance(each, AlterPartition)]
    assert asked.proposal.in_sync == ids("1a")


def test_a_leader_resigns_when_no_majority_was_heard_since_its_quiescence_ended(leader, ids):
    leader.step(TimePassed(), 50_000)
    assert leader.role is Role.LEADER
    leader.step(Unquiesced(ids("2a")[0], 50_000), 50_900)
    leader.step(TimePassed(), 51_499)
    assert leader.role is Role.LEADER
    leader.step(TimePassed(), 51_500)
    assert leader.role is Role.FOLLOWER


def test_a_fetch_that_stands_in_an_older_epoch_is_refused(leader, primary, ids):
    for replica in (leader, primary):
        [refused] = replica.step(FollowerQuiesced(Fetch(ids("2a")[0], 0, 6, Position(0, 0), 0)), 1000)
        assert isinstance(refused.message, FetchRefused)


def test_the_end_of_the_quiescence_of_one_that_nobody_knows_changes_nothing(primary, ids):
    primary.step(Unquiesced(ids("3a")[0], 9000), 9300)
    primary.step(Unquiesced(ids("2a")[0], 9000), 9300)
    primary.step(Unquiesced(ids("2a")[0], 0), 9300)
    assert [each for each in primary.step(TimePassed(), 9600) if isinstance(each, AlterPartition)] == []
