"""Snapshots that take longer than anybody's patience, and a leader's own disk that had nothing to do."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.replica.core.effects import FetchSnapshot, RestartLog, Send
from zurau.replica.core.events import (
    Flushed,
    LogStartMoved,
    Received,
    RecordsWritten,
    SnapshotProgressed,
    SnapshotStored,
    TimePassed,
)
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import BeginEpoch, Fetch, Fetched, SnapshotPoint, VoteAnswer
from zurau.replica.core.roles import Role


@pytest.fixture
def point(ids):
    return SnapshotPoint(EpochMark(3, 9), ids("1a 2a 3a"))


@pytest.fixture
def loading(make, ids, point):
    """1a, which 2a has offered a snapshot at 0 ms; and a way to offer it again to whatever 1a asks by then."""
    replica, leader, asked = make(), ids("2a")[0], []

    def hear(event, now_ms: int):
        effects = replica.step(event, now_ms)
        asked.extend(each.message for each in effects if isinstance(each, Send) and isinstance(each.message, Fetch))
        return [each for each in effects if isinstance(each, FetchSnapshot)]

    def offer(now_ms: int):
        hear(TimePassed(), now_ms)
        return hear(Received(Fetched(leader, 3, asked[-1].fetch_id, 9, snapshot=point)), now_ms)

    hear(Received(BeginEpoch(leader, 3)), 0)
    assert offer(0) == [FetchSnapshot(leader, point)]
    return replica, offer, asked


def test_a_snapshot_that_is_on_its_way_is_not_asked_for_again(loading):
    replica, offer, _ = loading
    for now_ms in (300, 900, 1500, 2100):
        replica.step(SnapshotProgressed(now_ms), now_ms)
        assert offer(now_ms) == []
    assert replica.role is Role.FOLLOWER


def test_a_snapshot_that_stops_coming_is_asked_for_again(loading):
    replica, offer, _ = loading
    replica.step(SnapshotProgressed(10), 300)
    assert offer(900) == []
    assert len(offer(1300)) == 1


def test_who_loads_a_snapshot_says_how_much_it_has(loading):
    replica, offer, asked = loading
    replica.step(SnapshotProgressed(10), 100)
    offer(500)
    assert asked[-1].loaded == 10


def test_a_snapshot_that_is_stored_is_taken_by_one_that_has_lost_its_patience(loading, point):
    replica, _, _ = loading
    replica.step(TimePassed(), 5000)
    assert replica.role is Role.PROSPECTIVE
    assert RestartLog(point) in replica.step(SnapshotStored(point), 5000)
    assert (replica.log.position, replica.role) == (Position(3, 9), Role.PROSPECTIVE)


@pytest.fixture
def leader(make, ids):
    """1a, which leads in epoch 3 with a log that begins at 4; nobody but 2a has voted."""
    replica = make(log=LogView(0, 9, [EpochMark(2, 0)]), high_watermark=9)
    replica.step(TimePassed(), 0)
    replica.step(TimePassed(), 1000)
    replica.step(Received(VoteAnswer(ids("2a")[0], 2, True, True)), 1000)
    replica.step(Received(VoteAnswer(ids("2a")[0], 3, True, False)), 1000)
    replica.step(Flushed(1), 1000)
    replica.step(LogStartMoved(4), 1000)
    assert replica.role is Role.LEADER
    return replica


def test_a_leader_stays_while_its_only_follower_loads_more_of_a_snapshot(leader, ids):
    for now_ms in range(1000, 9000, 1000):
        leader.step(Received(Fetch(ids("2a")[0], 3, now_ms, Position(-1, 0), 0, loaded=now_ms)), now_ms)
    assert leader.role is Role.LEADER


def test_a_leader_resigns_when_its_only_follower_loads_nothing_more(leader, ids):
    for now_ms in (1000, 2000, 2600):
        leader.step(Received(Fetch(ids("2a")[0], 3, now_ms, Position(-1, 0), 0, loaded=7)), now_ms)
    assert leader.role is Role.FOLLOWER


def test_a_leader_takes_no_snapshot(leader, point):
    assert leader.step(SnapshotStored(point), 1000) == ()


def test_a_disk_that_had_nothing_to_do_is_not_stuck(leader, ids):
    """Of three voters one is dead, and the leader writes for the first time in a while."""
    follower = ids("2a")[0]
    for now_ms in range(1000, 9001, 1000):
        leader.step(Received(Fetch(follower, 3, now_ms, Position(3, 9), 9, log_start=4)), now_ms)
    leader.step(RecordsWritten(1), 9100)
    leader.step(Flushed(2), 9200)
    assert leader.role is Role.LEADER
