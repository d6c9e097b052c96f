"""Bugs planted in the replica core, in the controller and in what joins them to real logs: see mutations.py.

They are looked for in worlds of three real brokers.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
from planted import in_a_quorum, in_a_set

from zurau.broker.broker import Broker
from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.ids import BrokerId, Offset, PartitionId, ReplicaId
from zurau.machines.controller import in_sync as controller_module
from zurau.machines.controller.image import PartitionImage
from zurau.machines.controller.in_sync import Drafts
from zurau.partition import shell as shell_module
from zurau.partition.partition import Partition
from zurau.partition.shell import Shell
from zurau.replica.core.effects import Truncate
from zurau.replica.core.events import PartitionChanged, Received
from zurau.replica.core.follower import Follower
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import Fetched, Vote, VoteAnswer
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.state import ReplicaState
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.in_sync.roles import InSyncLeader
from zurau.replica.quorum import election, replica, voting
from zurau.replica.quorum.leader import Leader
from zurau.replica.quorum.replica import Replica

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
not_only_what_is_safe = property(lambda self: self._state.high_watermark)


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


def patience_begins_anew(self: Follower) -> None:
    if self.has_fetched and self._state.leader is not None:
        self._hear_again()
    _ask(self)


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


def believe_any_epoch(self: InSyncReplica, event: Any) -> Any:
    if isinstance(event, Received):
        event = Received(msgspec.structs.replace(event.message, epoch=self._state.epoch))
    return _in_sync_handle(self, event)


def hear_what_is_replayed(self: InSyncReplica, event: Any) -> Any:
    """What a broker's own metadata said before it was stopped is taken for what is so now."""
    if isinstance(event, PartitionChanged):
        self._partition_changed(event.partition)
        return None
    return _in_sync_handle(self, event)


# The controller


def accept_any_state(image: Any, command: Any) -> PartitionImage:
    known = image.partition(command.partition)
    return _check_current(image, msgspec.structs.replace(command, partition_epoch=known.partition_epoch))


def anybody_may_lead(self: Drafts, key: PartitionId, partition: PartitionImage) -> ReplicaId | None:
    able = [each for each in partition.replica_ids if self.is_able(key, partition, each)]
    return max(able, default=None)


def may_always_join(*_: Any) -> bool:
    return True


def shrink_to_nobody(self: Drafts, key: PartitionId, broker: BrokerId) -> None:
    """Whoever left last leads on its own, whatever it has."""
    known = self[key]
    rest = tuple(each for each in known.replica_ids if each.broker != broker)[:1]
    if any(each.broker == broker for each in known.in_sync):
        self.put(key, in_sync=rest, leader=None)


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


def open_before_it_is_registered(self: Broker, topic: Any) -> None:
    self._openings.begin(topic)


def release_writers_when_written(self: Partition, offset: Offset) -> Any:
    return shell_module._DONE


def _nothing(*_: Any) -> None:
    pass


def _always(*_: Any, **__: Any) -> bool:
    return True


def _false(*_: Any, **__: Any) -> bool:
    return False


_truncate = ReplicaState.truncate
_randomized_deadline = ReplicaState.randomized_deadline
_fetched = Follower._fetched
_follower_receive = Follower.receive
_stored = Serving.stored_by
_enter = Replica._enter
_ask = Follower._ask
_time_passed = InSyncLeader.time_passed
_count_in_sync = InSyncLeader._count
_in_sync_handle = InSyncReplica._handle
_check_current = controller_module._check_current
_shell_truncate = Shell._truncate
_hasty_work = {**shell_module._WORK, Truncate: truncate_and_go_on}


REPLICA_MUTATIONS = (
    in_a_quorum("logs are compared by offset only", 60, (LogView, "where_diverging", diverging_by_offset)),
    in_a_quorum(
        "a follower truncates to its high watermark", 60, (ReplicaState, "truncate", truncate_to_high_watermark)
    ),
    in_a_quorum("a follower fetches on before it has flushed", 60, (ReplicaState, "stored", everything_written)),
    in_a_quorum("a leader counts itself before it has flushed", 60, (Serving, "stored_by", count_what_is_written)),
    in_a_quorum(
        "what older epochs wrote is counted",
        60,
        (Progress, "stored_in", count_older_epochs),
        (Serving, "stored_by", count_itself_in_older_epochs),
    ),
    in_a_quorum("a late answer is taken for the awaited one", 60, (Follower, "receive", any_answer_will_do)),
    in_a_quorum("a vote is given twice in an epoch", 60, (voting, "may_vote", _always)),
    in_a_quorum("a vote is given to a shorter log", 60, (voting, "would_vote", look_at_the_epoch_only)),
    in_a_quorum(
        "votes of an earlier election are counted",
        60,
        (replica, "_may_be_older", anything_but_data),
        (election._Round, "receive", count_any_answer),
    ),
    in_a_quorum("a leader that restarts leads on", 60, (Replica, "_enter", lead_on_after_a_restart)),
    in_a_quorum(
        "the high watermark moves before the truncation", 60, (Follower, "_fetched", high_watermark_before_the_cut)
    ),
    in_a_quorum("what follows a truncation does not wait for it", 60, (shell_module, "_WORK", _hasty_work)),
    in_a_quorum("followers note no producers", 60, (Partition, "replicated", followers_note_no_producers)),
    in_a_set("a leader counts only whom it knows to be in sync", 60, (InSyncLeader, "maximal", known_in_sync)),
    in_a_set("a leader counts only whom it wants in sync", 60, (InSyncLeader, "maximal", property(wished_in_sync))),
    in_a_set("somebody who is not in sync is elected", 60, (Drafts, "choose_leader", anybody_may_lead)),
    in_a_set("who left last leads, whatever it has", 60, (Drafts, "leave", shrink_to_nobody)),
    in_a_set("logs are compared by offset only, in sync", 60, (LogView, "where_diverging", diverging_by_offset)),
    in_a_set("a replica is in sync without the leader's mark", 60, (Progress, "stored_in", count_older_epochs)),
    in_a_set("a follower fetches on before it has flushed, in sync", 60, (ReplicaState, "stored", everything_written)),
)
