"""One replica in quorum mode, told what the stories leave out."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.ids import BrokerId
from zurau.replica.core.effects import ReadAndSend, Refuse, RoleChanged, SaveVote, Send, StartFlush
from zurau.replica.core.events import (
    BrokersKnown,
    Flushed,
    LogStartMoved,
    Received,
    RecordsWritten,
    ShutdownAsked,
    SnapshotStored,
    TimePassed,
    VoterChangeAsked,
)
from zurau.replica.core.items import Batch
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    FetchRefused,
    SnapshotPoint,
    Vote,
    VoteAnswer,
)
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS

EMPTY = Position(-1, 0)


def sent(effects, kind):
    return [effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def elected(make, ids, **settings):
    """1a, leading in epoch 1, its mark flushed."""
    replica = make(**settings)
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 1000)
    other = ids("2a")[0]
    replica.step(Received(VoteAnswer(other, 0, True, True)), 1000)
    replica.step(Received(VoteAnswer(other, 1, True, False)), 1000)
    replica.step(Flushed(1), 1000)
    assert replica.role is Role.LEADER
    return replica


def test_a_replica_that_broke_off_in_the_middle_of_a_step_takes_no_other(make):
    replica = make(log=LogView(0, 5, [EpochMark(1, 0)]))
    with pytest.raises(AssertionError, match="committed and flushed"):
        replica.step(LogStartMoved(5), 0)
    with pytest.raises(AssertionError, match="stop it, and start it from its disk"):
        replica.step(TimePassed(), 0)


def test_before_its_first_step_a_replica_is_a_follower_that_wants_to_be_woken(make):
    replica = make()
    assert (replica.role, replica.deadline_ms, replica.leader) == (Role.FOLLOWER, 0, None)
    replica.step(TimePassed(), 0)
    assert replica.deadline_ms == 250


def test_a_lone_voter_leads_at_once_and_commits_what_it_has_flushed(make, ids):
    replica = make(voters="1a")
    effects = replica.step(TimePassed(), 0)
    assert SaveVote(1, ids("1a")[0]) in effects
    assert effects[-1] == RoleChanged(Role.LEADER, 1, replica.id)
    assert (replica.voters, replica.deadline_ms) == (ids("1a"), NEVER_MS)
    assert replica.leader == replica.id == ids("1a")[0]
    replica.step(RecordsWritten(1), 0)
    assert (replica.high_watermark, replica.is_established) == (0, False)
    replica.step(Flushed(1), 0)
    replica.step(Flushed(2), 0)
    assert (replica.high_watermark, replica.is_established, replica.epoch) == (1, True, 1)


def test_a_high_watermark_that_is_not_flushed_here_is_not_to_be_written_down(make, ids):
    replica = make()
    leader = ids("2a")[0]
    [fetch] = sent(replica.step(Received(BeginEpoch(leader, 3)), 0), Fetch)[-1:]
    replica.step(Received(Fetched(leader, 3, fetch.fetch_id, 1, (EpochMark(3, 0),), (Batch(3, 0, 1, b"x"),))), 0)
    assert (replica.high_watermark, replica.safe_high_watermark) == (1, 0)
    replica.step(Flushed(1), 0)
    assert replica.safe_high_watermark == 1


def test_a_vote_is_saved_before_it_is_said(make, ids):
    replica = make()
    me, other = ids("1a 2a")
    effects = replica.step(Received(Vote(other, 5, me, EMPTY, is_pre=False)), 0)
    saved = effects.index(SaveVote(5, other))
    said = effects.index(Send(other.broker, VoteAnswer(me, 5, True, False)))
    assert saved < said


def test_a_new_epoch_and_the_vote_in_it_are_one_write(make, ids):
    me, other = ids("1a 2a")
    effects = make().step(Received(Vote(other, 5, me, EMPTY, is_pre=False)), 0)
    assert [effect for effect in effects if isinstance(effect, SaveVote)] == [SaveVote(5, other)]


def test_a_vote_that_is_asked_for_again_is_not_saved_again(make, ids):
    replica = make()
    me, other = ids("1a 2a")
    vote = Received(Vote(other, 5, me, EMPTY, is_pre=False))
    replica.step(vote, 0)
    effects = replica.step(vote, 0)
    assert [answer.is_granted for answer in sent(effects, VoteAnswer)] == [True]
    assert not any(isinstance(effect, SaveVote) for effect in effects)


def test_a_vote_is_given_to_one_only(make, ids):
    replica = make()
    me, second, third = ids("1a 2a 3a")
    replica.step(Received(Vote(second, 5, me, EMPTY, is_pre=False)), 0)
    effects = replica.step(Received(Vote(third, 5, me, EMPTY, is_pre=False)), 0)
    assert [answer.is_granted for answer in sent(effects, VoteAnswer)] == [False]


def test_who_refused_one_in_an_epoch_may_vote_for_another(make, ids):
    replica = make(log=LogView(0, 4, [EpochMark(2, 0)]))
    me, behind, ahead = ids("1a 2a 3a")
    replica.step(Received(Vote(behind, 5, me, EMPTY, is_pre=False)), 0)
    effects = replica.step(Received(Vote(ahead, 5, me, Position(3, 4), is_pre=False)), 0)
    assert SaveVote(5, ahead) in effects
    assert [answer.is_granted for answer in sent(effects, VoteAnswer)] == [True]
    assert replica.stored == Position(2, 4)


def test_a_vote_for_whoever_had_this_broker_before_is_not_answered(make, ids):
    replica = make("1b", "1a 2a 3a")
    effects = replica.step(Received(Vote(ids("2a")[0], 5, ids("1a")[0], EMPTY, is_pre=False)), 0)
    assert sent(effects, VoteAnswer) == []


def test_a_shorter_log_gets_no_vote(make, ids):
    replica = make(log=LogView(0, 4, [EpochMark(2, 0)]))
    effects = replica.step(Received(Vote(ids("2a")[0], 5, ids("1a")[0], Position(1, 9), is_pre=False)), 0)
    assert [answer.is_granted for answer in sent(effects, VoteAnswer)] == [False]


def test_a_pre_vote_changes_nothing_even_from_a_later_epoch(make, ids):
    replica = make()
    effects = replica.step(Received(Vote(ids("2a")[0], 9, ids("1a")[0], EMPTY, is_pre=True)), 0)
    assert [answer.is_granted for answer in sent(effects, VoteAnswer)] == [True]
    assert replica.epoch == 0


def test_votes_are_asked_for_again_from_those_who_did_not_answer(make, ids):
    replica = make(voters="1a 2a 3a 4a 5a")
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 1000)
    assert replica.role is Role.PROSPECTIVE
    replica.step(Received(VoteAnswer(ids("2a")[0], 0, True, True)), 1000)
    for due_ms in (1031, 1093, 1217, 1465):  # soon at first, and then every 250 ms
        assert replica.deadline_ms == due_ms
        effects = replica.step(TimePassed(), due_ms)
        assert [vote.voter for vote in sent(effects, Vote)] == list(ids("3a 4a 5a"))


def test_who_should_lead_a_new_partition_stands_at_once_and_who_may_not_vote_does_not(make):
    for voters, role in (("1a 2a 3a", Role.PROSPECTIVE), ("2a 3a", Role.FOLLOWER)):
        replica = make(voters=voters, stands_first=True)
        replica.step(TimePassed(), 0)
        assert replica.role is role


def test_a_round_that_nobody_wins_is_followed_by_another(make):
    replica = make()
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 1000)
    effects = replica.step(TimePassed(), 1500)
    assert len(sent(effects, Vote)) == 2
    assert replica.role is Role.PROSPECTIVE


def test_a_candidate_hears_of_flushes_and_fetches_without_harm(make, ids):
    log = LogView()
    log.append(EpochMark(1, 0))
    replica = make(log=log)
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 2000)
    replica.step(Flushed(1), 2000)
    replica.step(Received(EndEpoch(ids("2a")[0], 1, ())), 2000)
    assert replica.role is Role.PROSPECTIVE
    assert log.is_flushed


def test_a_follower_does_not_ask_before_it_has_flushed(make, ids):
    log = LogView()
    log.append(EpochMark(1, 0))
    replica = make(log=log)
    effects = replica.step(TimePassed(), 0)
    assert StartFlush(1) in effects
    assert sent(effects, Fetch) == []
    assert len(sent(replica.step(Flushed(1), 0), Fetch)) == 1


def test_a_flush_that_ends_while_a_fetch_is_open_asks_no_second_one(make):
    replica = make()
    replica.step(TimePassed(), 0)
    assert sent(replica.step(Flushed(9), 0), Fetch) == []


def test_an_answer_to_an_older_fetch_is_not_taken(make, ids):
    replica = make()
    leader = ids("2a")[0]
    replica.step(Received(BeginEpoch(leader, 3)), 0)
    stale = Fetched(leader, 3, 0, 1, (EpochMark(3, 0),), (Batch(3, 0, 1, b"x"),))
    replica.step(Received(stale), 0)
    assert replica.log.position == EMPTY


def test_a_follower_that_is_told_who_leads_while_it_flushes_asks_when_it_can(make, ids):
    log = LogView()
    log.append(EpochMark(1, 0))
    replica = make(log=log)
    replica.step(TimePassed(), 0)
    replica.step(Received(BeginEpoch(ids("2a")[0], 2)), 0)
    effects = replica.step(Received(BeginEpoch(ids("2a")[0], 2)), 0)
    assert sent(effects, Fetch) == []


def test_a_leader_that_says_it_leads_no_more_is_forgotten(make, ids):
    replica = make()
    leader = ids("2a")[0]
    [fetch] = sent(replica.step(Received(BeginEpoch(leader, 3)), 0), Fetch)[-1:]
    replica.step(Received(FetchRefused(leader, 3, fetch.fetch_id, None)), 0)
    assert replica.leader is None


def test_successors_stand_for_election_one_after_the_other(make, ids):
    replica = make()
    leader = ids("2a")[0]
    replica.step(Received(BeginEpoch(leader, 3)), 0)
    replica.step(Received(EndEpoch(leader, 3, ids("3a 1a"))), 0)
    assert (replica.leader, replica.role) == (None, Role.FOLLOWER)
    replica.step(TimePassed(), 150)
    assert replica.role is Role.PROSPECTIVE


def test_a_learner_forgets_a_silent_leader_and_never_stands_for_election(make, ids):
    replica = make("4a")
    leader = ids("2a")[0]
    replica.step(Received(BeginEpoch(leader, 3)), 0)
    replica.step(Received(EndEpoch(leader, 3, ids("4a"))), 0)
    replica.step(TimePassed(), 5000)
    assert (replica.role, replica.leader) == (Role.FOLLOWER, None)


def test_a_learner_that_knows_nobody_waits(make):
    replica = make("4a", voters="")
    assert sent(replica.step(TimePassed(), 0), Fetch) == []


def test_a_message_of_an_older_epoch_is_not_taken(make, ids):
    replica = make()
    replica.step(Received(BeginEpoch(ids("2a")[0], 3)), 0)
    replica.step(Received(BeginEpoch(ids("3a")[0], 2)), 0)
    assert replica.leader == ids("2a")[0]


def test_a_fetch_of_an_older_epoch_is_answered_with_the_epoch_that_is(make, ids):
    replica = elected(make, ids)
    effects = replica.step(Received(Fetch(ids("2a")[0], 0, 7, EMPTY, 0)), 1000)
    assert sent(effects, FetchRefused) == [FetchRefused(replica.id, 1, 7, replica.id)]


def test_a_leader_ignores_what_is_not_for_leaders(make, ids):
    replica = elected(make, ids)
    assert replica.step(Received(VoteAnswer(ids("3a")[0], 1, True, False)), 1000) == ()
    assert replica.deadline_ms > 1000


def test_a_snapshot_that_comes_when_it_is_not_needed_any_more_is_ignored(make, ids):
    point = SnapshotPoint(EpochMark(1, 1), ids("1a 2a 3a"))
    follower = make(log=LogView(0, 4, [EpochMark(2, 0)]), high_watermark=3)
    follower.step(SnapshotStored(point), 0)
    assert follower.log.position == Position(2, 4)
    assert elected(make, ids).step(SnapshotStored(point), 1000) == ()


def test_a_snapshot_that_comes_late_does_not_replace_what_another_leader_sent_since(make, ids):
    follower = make(log=LogView(0, 9, [EpochMark(1, 0), EpochMark(2, 6)]), high_watermark=3)
    follower.step(SnapshotStored(SnapshotPoint(EpochMark(1, 5), ids("1a 2a 3a"))), 0)
    assert (follower.log.start_offset, follower.log.position) == (0, Position(2, 9))


@pytest.mark.parametrize(("end", "epoch"), [(4, 3), (9, 1)], ids=["a shorter log", "a log of older epochs"])
def test_a_log_that_has_nothing_committed_behind_a_snapshot_begins_anew(make, ids, end, epoch):
    follower = make(log=LogView(0, end, [EpochMark(epoch, 0)]), high_watermark=3)
    follower.step(SnapshotStored(SnapshotPoint(EpochMark(2, 5), ids("1a 2a 3a"))), 0)
    assert (follower.log.start_offset, follower.log.position) == (5, Position(2, 5))
    assert follower.high_watermark == 5


def test_retention_moves_the_start_and_keeps_the_epoch(make):
    replica = make(log=LogView(0, 4, [EpochMark(2, 0)]), high_watermark=4)
    replica.step(LogStartMoved(4), 0)
    assert replica.log.position == Position(2, 4)
    assert replica.log.start_offset == 4


def test_retention_above_the_high_watermark_is_a_defect(make):
    replica = make(log=LogView(0, 4, [EpochMark(2, 0)]), high_watermark=3)
    with pytest.raises(AssertionError):
        replica.step(LogStartMoved(4), 0)


@pytest.fixture
def unflushed(make, ids):
    """1a, which has a committed record of 2a's and has not flushed it."""
    replica, leader = make(), ids("2a")[0]
    [fetch] = sent(replica.step(Received(BeginEpoch(leader, 3)), 0), Fetch)[-1:]
    replica.step(Received(Fetched(leader, 3, fetch.fetch_id, 1, (EpochMark(3, 0),), (Batch(3, 0, 1, b"x"),))), 0)
    return replica


def test_retention_of_what_is_committed_and_not_flushed_is_a_defect(unflushed):
    with pytest.raises(AssertionError, match="flushed"):
        unflushed.step(LogStartMoved(1), 0)


def test_retention_of_what_is_committed_and_flushed_moves_the_start(unflushed):
    unflushed.step(Flushed(1), 0)
    unflushed.step(LogStartMoved(1), 0)
    assert unflushed.log.start_offset == 1


def test_a_shutdown_means_nothing_to_one_that_does_not_lead(make):
    replica = make()
    replica.step(TimePassed(), 0)
    assert replica.step(ShutdownAsked(), 0) == ()
    assert replica.refusal(acks_all=True) == "this replica does not lead"


def test_records_of_its_own_that_one_who_does_not_lead_has_written_stop_it(make):
    replica = make()
    replica.step(TimePassed(), 0)
    with pytest.raises(AssertionError, match="wrote records of its own, and does not lead"):
        replica.step(RecordsWritten(1), 0)


def test_a_learner_that_was_caught_up_and_is_dead_does_not_become_a_voter(make, ids):
    leader, learner = make(voters="1a"), ids("2a")[0]
    leader.step(TimePassed(), 0)
    leader.step(Flushed(1), 0)
    leader.step(Received(Fetch(learner, 1, 1, Position(1, 0), 0)), 0)
    assert leader.is_caught_up(learner)
    assert leader.step(VoterChangeAsked(add=learner), 9000)[-1] == Refuse("2a is not caught up")
    leader.step(Received(Fetch(learner, 1, 2, Position(1, 0), 0)), 9001)
    assert leader.is_caught_up(learner)
    assert leader.is_caught_up(leader.id)


def test_a_voter_stays_whom_the_others_need_because_one_of_them_is_dead(make, ids):
    leader, (second, third) = elected(make, ids), ids("2a 3a")
    leader.step(Received(Fetch(second, 1, 1, Position(1, 0), 0)), 1000)
    refused = leader.step(VoterChangeAsked(remove=second), 1001)
    assert refused == (Refuse("of those that are left too few are in step to commit it"),)
    leader.step(VoterChangeAsked(remove=third), 1002)
    assert leader.voters == ids("1a 2a")


def test_voters_change_also_while_the_leaders_disk_is_busy(make, ids):
    leader, learner = make(voters="1a"), ids("2a")[0]
    leader.step(TimePassed(), 0)
    leader.step(Flushed(1), 0)
    leader.step(RecordsWritten(1), 0)
    leader.step(Received(Fetch(learner, 1, 1, Position(1, 1), 0)), 0)
    leader.step(VoterChangeAsked(add=learner), 1)
    assert leader.voters == ids("1a 2a")


@pytest.mark.parametrize(
    ("change", "reason"),
    [("2a", "that would change nothing, or leave nobody"), ("4a", "4a is not caught up")],
)
def test_a_leader_says_why_voters_cannot_change(make, ids, change, reason):
    replica = elected(make, ids)
    add = ids(change)[0]
    early = replica.step(VoterChangeAsked(add=add), 1000)
    assert early == (Refuse("nothing of this epoch is committed yet"),)
    replica.step(Received(Fetch(ids("2a")[0], 1, 1, Position(1, 0), 0)), 1000)
    assert replica.step(VoterChangeAsked(add=add), 1000) == (Refuse(reason),)


def test_cutting_below_the_high_watermark_is_a_defect(make, ids):
    replica = make(log=LogView(0, 4, [EpochMark(2, 0)]), high_watermark=3)
    leader = ids("2a")[0]
    [fetch] = sent(replica.step(Received(BeginEpoch(leader, 3)), 0), Fetch)[-1:]
    with pytest.raises(AssertionError, match="below the high watermark"):
        replica.step(Received(Fetched(leader, 3, fetch.fetch_id, 0, diverging=Position(2, 1))), 0)


def test_a_learner_that_has_long_been_silent_is_forgotten_and_a_voter_is_not(make, ids):
    replica = elected(make, ids)
    voter, other, learner = ids("2a 3a 4a")
    replica.step(Received(Fetch(learner, 1, 1, EMPTY, 0)), 1000)
    for now_ms in range(1000, 12_000, 500):
        for follower in (voter, other):
            replica.step(Received(Fetch(follower, 1, 1, replica.log.position, 0)), now_ms)
    assert set(replica._role._followers) == {voter, other}


def test_a_fetch_that_comes_once_more_does_not_wait_anew(make, ids):
    replica = elected(make, ids)
    fetch = Received(Fetch(ids("2a")[0], 1, 7, replica.log.position, 0))
    replica.step(fetch, 1000)
    replica.step(fetch, 1150)
    [answer] = [each for each in replica.step(TimePassed(), 1200) if isinstance(each, ReadAndSend)]
    assert answer.message.fetch_id == 7


def test_a_start_that_is_older_than_the_one_it_has_decided_on_is_no_news(make):
    replica = make(log=LogView(2, 4, [EpochMark(2, 2)]), high_watermark=4)
    replica.step(LogStartMoved(1), 0)
    assert replica.log.start_offset == 2


def test_records_that_are_written_count_though_the_leadership_is_over_by_now(make, ids):
    leader = elected(make, ids)
    leader.step(RecordsWritten(2), 60_000)
    assert leader.role is not Role.LEADER
    assert leader.log.end_offset == 2


def test_who_knows_nobody_asks_the_brokers_that_it_is_told_of(make, ids):
    follower = make("4a", voters="")
    assert not sent(follower.step(TimePassed(), 0), Fetch)
    assert follower.step(BrokersKnown((BrokerId(1),)), 0) == ()
    assert [effect.to for effect in follower.step(TimePassed(), 1000) if isinstance(effect, Send)] == [1]


def test_voters_may_change_while_records_wait_for_the_disk(make, ids):
    leader = elected(make, ids)
    leader.step(Received(Fetch(ids("2a")[0], 1, 1, Position(1, 0), 0)), 1000)
    leader.step(RecordsWritten(1), 1001)
    leader.step(VoterChangeAsked(remove=ids("3a")[0]), 1002)
    assert leader.voters == ids("1a 2a")
