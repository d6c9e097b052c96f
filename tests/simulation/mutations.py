"""Bugs planted on purpose: the test of the tests.

Each one takes away a rule of the replica core, of whoever carries out its effects, or of a broker's own code, where
sizes meet the windows through which they are read. The simulator has to notice,
within the number of seeds that is written beside it; one that goes unnoticed means that a checker or a fault is
missing.

    python tests/simulation/mutations.py            prints the table: how many seeds each bug needed
    python tests/simulation/mutations.py NAME       plants one bug and tells what it does
"""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

from broker_mutations import BROKER_MUTATIONS
from disk_mutations import DISK_MUTATIONS
from msgspec.structs import replace
from planted import find, in_sync, quorum
from replica_mutations import REPLICA_MUTATIONS
from stream_mutations import STREAM_MUTATIONS
from window_mutations import WINDOW_MUTATIONS

from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.replica.core import membership
from zurau.replica.core.effects import SaveVote
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import Fetched, Vote, VoteAnswer
from zurau.replica.core.partition_state import InSyncProposal
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.state import ReplicaState
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.in_sync.roles import InSyncLeader
from zurau.replica.quorum import election, replica, voting
from zurau.replica.quorum.leader import Leader
from zurau.replica.quorum.replica import Replica
from zurau.simulation.cluster.controller import Controller
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.replica_group import ReplicaGroup
from zurau.simulation.cluster.storage import ReplicaDisk

# Divergence


def diverging_by_offset(self: LogView, theirs: Position) -> Position | None:
    return None if theirs.offset <= self.end_offset else self.position


def truncate_to_high_watermark(self: ReplicaState, diverging: Position) -> None:
    _truncate(self, Position(diverging.epoch, self.high_watermark))


def forget_mark_at_the_cut(self: EpochHistory, point: Position) -> None:
    self._replace([mark for mark in self.marks if mark.epoch <= point.epoch and mark.start_offset < point.offset])


def cut_by_offset_only(self: EpochHistory, point: Position) -> None:
    self._replace([mark for mark in self.marks if mark.start_offset <= point.offset])


def forget_epoch_before_the_start(self: EpochHistory, offset: int) -> None:
    self._replace([mark for mark in self.marks if mark.start_offset >= offset] or [EpochMark(self.last, offset)])


def high_watermark_before_the_cut(self: Follower, answer: Fetched) -> None:
    if answer.diverging is not None:
        self._state.raise_high_watermark(min(answer.high_watermark, self._state.log.end_offset))
    _fetched(self, answer)


def any_answer_will_do(self: Follower, message: Any) -> Any:
    if isinstance(message, Fetched) and message.sender == self._state.leader:
        self._fetched(message)
        return None
    return _follower_receive(self, message)


# Durability


def save_nothing(self: Host, effect: Any) -> None:
    if not isinstance(effect, SaveVote):
        _carry_out(self, effect)


def count_what_is_written(self: Leader, voter: Any) -> int:
    if voter == self._state.id:
        return self._state.log.end_offset if self._state.log.epochs.last == self._state.epoch else -1
    return _stored(self, voter)


everything_written = property(lambda self: self.log.position)


def save_a_high_watermark_that_is_not_flushed(self: Host, high_watermark: int) -> None:
    self.disk.high_watermark = min(high_watermark, self.disk.safe.end_offset)


# Counting


def count_older_epochs(self: Progress, epoch: int) -> int:
    return self.position.offset


def count_itself_in_older_epochs(self: Leader, voter: Any) -> int:
    return self._state.stored.offset if voter == self._state.id else self._followers[voter].stored_in(0)


# Voting


def count_any_answer(self: election._Round, message: Any) -> Any:
    if isinstance(message, VoteAnswer):
        self._answers[message.sender] = message.is_granted
        return self._count()
    return None


def look_at_the_epoch_only(state: ReplicaState, vote: Vote) -> bool:
    return vote.epoch >= state.epoch


def anything_but_data(message: Any) -> bool:
    return not isinstance(message, Fetched)


def never(self: Leader) -> int:
    return self._state.now_ms + 10_000


def lead_on_after_a_restart(self: Replica, role: Role) -> Any:
    first = self._role is None
    cause = _enter(self, role)
    if first and self._state.voted_for == self._state.id and self._state.epoch == self._state.log.epochs.last:
        self._role = Leader(self._state)
        self._state.leader = self._state.id
        self._state.effects.append(replica.RoleChanged(Role.LEADER, self._state.epoch, self._state.id))
        return None
    return cause


# In-sync replicas

known_in_sync = property(lambda self: self._assignment.state.in_sync)


def wished_in_sync(self: InSyncLeader) -> tuple[ReplicaId, ...]:
    return self._proposal.in_sync if self._proposal is not None else self._assignment.state.in_sync


def forget_what_was_asked(self: InSyncLeader) -> Any:
    if self._state.now_ms >= self._ask_again_ms:
        self._proposal = None
    return _time_passed(self)


def register_as_clean(self: Controller, broker: int, incarnation: int, *, was_clean: bool) -> None:
    _register(self, broker, incarnation, was_clean=True)


def accept_any_state(self: Controller, partition: PartitionId, proposal: InSyncProposal) -> None:
    known = self._image.partitions.get(partition)
    if known is not None:
        _propose(self, partition, replace(proposal, partition_epoch=known.partition_epoch))


def any_start_of_the_broker(self: Controller, partition: PartitionId, replica: ReplicaId, broker_epoch: int) -> bool:
    return self.is_alive(partition, replica)


def elect_anybody(self: Controller) -> None:
    for partition, known in list(self._image.partitions.items()):
        alive = [has[partition] for has in self._has.values() if partition in has]
        if known.leader is None and alive:
            self._change(partition, leader=alive[0], in_sync=(alive[0],))


def commit_by_too_few(self: InSyncLeader) -> None:
    settings = replace(self._state.settings, in_sync_min=1)
    with patch.object(self._state, "settings", settings):
        _count_in_sync(self)


def keep_the_last_one(self: Controller, partition: PartitionId, *names: ReplicaId) -> None:
    self._image.eligible[partition] = ()
    _forget(self, partition, *names)


# The world


def same_directory(self: ReplicaGroup, old: ReplicaDisk) -> ReplicaDisk:
    return ReplicaDisk(old.directory, old.first_voters)


def no_time_to_answer(self: ReplicaState, duration_ms: int) -> int:
    """A round of votes is over before anybody could answer, and another begins."""
    return (
        self.now_ms + 1 if duration_ms == self.settings.election_timeout_ms else _randomized_deadline(self, duration_ms)
    )


_truncate = ReplicaState.truncate
_randomized_deadline = ReplicaState.randomized_deadline
_fetched = Follower._fetched
_follower_receive = Follower.receive
_carry_out = Host._carry_out
_stored = Serving.stored_by
_enter = Replica._enter
_time_passed = InSyncLeader.time_passed
_register = Controller._register
_forget = Controller._forget
_propose = Controller.propose
_count_in_sync = InSyncLeader._count
_in_sync_handle = InSyncReplica._handle


def _always(*_: Any, **__: Any) -> bool:
    return True


MUTATIONS = (
    quorum("logs are compared by offset only", 30, (LogView, "where_diverging", diverging_by_offset)),
    quorum("a wiped disk keeps its identity", 30, (ReplicaGroup, "new_disk", same_directory)),
    quorum("a follower truncates to its high watermark", 300, (ReplicaState, "truncate", truncate_to_high_watermark)),
    quorum("a follower fetches on before it has flushed", 30, (ReplicaState, "stored", everything_written)),
    quorum("a leader counts itself before it has flushed", 60, (Serving, "stored_by", count_what_is_written)),
    quorum(
        "what older epochs wrote is counted",
        30,
        (Progress, "stored_in", count_older_epochs),
        (Serving, "stored_by", count_itself_in_older_epochs),
    ),
    quorum("epoch and vote are not written down", 60, (Host, "_carry_out", save_nothing)),
    quorum("a late answer is taken for the awaited one", 30, (Follower, "receive", any_answer_will_do)),
    quorum("a vote is given twice in an epoch", 150, (voting, "may_vote", _always)),
    quorum("a vote is given to a shorter log", 30, (voting, "would_vote", look_at_the_epoch_only), near=25),
    quorum(
        "votes of an earlier election are counted",
        600,
        (replica, "_may_be_older", anything_but_data),
        (election._Round, "receive", count_any_answer),
        near=129,
    ),
    quorum("a leader that restarts leads on", 30, (Replica, "_enter", lead_on_after_a_restart)),
    quorum(
        "the high watermark moves before the truncation",
        30,
        (Follower, "_fetched", high_watermark_before_the_cut),
        near=58,
    ),
    quorum("a truncation drops the mark at its offset", 300, (EpochHistory, "truncate", forget_mark_at_the_cut)),
    quorum("a truncation keeps marks of later epochs", 120, (EpochHistory, "truncate", cut_by_offset_only)),
    quorum(
        "retention forgets the epoch before the start",
        800,
        (EpochHistory, "advance_start", forget_epoch_before_the_start),
    ),
    quorum("voters change while a change is open", 120, (membership.Membership, "is_settled", _always), near=102),
    quorum(
        "a round of votes gives nobody time to answer", 100, (ReplicaState, "randomized_deadline", no_time_to_answer)
    ),
    quorum("a leader never resigns", 200, (Leader, "_quorum_lost_ms", never), near=18),
    in_sync("a leader counts only whom it knows to be in sync", 60, (InSyncLeader, "maximal", known_in_sync)),
    in_sync("a leader counts only whom it wants in sync", 30, (InSyncLeader, "maximal", property(wished_in_sync))),
    in_sync(
        "a proposal is forgotten before it is answered",
        800,
        (InSyncLeader, "time_passed", forget_what_was_asked),
        near=86,
    ),
    in_sync("an unclean restart stays in sync", 60, (Controller, "_register", register_as_clean), near=18),
    in_sync("a proposal for an older state is accepted", 300, (Controller, "propose", accept_any_state)),
    in_sync(
        "a broker that was restarted since is taken in",
        400,
        (Controller, "_may_join", any_start_of_the_broker),
        near=155,
    ),
    in_sync(
        "a high watermark is written down before it is flushed",
        600,
        (Host, "_save_high_watermark", save_a_high_watermark_that_is_not_flushed),
        near=35,
    ),
    in_sync(
        "the last one in sync leads although it lost data", 250, (Controller, "_forget", keep_the_last_one), near=35
    ),
    in_sync("somebody who is not in sync is elected", 60, (Controller, "_elect", elect_anybody)),
    in_sync("too few replicas commit", 30, (InSyncLeader, "_count", commit_by_too_few)),
    in_sync("logs are compared by offset only, in sync", 60, (LogView, "where_diverging", diverging_by_offset)),
    in_sync(
        "a replica is in sync without the leader's mark", 600, (Progress, "stored_in", count_older_epochs), near=179
    ),
    in_sync("a follower fetches on before it has flushed, in sync", 60, (ReplicaState, "stored", everything_written)),
    *DISK_MUTATIONS,
    *STREAM_MUTATIONS,
    *WINDOW_MUTATIONS,
    *BROKER_MUTATIONS,
    *REPLICA_MUTATIONS,
)


def main(arguments: list[str]) -> None:
    wanted = [each for each in MUTATIONS if not arguments or arguments[0] in (each.name, each.mode)]
    print("| planted bug | mode | seeds it took, from 0 | noticed by |\n|---|---|---:|---|")
    for mutation in wanted:
        found = find(mutation)
        took, by = found if found is not None else ("-", "nothing")
        print(f"| {mutation.name} | {mutation.mode} | {took} | {by} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
