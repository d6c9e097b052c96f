"""Bugs planted in the replica core and in the shell that joins it to a log. See mutations.py."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
from planted import held, in_a_quorum, in_sync

from zurau.broker import placement as placement_module
from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.errors import OffsetOutOfRange
from zurau.ids import Offset, ReplicaId
from zurau.partition import runs as runs_module
from zurau.partition import shell as shell_module
from zurau.partition.partition import Partition
from zurau.partition.producers import Producers
from zurau.partition.shell import Shell
from zurau.pending import done
from zurau.replica.core.effects import FetchSnapshot, Truncate
from zurau.replica.core.events import PartitionChanged
from zurau.replica.core.follower import Follower
from zurau.replica.core.items import Batch, Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership
from zurau.replica.core.messages import Fetched, SnapshotPoint, Vote, VoteAnswer
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.state import ReplicaState
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.in_sync.roles import InSyncLeader
from zurau.replica.quorum import election, replica, voting
from zurau.replica.quorum.leader import Leader
from zurau.replica.quorum.replica import Replica
from zurau.simulation.brokers.node import SimulatedNode

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


def count_what_is_written(self: Leader, voter: Any) -> int:
    if voter == self._state.id:
        return self._state.log.end_offset if self._state.log.epochs.last == self._state.epoch else -1
    return _stored(self, voter)


everything_written = property(lambda self: self.log.position)
all_committed = property(lambda self: self.high_watermark)


# Snapshots, retention and compaction


def begin_without_an_epoch(self: LogView, mark: EpochMark) -> None:
    _restart(self, mark)
    self.epochs.truncate(Position(-1, -1))


def ask_again_with_every_answer(self: ReplicaState, leader: ReplicaId, point: SnapshotPoint) -> None:
    self.effects.append(FetchSnapshot(leader, point))


def only_dense_offsets(self: LogView, item: Item) -> None:
    begins = item.base_offset if isinstance(item, Batch) else item.start_offset
    assert begins == self.end_offset, f"{item} would leave a gap after {self.end_offset}"
    _append(self, item)


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


def no_time_to_answer(self: ReplicaState, duration_ms: int) -> int:
    """A round of votes is over before anybody could answer, and another begins."""
    return (
        self.now_ms + 1 if duration_ms == self.settings.election_timeout_ms else _randomized_deadline(self, duration_ms)
    )


# In-sync replicas

known_in_sync = property(lambda self: self._assignment.state.in_sync)


def wished_in_sync(self: InSyncLeader) -> tuple[ReplicaId, ...]:
    return self._proposal.in_sync if self._proposal is not None else self._assignment.state.in_sync


def forget_what_was_asked(self: InSyncLeader) -> Any:
    if self._state.now_ms >= self._ask_again_ms:
        self._proposal = None
    return _time_passed(self)


def commit_by_too_few(self: InSyncLeader) -> None:
    with patch.object(self._state, "settings", msgspec.structs.replace(self._state.settings, in_sync_min=1)):
        _count_in_sync(self)


def believe_any_epoch(self: InSyncReplica, message: Any) -> Any:
    return _in_sync_receive(self, msgspec.structs.replace(message, epoch=self._state.epoch))


def hear_what_is_replayed(self: InSyncReplica, event: Any) -> Any:
    """What a broker's own metadata said before it was stopped is taken for what is so now."""
    if isinstance(event, PartitionChanged):
        self._partition_changed(event.partition)
        return None
    return _in_sync_handle(self, event)


# The shell, the partition and their places


def truncate_and_go_on(self: Shell, effect: Truncate) -> None:
    """What follows does not wait for it."""
    self._effects.extendleft(())
    _shell_truncate(self, effect)
    self._is_held_up = False


def keep_producers(self: Partition, producers: Any) -> None:
    """Producers are remembered across a truncation."""


def followers_note_no_producers(self: Partition, header: Any) -> None:
    """Whoever leads next has never heard of them."""


def serve_to_the_end(self: Partition, *, committed_only: bool = False) -> Offset:
    return self.log.end_offset


def no_waiting(self: Partition, offset: Offset, max_bytes: int, upto: Offset, *, may_block: bool = False) -> bytes:
    if offset > upto:
        raise OffsetOutOfRange(offset)
    return _partition_read(self, offset, max_bytes, upto, may_block=may_block)


def release_writers_when_written(self: Partition, offset: Offset) -> Any:
    return done(None)


def same_directory(self: SimulatedNode) -> None:
    number = self.disk_number
    _replace_disk(self)
    self.disk_number = number


def _at_once(*_: Any) -> Any:
    return done(None)


def _nothing(*_: Any) -> None:
    pass


def _always(*_: Any, **__: Any) -> bool:
    return True


def _false(*_: Any, **__: Any) -> bool:
    return False


_truncate = ReplicaState.truncate
_append = LogView.append
_restart = LogView.restart
_randomized_deadline = ReplicaState.randomized_deadline
_fetched = Follower._fetched
_follower_receive = Follower.receive
_stored = Serving.stored_by
_enter = Replica._enter
_partition_read = Partition.read
_replace_disk = SimulatedNode.replace_disk
_time_passed = InSyncLeader.time_passed
_count_in_sync = InSyncLeader._count
_in_sync_handle = InSyncReplica._handle
_in_sync_receive = InSyncReplica._receive
_shell_truncate = Shell._truncate
_hasty_work = {**shell_module._WORK, Truncate: truncate_and_go_on}


REPLICA_MUTATIONS = (
    in_a_quorum("logs are compared by offset only", 20, (LogView, "where_diverging", diverging_by_offset), near=10),
    in_a_quorum(
        "a follower truncates to its high watermark", 20, (ReplicaState, "truncate", truncate_to_high_watermark), near=2
    ),
    in_a_quorum(
        "a follower fetches on before it has flushed", 20, (ReplicaState, "stored", everything_written), near=24
    ),
    in_a_quorum("a leader counts itself before it has flushed", 20, (Serving, "stored_by", count_what_is_written)),
    in_a_quorum(
        "what older epochs wrote is counted",
        20,
        (Progress, "stored_in", count_older_epochs),
        (Serving, "stored_by", count_itself_in_older_epochs),
    ),
    in_a_quorum("a late answer is taken for the awaited one", 20, (Follower, "receive", any_answer_will_do)),
    in_a_quorum("a vote is given twice in an epoch", 20, (voting, "may_vote", _always)),
    in_a_quorum("a vote is given to a shorter log", 20, (voting, "would_vote", look_at_the_epoch_only), near=6),
    in_a_quorum(
        "votes of an earlier election are counted",
        20,
        (replica, "_may_be_older", anything_but_data),
        (election._Round, "receive", count_any_answer),
        near=1,
    ),
    in_a_quorum("a leader that restarts leads on", 20, (Replica, "_enter", lead_on_after_a_restart)),
    in_a_quorum(
        "the high watermark moves before the truncation",
        20,
        (Follower, "_fetched", high_watermark_before_the_cut),
        near=10,
    ),
    in_a_quorum("what follows a truncation does not wait for it", 20, (shell_module, "_WORK", _hasty_work), near=2),
    in_a_quorum("followers note no producers", 20, (Partition, "replicated", followers_note_no_producers)),
    in_sync("a leader counts only whom it knows to be in sync", 20, (InSyncLeader, "maximal", known_in_sync), near=2),
    in_sync(
        "a leader counts only whom it wants in sync", 20, (InSyncLeader, "maximal", property(wished_in_sync)), near=2
    ),
    in_sync("logs are compared by offset only, in sync", 20, (LogView, "where_diverging", diverging_by_offset), near=8),
    in_sync("a replica is in sync without the leader's mark", 20, (Progress, "stored_in", count_older_epochs), near=1),
    in_sync(
        "a follower fetches on before it has flushed, in sync", 20, (ReplicaState, "stored", everything_written), near=1
    ),
    in_a_quorum(
        "a wiped disk keeps its identity",
        20,
        (SimulatedNode, "replace_disk", same_directory),
        only=("Wipe", "LeaderLost"),
        near=2,
    ),
    held(
        "a truncation drops the mark at its offset",
        "unit/test_epochs.py::test_a_mark_at_exactly_the_cut_stays_if_its_epoch_is_common",
        (EpochHistory, "truncate", forget_mark_at_the_cut),
    ),
    held(
        "a truncation keeps marks of later epochs",
        "unit/test_epochs.py::test_a_mark_at_exactly_the_cut_stays_if_its_epoch_is_common",
        (EpochHistory, "truncate", cut_by_offset_only),
    ),
    held(
        "retention forgets the epoch before the start",
        "unit/test_epochs.py::test_the_epoch_of_the_last_record_before_the_start_is_remembered",
        (EpochHistory, "advance_start", forget_epoch_before_the_start),
    ),
    held(
        "one whose removal is not committed never stands",
        "unit/replica/test_high_watermark.py::test_one_whose_removal_may_not_be_committed_can_lead_until_it_is",
        (ReplicaState, "may_stand", ReplicaState.is_voter),
    ),
    held(
        "voters change while a change is open",
        "unit/replica/test_membership.py::test_a_change_is_settled_when_the_high_watermark_has_passed_it",
        (Membership, "is_settled", _always),
    ),
    held(
        "a round of votes gives nobody time to answer",
        "unit/replica/test_lost_leaders.py::test_who_would_not_vote_is_asked_again_and_who_did_not_is_not",
        (ReplicaState, "randomized_deadline", no_time_to_answer),
    ),
    held(
        "a leader never resigns",
        "unit/replica/test_quiescence.py::test_a_leader_resigns_when_no_majority_was_heard_since_its_quiescence_ended",
        (Leader, "_quorum_lost_ms", never),
    ),
    held(
        "a proposal is forgotten before it is answered",
        "unit/replica/test_in_sync_replica.py::test_a_proposal_stands_until_it_is_answered_though_nobody_would_make_it_now",
        (InSyncLeader, "time_passed", forget_what_was_asked),
    ),
    held(
        "a high watermark is noted before it is flushed",
        "unit/replica/test_in_sync_replica.py::test_what_was_flushed_before_a_cut_does_not_let_retention_go_further",
        (ReplicaState, "safe_high_watermark", all_committed),
    ),
    held(
        "too few replicas commit",
        "unit/replica/test_in_sync_replica.py::test_nothing_is_accepted_or_committed_by_fewer_than_the_topic_asks_for",
        (InSyncLeader, "_count", commit_by_too_few),
    ),
    held(
        "an answer of another epoch is taken",
        "unit/replica/test_in_sync_replica.py::test_an_answer_of_another_epoch_is_not_taken",
        (InSyncReplica, "_receive", believe_any_epoch),
    ),
    held(
        "metadata from before a start is heard",
        "unit/replica/test_in_sync_replica.py::test_what_was_decided_before_this_start_was_registered_is_not_heard",
        (InSyncReplica, "_handle", hear_what_is_replayed),
    ),
    held(
        "a log begins anew without an epoch",
        "unit/replica/test_storage.py::test_the_effects_that_shorten_a_log_leave_the_log_that_the_replica_knows",
        (LogView, "restart", begin_without_an_epoch),
    ),
    held(
        "a snapshot is asked for again while it comes",
        "unit/replica/test_snapshots.py::test_a_snapshot_that_stops_coming_is_asked_for_again",
        (ReplicaState, "fetch_snapshot", ask_again_with_every_answer),
    ),
    held(
        "a compacted log cannot be followed",
        "stories/test_replica_stories.py::test_replicas_behave_as_their_story_tells[compacted_log]",
        (LogView, "append", only_dense_offsets),
    ),
    held(
        "a follower keeps what the leader has deleted",
        "unit/replica/test_high_watermark.py::test_a_follower_deletes_what_its_leader_has_deleted_when_it_knows_that_it_is_committed",
        (ReplicaState, "follow_start", _false),
    ),
    held(
        "producers are remembered across a truncation",
        "unit/partition/test_shell.py::test_producers_of_what_was_truncated_are_forgotten",
        (Partition, "truncated", keep_producers),
    ),
    held(
        "a retry is written again",
        "stories/test_replica_stories.py::test_replicas_behave_as_their_story_tells[snapshot_catch_up]",
        (Producers, "find_repeated", _nothing),
    ),
    held(
        "a consumer reads to the end of the log",
        "unit/api/kafka/test_produce.py::test_a_batch_for_which_nobody_waits_is_flushed_a_little_later",
        (Partition, "readable_upto", serve_to_the_end),
    ),
    held(
        "an offset behind the high watermark is out of range",
        "unit/partition/test_partition.py::test_nothing_above_the_limit_is_read",
        (Partition, "read", no_waiting),
    ),
    held(
        "who does not lead answers consumers",
        "unit/broker/test_brokers_together.py::test_consumers_read_from_the_leader",
        (Partition, "require_leadership", _nothing),
    ),
    held(
        "a record is acknowledged when it is written",
        "unit/partition/test_partition.py::test_the_high_watermark_moves_when_the_disk_has_it",
        (Partition, "wait_committed", release_writers_when_written),
    ),
    held(
        "a damaged log is shortened and votes on",
        "unit/broker/test_brokers_together.py::test_a_replica_that_has_lost_what_it_promised_begins_anew_under_another_name",
        (placement_module, "has_lost_something", _false),
    ),
    held(
        "a damaged batch is sent",
        "unit/partition/test_runs.py::test_damage_is_not_passed_on",
        (runs_module, "check_crc", _always),
    ),
)
