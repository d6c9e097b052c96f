"""One replica in in-sync mode, told what the stories leave out."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.replica.core.effects import (
    AlterPartition,
    LeadershipEstablished,
    Refuse,
    RestartLog,
    RoleChanged,
    Send,
)
from zurau.replica.core.events import (
    BrokerRegistered,
    Flushed,
    LogStartMoved,
    PartitionChanged,
    Received,
    RecordsWritten,
    ShutdownAsked,
    SnapshotStored,
    TimePassed,
    TransferAsked,
)
from zurau.replica.core.items import Batch
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import BeginEpoch, Fetch, Fetched, FetchRefused, SnapshotPoint
from zurau.replica.core.partition_state import PartitionState, choose_leader
from zurau.replica.core.roles import Role


def leading(make_in_sync, ids, in_sync="1a 2a", **settings):
    """1a, leading in epoch 1; it counts for what it has written."""
    replica = make_in_sync(waits_for_flush=False, **settings)
    replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids(in_sync), 1), 4), 0)
    return replica


def fetch(ids, name, position, *, epoch=1, broker_epoch=9):
    return Received(Fetch(ids(name)[0], epoch, 1, position, 0, broker_epoch))


def test_until_the_controller_speaks_a_replica_waits(make_in_sync):
    replica = make_in_sync()
    assert replica.step(TimePassed(), 0) == ()
    assert (replica.role, replica.leader, replica.epoch, replica.maximal_in_sync) == (Role.FOLLOWER, None, -1, ())
    assert replica.deadline_ms == 250


def test_the_smallest_offset_in_sync_is_committed(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a 2a 3a")
    replica.step(RecordsWritten(2), 0)
    replica.step(fetch(ids, "2a", Position(1, 2)), 0)
    assert not replica.is_established
    replica.step(fetch(ids, "3a", Position(1, 1)), 0)
    assert (replica.high_watermark, replica.is_established, replica.id) == (1, True, ids("1a")[0])


def test_a_leader_that_waits_for_flushes_counts_itself_when_it_has_flushed(make_in_sync, ids):
    replica = make_in_sync()
    replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a"), 1), 4), 0)
    replica.step(RecordsWritten(1), 0)
    replica.step(Flushed(1), 0)
    assert replica.high_watermark == 0
    replica.step(Flushed(2), 0)
    assert replica.high_watermark == replica.safe_high_watermark == 1


def test_who_is_alone_in_sync_leads_first_and_is_established_then(make_in_sync, ids):
    replica = make_in_sync(waits_for_flush=False)
    effects = replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a"), 1), 4), 0)
    kinds = [type(effect) for effect in effects if isinstance(effect, RoleChanged | LeadershipEstablished)]
    assert kinds == [RoleChanged, LeadershipEstablished]


def test_a_leader_that_is_registered_anew_leads_on(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    assert replica.step(BrokerRegistered(5), 0) == ()
    assert replica.role is Role.LEADER


def test_nothing_is_accepted_or_committed_by_fewer_than_the_topic_asks_for(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a", in_sync_min=2)
    assert replica.refusal(acks_all=True) == "too few replicas are in sync"
    assert not replica.is_established


def test_who_does_not_wait_for_the_commit_may_write_while_too_few_are_in_sync(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a", in_sync_min=2)
    assert replica.refusal(acks_all=False) is None
    replica.step(RecordsWritten(1), 0)
    assert replica.high_watermark == 0
    replica.step(fetch(ids, "2a", Position(1, 1)), 0)
    replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a 2a"), 2), 4), 0)
    assert replica.high_watermark == 1


def test_what_was_decided_before_this_start_was_registered_is_not_heard(make_in_sync, ids):
    replica, leads = make_in_sync(), PartitionState(ids("1a")[0], 7, ids("1a"), 1)
    assert replica.step(PartitionChanged(leads, 3), 0) == ()
    assert (replica.role, replica.epoch) == (Role.FOLLOWER, -1)


def test_a_broker_that_is_not_registered_is_told_of_no_leader(make_in_sync, ids):
    replica = make_in_sync(is_registered=False)
    assert replica.step(PartitionChanged(PartitionState(ids("1a")[0], 7, ids("1a"), 1), -1), 0) == ()


def test_a_leader_says_once_that_it_is_established_also_without_a_record(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    assert LeadershipEstablished(1) in replica.step(fetch(ids, "2a", Position(1, 0)), 0)
    assert LeadershipEstablished(1) not in replica.step(fetch(ids, "2a", Position(1, 0)), 0)


def test_a_proposal_is_repeated_until_the_controller_answers(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a")
    replica.step(fetch(ids, "2a", Position(1, 0)), 0)
    [asked] = [each for each in replica.step(TimePassed(), 250) if isinstance(each, AlterPartition)]
    assert (asked.proposal.in_sync, asked.proposal.broker_epochs) == (ids("1a 2a"), (4, 9))
    assert replica.maximal_in_sync == ids("1a 2a")
    assert asked in replica.step(TimePassed(), 500)
    replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a 2a"), 2), 4), 500)
    assert replica.assignment.in_sync == ids("1a 2a")
    assert asked not in replica.step(TimePassed(), 750)


def test_a_proposal_stands_until_it_is_answered_though_nobody_would_make_it_now(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a")
    replica.step(fetch(ids, "2a", Position(1, 0)), 0)
    [asked] = [each for each in replica.step(TimePassed(), 250) if isinstance(each, AlterPartition)]
    assert asked in replica.step(TimePassed(), 5000)  # 2a lags by now, and the controller may have taken it in
    assert replica.maximal_in_sync == ids("1a 2a")


def test_an_answer_of_another_epoch_is_not_taken(make_in_sync, ids):
    """Not even one to the fetch that is under way: in a later epoch the same leader may have other records there."""
    replica, leader = make_in_sync(), ids("2a")[0]
    sent = replica.step(PartitionChanged(PartitionState(leader, 2, ids("1a 2a"), 1), 4), 0)
    [asked] = [each.message for each in sent if isinstance(each, Send) and isinstance(each.message, Fetch)]
    late = Fetched(leader, 1, asked.fetch_id, 1, marks=(EpochMark(1, 0),), batches=(Batch(1, 0, 1, b"x"),))
    assert replica.step(Received(late), 0) == ()
    assert (replica.log.end_offset, replica.high_watermark) == (0, 0)


def test_a_follower_whose_broker_is_not_registered_is_not_asked_for(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a")
    replica.step(fetch(ids, "2a", Position(1, 0), broker_epoch=-1), 0)
    assert not any(isinstance(each, AlterPartition) for each in replica.step(TimePassed(), 250))


def test_a_fetch_of_another_epoch_is_refused(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    [effect] = replica.step(fetch(ids, "2a", Position(1, 0), epoch=2), 0)
    assert isinstance(effect, Send)
    assert isinstance(effect.message, FetchRefused)


def test_a_follower_whose_log_differs_is_not_counted(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    replica.step(fetch(ids, "2a", Position(0, 7)), 0)
    assert not replica.is_established


def test_one_that_does_not_lead_refuses_fetches_and_records(make_in_sync, ids):
    replica = make_in_sync()
    [effect] = replica.step(fetch(ids, "2a", Position(1, 0)), 0)
    assert isinstance(effect.message, FetchRefused)
    assert replica.refusal(acks_all=True) == "this replica does not lead"
    assert replica.step(TransferAsked(ids("2a")[0]), 0) == (Refuse("this replica does not lead"),)
    assert replica.step(ShutdownAsked(), 0) == ()


def test_what_the_controller_said_earlier_is_not_heard_later(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    assert replica.step(PartitionChanged(PartitionState(ids("2a")[0], 0, ids("2a"), 0), 4), 0) == ()
    assert replica.leader == ids("1a")[0]


def test_a_change_of_the_set_means_nothing_to_a_follower(make_in_sync, ids):
    replica = make_in_sync()
    leader = ids("2a")[0]
    replica.step(PartitionChanged(PartitionState(leader, 1, ids("1a 2a"), 1), 4), 0)
    assert replica.step(PartitionChanged(PartitionState(leader, 1, ids("2a"), 2), 4), 0) == ()
    assert replica.step(Received(BeginEpoch(leader, 9)), 0) == ()


def test_a_leader_ignores_messages_of_elections(make_in_sync, ids):
    assert leading(make_in_sync, ids).step(Received(BeginEpoch(ids("2a")[0], 1)), 0) == ()


def test_a_follower_begins_anew_behind_a_snapshot_and_a_leader_does_not(make_in_sync, ids):
    point = SnapshotPoint(EpochMark(1, 5), ())
    replica = make_in_sync()
    assert RestartLog(point) in replica.step(SnapshotStored(point), 0)
    assert replica.log.position == Position(1, 5)
    assert leading(make_in_sync, ids).step(SnapshotStored(point), 0) == ()


def test_retention_moves_the_start_in_sync_mode_too(make_in_sync):
    replica = make_in_sync(log=LogView(0, 4, [EpochMark(2, 0)]), high_watermark=4)
    replica.step(LogStartMoved(3), 0)
    assert replica.log.start_offset == 3


def test_what_was_flushed_before_a_cut_does_not_let_retention_go_further(make_in_sync, ids):
    follower = make_in_sync(log=LogView(0, 4, [EpochMark(1, 0)]), waits_for_flush=False)
    leader = ids("2a")[0]
    [asked, _] = follower.step(PartitionChanged(PartitionState(leader, 3, ids("2a"), 1), 4), 0)
    cut = Fetched(leader, 3, asked.message.fetch_id, 0, diverging=Position(-1, 0))
    [*_, asked] = follower.step(Received(cut), 0)
    items = ((EpochMark(3, 0),), (Batch(3, 0, 1, b"x"),))
    follower.step(Received(Fetched(leader, 3, asked.message.fetch_id, 1, *items)), 0)
    assert follower.high_watermark == 1
    with pytest.raises(AssertionError, match="flushed"):
        follower.step(LogStartMoved(1), 0)


def test_a_leader_wakes_for_a_fetch_that_it_keeps(make_in_sync, ids):
    replica = leading(make_in_sync, ids)
    replica.step(fetch(ids, "2a", Position(1, 0)), 0)
    assert replica.deadline_ms == 200
    [effect] = replica.step(TimePassed(), 200)
    assert effect.message.batches == ()


def test_whoever_leads_the_fewest_partitions_is_chosen_and_the_first_by_name_among_equals(ids):
    one, two, three = ids("1a 2a 3a")
    assert choose_leader([one, two, three], {one.broker: 2, two.broker: 1, three.broker: 1}) == two
    assert choose_leader([one, three], {one.broker: 1}) == three
    assert choose_leader([], {}) is None


def test_who_led_in_an_epoch_and_has_forgotten_it_does_not_lead_in_it_again(make_in_sync, ids):
    replica = make_in_sync(log=LogView(0, 4, [EpochMark(5, 3)]))
    one = ids("1a")[0]
    replica.step(PartitionChanged(PartitionState(one, 5, (one,), 1), 4), 0)
    assert (replica.role, replica.leader, replica.led_before_restart) == (Role.FOLLOWER, None, True)
    replica.step(PartitionChanged(PartitionState(one, 6, (one,), 2), 4), 0)
    assert (replica.role, replica.led_before_restart) == (Role.LEADER, False)


def test_a_leader_without_followers_commits_what_its_shell_wrote(make_in_sync, ids):
    replica = leading(make_in_sync, ids, "1a")
    replica.step(RecordsWritten(2), 0)
    assert replica.high_watermark == 2


def following(make_in_sync, ids):
    """1a, which has asked 2a, the leader in epoch 1, and has no answer."""
    replica = make_in_sync()
    replica.step(PartitionChanged(PartitionState(ids("2a")[0], 1, ids("1a 2a 3a"), 1), 4), 0)
    return replica


def fetches(effects):
    return [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Fetch)]


def test_a_new_leader_tells_those_in_sync_that_it_leads(make_in_sync, ids):
    replica = make_in_sync()
    effects = replica.step(PartitionChanged(PartitionState(ids("1a")[0], 1, ids("1a 2a 3a"), 1), 4), 0)
    told = {effect.to for effect in effects if isinstance(effect, Send) and isinstance(effect.message, BeginEpoch)}
    assert told == {2, 3}


def test_a_follower_that_asked_too_early_asks_again_when_its_leader_says_that_it_leads(make_in_sync, ids):
    replica = following(make_in_sync, ids)
    asked = replica.step(Received(BeginEpoch(ids("2a")[0], 1)), 1)
    assert [effect.to for effect in fetches(asked)] == [2]


@pytest.mark.parametrize(("sender", "epoch"), [("3a", 1), ("2a", 0), ("2a", 2)])
def test_who_does_not_lead_in_this_epoch_is_not_asked_though_it_says_so(make_in_sync, ids, sender, epoch):
    replica = following(make_in_sync, ids)
    assert fetches(replica.step(Received(BeginEpoch(ids(sender)[0], epoch)), 1)) == []


def test_a_follower_that_was_answered_does_not_ask_twice(make_in_sync, ids):
    replica = following(make_in_sync, ids)
    (asked,) = fetches(replica.step(Received(BeginEpoch(ids("2a")[0], 1)), 1))
    replica.step(Received(Fetched(ids("2a")[0], 1, asked.message.fetch_id, 0)), 2)
    assert fetches(replica.step(Received(BeginEpoch(ids("2a")[0], 1)), 3)) == []
