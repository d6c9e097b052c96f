"""The properties of the controller find every bug that is planted: one that goes unnoticed is a gap in them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from controller_play import Play, steps_of
from msgspec.structs import replace

from zurau.machines.controller import brokers, controller, in_sync, reassignment, snapshot
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.in_sync import Drafts
from zurau.machines.controller.records import NO_EPOCH
from zurau.machines.controller.sessions import BrokerSessions


@dataclass(frozen=True)
class Planted:
    name: str
    patches: tuple[tuple[Any, str, Any], ...]
    #: Plays within which it has to be found: a few times as many as it took.
    seeds: int = 30


def planted(name: str, *patches: tuple[Any, str, Any], seeds: int = 30) -> Planted:
    return Planted(name, patches, seeds)


def nothing(*_: Any, **__: Any) -> None:
    pass


_put, _choose_leader = Drafts.put, Drafts.choose_leader
_records, _placed, _broker_record = brokers.fence_silent, snapshot.placed, snapshot.broker_record
_heartbeat, _alter = brokers.broker_heartbeat, in_sync.alter_partition


def keep_the_leaders_epoch(self, key, **changes):
    changed = _put(self, key, **changes)
    self._changed[key] = replace(changed, leader_epoch=self._decided(key).leader_epoch)
    return self._changed[key]


def leave_to_the_last(self, key, broker):
    known = self[key]
    leader = None if known.leader is not None and known.leader.broker == broker else known.leader
    self.put(key, in_sync=tuple(each for each in known.in_sync if each.broker != broker), leader=leader)


def forget_who_left_before(self, key, replica):
    known = self[key]
    rest = tuple(each for each in known.in_sync if each != replica) or known.in_sync
    self.put(key, in_sync=rest, leader=None if known.leader == replica else known.leader)
    self._drop_eligible(key, replica)


def lead_although_it_left(self, key, broker):
    known = self[key]
    rest = tuple(each for each in known.in_sync if each.broker != broker) or known.in_sync
    if rest != known.in_sync:
        self.put(key, in_sync=rest)


def choose_anybody(self, key, partition):
    return _choose_leader(self, key, replace(partition, in_sync=partition.replica_ids))


def choose_the_first_by_name(self, key, partition):
    return min((each for each in partition.in_sync if self.is_able(key, partition, each)), default=None)


def choose_who_leads_the_most(self, key, partition):
    able = [each for each in partition.in_sync if self.is_able(key, partition, each)]
    preferred = partition.preferred
    return max(able, key=lambda each: (each == preferred, self._led[each.broker]), default=None)


def choose_the_drained_too(self, key, partition):
    with patch.object(type(self._image), "is_drained", lambda *_: False):
        return _choose_leader(self, key, partition)


def prefer_whoever_is_there(self, key):
    partition = self[key]
    if partition.leader is None or partition.leader == partition.preferred:
        return False
    self.put(key, leader=partition.preferred)
    return True


def finish_before_they_are_in_sync(self, key):
    if self[key].target:
        self.finish(key)


def finish_late(image, drafts, command):
    known = image.partition(command.partition)
    return _finish(image, drafts, command if known is None else replace(command, partition_epoch=known.partition_epoch))


def without_target(partition):
    return _placed(replace(partition, target=(), origin=()))


_finish = reassignment.finish_reassignment


def fence_first(image, sessions, now_ms):
    return _records(image, sessions, now_ms)[::-1]


def register_first(*arguments):
    decided = _register(*arguments)
    return Decided(decided.records[::-1], decided.reply)


_register = brokers.register_broker


def join_whatever_was_restarted(image, drafts, key, replica, broker_epoch):
    return drafts.is_able(key, drafts[key], replica)


def join_although_fenced(image, drafts, key, replica, broker_epoch):
    registered = image.brokers.get(replica.broker)
    return registered is not None and registered.broker_epoch == broker_epoch


def refuse_without_a_change(image, drafts, command):
    decided = _alter(image, drafts, command)
    return decided if not isinstance(decided.reply, Exception) else Decided(reply=decided.reply)


def look_at_the_leader_only(image, command):
    known = image.partition(command.partition)
    current = command if known is None else replace(command, partition_epoch=known.partition_epoch)
    return _check_current(image, current)


_check_current = in_sync._check_current


def works_unless_told(self, broker, partition):
    session = self._sessions.get(broker)
    return session is not None and partition not in (session.failed or ())


def hear_of_no_failure(image, sessions, command, now_ms, last_offset):
    return _heartbeat(image, sessions, replace(command, failed=frozenset()), now_ms, last_offset)


def stay_fenced_for_ever(image, sessions, command, now_ms, last_offset):
    decided = _heartbeat(image, sessions, command, now_ms, last_offset)
    return Decided(reply=decided.reply)


def elect_alone(self):
    changed = set(self._changed)
    for key in sorted({*self._image.leaderless, *changed}):
        partition = self[key]
        if partition.in_sync and partition.leader is None:
            leader = self.choose_leader(key, partition)
            if leader is not None:
                self.put(key, leader=leader)


def without_eligible(partition):
    return _placed(replace(partition, eligible=()))


def without_an_epoch(broker):
    return _broker_record(replace(broker, broker_epoch=NO_EPOCH))


PLANTED = (
    planted("an unclean start has lost nothing", (Drafts, "lose", nothing)),
    planted("another disk is the same replica", (Drafts, "rename", nothing)),
    planted("a start keeps the place of the one before it", (brokers, "_leave_behind", nothing)),
    planted("the last one in sync leaves too", (Drafts, "leave", leave_to_the_last)),
    planted("the last one in sync leads although it lost data", (Drafts, "_forget", forget_who_left_before)),
    planted("a fenced leader leads on", (Drafts, "leave", lead_although_it_left)),
    planted("leaders come and go within an epoch", (Drafts, "put", keep_the_leaders_epoch)),
    planted("somebody who is not in sync is elected", (Drafts, "choose_leader", choose_anybody)),
    planted(
        "the first by name leads, however much it leads", (Drafts, "choose_leader", choose_the_first_by_name), seeds=200
    ),
    planted("whoever leads the most is elected", (Drafts, "choose_leader", choose_who_leads_the_most), seeds=200),
    planted("a drained broker is elected like any other", (Drafts, "choose_leader", choose_the_drained_too), seeds=200),
    planted("the preferred one leads, in sync or not", (Drafts, "prefer", prefer_whoever_is_there)),
    planted("replicas leave before others are in sync", (Drafts, "_finish_if_in_sync", finish_before_they_are_in_sync)),
    planted("only a leader ends a reassignment", (Drafts, "settle", elect_alone), seeds=300),
    planted("a reassignment ends on old news", (controller, "finish_reassignment", finish_late), seeds=200),
    planted("a snapshot forgets where partitions go", (snapshot, "placed", without_target), seeds=100),
    planted("nobody is elected", (Drafts, "settle", nothing)),
    planted("a broker is fenced before its leaders are moved", (controller, "fence_silent", fence_first)),
    planted("a start is counted before the last one is out", (controller, "register_broker", register_first)),
    planted(
        "a broker that was restarted since is taken in", (in_sync, "_may_join", join_whatever_was_restarted), seeds=60
    ),
    planted("a fenced broker is taken in", (in_sync, "_may_join", join_although_fenced)),
    planted("what was refused is accepted later", (controller, "alter_partition", refuse_without_a_change), seeds=150),
    planted("a proposal for an older state is accepted", (in_sync, "_check_current", look_at_the_leader_only)),
    planted("a new controller elects whom it has not heard", (BrokerSessions, "works", works_unless_told)),
    planted("a replica that failed leads on", (controller, "broker_heartbeat", hear_of_no_failure)),
    planted("a heartbeat ends no fencing", (controller, "broker_heartbeat", stay_fenced_for_ever)),
    planted("another disk takes the id of a broker that runs", (brokers, "_check_incarnation", nothing)),
    planted("a snapshot forgets who left without a loss", (snapshot, "placed", without_eligible)),
    planted("a snapshot forgets which start it was", (snapshot, "broker_record", without_an_epoch)),
)


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_within_its_plays(bug):
    assert find(bug) is not None, f"{bug.seeds} plays, and nobody noticed that {bug.name}"


def test_nothing_is_found_where_nothing_is_planted():
    for seed in range(20):
        Play().run(steps_of(seed))


def find(bug: Planted) -> tuple[int, str] | None:
    """How many plays it took, and what was noticed."""
    with ExitStack() as stack:
        for target, attribute, new in bug.patches:
            stack.enter_context(patch.object(target, attribute, new))
        for seed in range(bug.seeds):
            try:
                Play().run(steps_of(seed))
            except (AssertionError, LookupError) as noticed:
                return seed + 1, str(noticed)
    return None


if __name__ == "__main__":
    for bug in PLANTED:
        print(f"{bug.name}: {find(bug)}")
