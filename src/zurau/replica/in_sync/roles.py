"""Primary and backups: the controller says who leads and which replicas are in sync; those decide what is committed.

The high watermark is the smallest offset that any in-sync replica has stored. So whichever of them leads next has
everything that is committed, and a write that k of them have stored survives the loss of any k-1.

Only the controller changes the set. Between asking and hearing, a leader does not know whether its proposal counts
already, so it commits by the *maximal* set: the one that it knows together with the one that it asked for (KIP-966). A
set that is too large delays; one that is too small loses.
"""

from __future__ import annotations

import msgspec

from zurau.ids import Epoch, Offset
from zurau.replica.core.effects import AlterPartition
from zurau.replica.core.events import RecordsWritten
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import BeginEpoch, Fetch, Message
from zurau.replica.core.partition_state import InSyncProposal, PartitionState
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.core.state import ReplicaState


class Assignment(msgspec.Struct):
    """What the controller said last."""

    state: PartitionState
    #: The number of this broker's start, as the controller counts.
    broker_epoch: Epoch = -1


class InSyncFollower(Follower):
    """Fetches from the leader that the controller named, and never stands for election."""

    def enter(self) -> Cause | None:
        self._ask()
        return None

    @property
    def deadline_ms(self) -> int:
        return NEVER_MS if self._is_quiesced else self._ask_again_ms

    def time_passed(self) -> Cause | None:
        if self._state.now_ms >= self.deadline_ms:
            self._ask()
        return None

    def receive(self, message: Message) -> Cause | None:
        if type(message) is BeginEpoch:
            # Whoever heard first that it follows has asked a replica that did not lead yet, and was refused.
            if message.sender == self._state.leader and not self.has_fetched:
                self._ask()
            return None
        return super().receive(message)

    def registered(self) -> None:
        """Its fetch says which start of the broker it is from: one that was quiesced has to be sent anew."""
        if self._is_quiesced:
            self._ask()

    def _ask(self) -> None:
        if self._state.leader is None:
            self._ask_again_ms = self._state.now_ms + self._state.settings.retry_ms
        else:
            super()._ask()


class InSyncLeader(Serving):
    role = Role.LEADER

    def __init__(self, state: ReplicaState, assignment: Assignment) -> None:
        super().__init__(state)
        self._assignment = assignment
        self._proposal: InSyncProposal | None = None
        self._ask_again_ms = state.now_ms + state.settings.retry_ms

    def enter(self) -> Cause | None:
        self.lead()
        state = self._state
        for replica in self._assignment.state.in_sync:
            if replica != state.id:
                state.send(replica.broker, BeginEpoch(state.id, state.epoch))
        return None

    @property
    def maximal(self) -> tuple[ReplicaId, ...]:
        """Everybody who may be in sync for the controller."""
        proposed = self._proposal.in_sync if self._proposal is not None else ()
        return tuple(sorted({*self._assignment.state.in_sync, *proposed}))

    # Time

    def _due_ms(self) -> int:
        look_ms = NEVER_MS if self._is_at_rest() else self._ask_again_ms
        return min(look_ms, self.parked_until_ms()[0])

    def _is_at_rest(self) -> bool:
        """Nobody could be proposed to join or to leave, until something is heard."""
        in_sync = self._assignment.state.in_sync
        return self._proposal is None and all(
            progress.is_quiescent and replica in in_sync for replica, progress in self._followers.items()
        )

    def time_passed(self) -> Cause | None:
        state = self._state
        self.answer_overdue()
        if state.now_ms >= self._ask_again_ms:
            self._ask_again_ms = state.now_ms + state.settings.retry_ms
            self.forget_silent(self.maximal)
            if self._proposal is not None:
                state.effects.append(AlterPartition(self._proposal))
            else:
                self._maybe_change()
        return None

    # What comes in

    def refusal(self, *, acks_all: bool) -> str | None:
        return "too few replicas are in sync" if acks_all and self._is_under_min() else None

    def written(self, event: RecordsWritten) -> None:
        state = self._state
        state.log.wrote(event.count)
        state.flush()
        self._wait_began()
        self._count()
        if self._followers:
            self.tell_news()

    def flushed(self) -> Cause | None:
        self._count()
        return None

    def receive(self, message: Message) -> Cause | None:
        if not isinstance(message, Fetch):
            return None
        if message.epoch != self._state.epoch:
            self._state.refuse_fetch(message.sender.broker, message.fetch_id)
        elif self.answer_fetch(message) is not None:
            self._count()
            self.tell_news()
        return None

    def in_sync_changed(self) -> None:
        """The controller has decided, on this leader's proposal or on its own: whatever was asked for is settled."""
        self._proposal = None
        self._expect_in_sync()
        self._count()

    # Who is in sync

    def _expect_in_sync(self) -> None:
        for replica in self._assignment.state.in_sync:
            if replica != self._state.id:
                self._follower(replica)

    def _follower(self, replica: ReplicaId) -> Progress:
        return self._followers.setdefault(replica, Progress(self._state.now_ms))

    def _maybe_change(self) -> None:
        """Propose to leave out who has lagged for too long, and to take in who is caught up."""
        state, current = self._state, self._assignment.state.in_sync
        kept = [each for each in current if each == state.id or not self._lags(each)]
        joining = [each for each in self._followers if each not in current and self._is_caught_up(each)]
        wanted = tuple(sorted([*kept, *joining]))
        if wanted != current:
            self._propose(wanted)

    def _lags(self, replica: ReplicaId) -> bool:
        return self._follower(replica).caught_up_ms < self._state.now_ms - self._state.settings.lag_max_ms

    def _is_caught_up(self, replica: ReplicaId) -> bool:
        """It holds this leader's mark, and so everything that earlier leaders committed, and what this one has."""
        progress = self._follower(replica)
        has_all = progress.stored_in(self._state.epoch) >= self._state.high_watermark
        return has_all and progress.broker_epoch >= 0 and not self._lags(replica)

    def _propose(self, in_sync: tuple[ReplicaId, ...]) -> None:
        known = self._assignment.state
        epochs = tuple(
            self._assignment.broker_epoch if each == self._state.id else self._follower(each).broker_epoch
            for each in in_sync
        )
        self._proposal = InSyncProposal(self._state.id, known.leader_epoch, known.partition_epoch, in_sync, epochs)
        self._state.effects.append(AlterPartition(self._proposal))

    # Counting

    def _is_under_min(self) -> bool:
        return len(self._assignment.state.in_sync) < self._state.settings.in_sync_min

    def _count(self) -> None:
        if self._is_under_min():
            return  # what is written with acks=1 meanwhile is committed when enough have it
        offset: Offset = min(self.stored_by(replica) for replica in self.maximal)
        if offset >= 0:
            moved = self._state.raise_high_watermark(offset)
            self.establish()
            if moved:
                self.tell_news()
