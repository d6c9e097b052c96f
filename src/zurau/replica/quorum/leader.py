"""A leader that was voted for: it writes its mark, answers fetches, and counts.

The high watermark is the offset that a majority of voters has stored, itself among them for what it has flushed and no
more; a voter counts from when it holds this leader's mark. A leader that sees no majority move on resigns: it may be
the last to hear that there is another.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.replica.core.effects import AdvanceReplicated, Refuse
from zurau.replica.core.events import RecordsWritten, TransferAsked, VoterChangeAsked
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import could_commit
from zurau.replica.core.messages import BeginEpoch, EndEpoch, Fetch, Message
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.core.state import ReplicaState
from zurau.replica.quorum.majority import committed_offset, majority


class Leader(Serving):
    role = Role.LEADER

    def __init__(self, state: ReplicaState) -> None:
        super().__init__(state)
        self._followers = {voter: Progress(state.now_ms) for voter in state.other_voters}
        self._check_quorum_ms = state.settings.check_quorum_ms
        self._own_moved_ms = state.now_ms
        self._begin_again_ms = state.now_ms
        self._successor: ReplicaId | None = None
        self._hand_over_until_ms = 0
        #: What has been said of `replicated_offset`.
        self._told_replicated: Offset = -1
        #: Why nothing is written; None when it is.
        self.refusal: str | None = None

    def enter(self) -> Cause | None:
        self.lead()
        self._announce()
        return None

    # Time

    def _due_ms(self) -> int:
        if not self._followers:
            return NEVER_MS  # nobody to wait for, or to tell
        parked_ms, is_quiescent = self.parked_until_ms()
        due_ms = min(self._quorum_lost_ms(), parked_ms)
        if self._successor is not None:
            due_ms = min(due_ms, self._hand_over_until_ms)
        return due_ms if is_quiescent else min(due_ms, self._begin_again_ms)

    def time_passed(self) -> Cause | None:
        state = self._state
        if state.now_ms >= self._quorum_lost_ms():
            return Cause.QUORUM_LOST
        self.answer_overdue()
        if state.now_ms >= self._begin_again_ms:
            self._announce()
            self.forget_silent(state.voters)
        if self._successor is not None and state.now_ms >= self._hand_over_until_ms:
            self._successor = self.refusal = None
        return None

    def _quorum_lost_ms(self) -> int:
        """When this leader has to resign unless somebody moves on. A disk that is stuck counts against itself; but
        where nobody else votes, nobody else could lead."""
        state = self._state
        if not state.other_voters:
            return NEVER_MS
        moved = [self._followers[voter].moved_ms for voter in state.other_voters]
        if state.is_voter:
            moved.append(NEVER_MS if state.log.is_flushed else self._own_moved_ms)
        moved.sort()
        moved_ms = moved[-majority(len(moved))]
        return moved_ms + self._check_quorum_ms if moved_ms < NEVER_MS else NEVER_MS

    def _announce(self) -> None:
        """Tell the voters that have not come yet: one that does not ask cannot be answered."""
        state = self._state
        absent = [voter for voter in state.other_voters if not self._followers[voter].has_fetched]
        self._begin_again_ms = state.now_ms + (state.settings.retry_ms if absent else state.settings.forget_ms)
        for voter in absent:
            state.send(voter.broker, BeginEpoch(state.id, state.epoch))

    # What comes in

    def written(self, event: RecordsWritten) -> Cause | None:
        state = self._state
        log = state.log
        if log.flushed == log.position:
            self._own_moved_ms = state.now_ms  # its disk had nothing to do until now
        log.wrote(event.count)
        state.flush()
        cause = None if state.settings.waits_for_flush else self._count()
        if self._followers:
            self._wait_began()
            self.tell_news()
        return cause

    def flushed(self) -> Cause | None:
        self._own_moved_ms = self._state.now_ms
        return self._count() or self._maybe_hand_over()

    def receive(self, message: Message) -> Cause | None:
        if not isinstance(message, Fetch):
            return None
        if message.epoch < self._state.epoch:
            self._state.refuse_fetch(message.sender.broker, message.fetch_id)
            return None
        progress = self.answer_fetch(message)
        if progress is None:
            return None
        cause = None
        state = self._state
        if message.position.offset > state.high_watermark or not self.is_established or not state.is_voter:
            cause = self._count()
        elif state.settings.in_sync_min > 2:
            self._tell_replicated()
        if self._successor is not None:
            cause = cause or self._maybe_hand_over()
        self.tell(progress)
        return cause

    def _count(self) -> Cause | None:
        state = self._state
        voters = state.membership.voters
        if len(voters) == 1:
            offset = self.stored_by(voters[0])
        else:
            offset = committed_offset([self.stored_by(voter) for voter in voters])
        if offset < 0:
            return None
        moved = state.raise_high_watermark(offset)
        if not self.is_established:
            self.establish()
        if state.settings.in_sync_min > 2:
            self._tell_replicated()
        if moved and self._followers:
            self.tell_news()
        voted_out = not state.is_voter and state.membership.is_settled(state.high_watermark)
        return self.resign() if voted_out else None

    @property
    def replicated_offset(self) -> Offset:
        """What is committed, and stored by as many voters as are asked for: a majority, or more; -1 if there are not so
        many."""
        state = self._state
        voters, wanted = state.membership.voters, state.settings.in_sync_min
        if wanted <= majority(len(voters)):
            return state.high_watermark
        if wanted > len(voters):
            return -1
        return min(state.high_watermark, sorted(map(self.stored_by, voters))[-wanted])

    def _tell_replicated(self) -> None:
        """Of two voters a majority is both, so only who asks for more than two is told more than the high watermark."""
        offset = self.replicated_offset
        if offset not in (-1, self._told_replicated):
            self._told_replicated = offset
            self._state.effects.append(AdvanceReplicated(offset, self._state.settings.in_sync_min))

    # Others in the lead

    def transfer(self, event: TransferAsked) -> Cause | None:
        state = self._state
        if event.to not in state.other_voters:
            state.effects.append(Refuse(f"{event.to} is no other voter"))
            return None
        self._successor, self.refusal = event.to, "leadership is being handed over"
        self._hand_over_until_ms = state.now_ms + state.settings.fetch_timeout_ms
        return self._maybe_hand_over()

    def _maybe_hand_over(self) -> Cause | None:
        """Resign as soon as the successor has everything: it could not win before. And as soon as all of it is
        committed: nobody who waits for that has to ask anew whether it is."""
        state = self._state
        if self._successor is None or self._followers[self._successor].position != state.log.position:
            return None
        return self.resign() if state.high_watermark == state.log.end_offset else None

    def resign(self) -> Cause:
        """Say so, and name successors: the one that was asked for, then by how far they are."""
        state = self._state
        ranked = sorted(state.other_voters, key=lambda voter: self._followers[voter].position, reverse=True)
        successors = tuple(sorted(ranked, key=lambda voter: voter != self._successor))
        for voter in state.other_voters:
            state.send(voter.broker, EndEpoch(state.id, state.epoch, successors))
        return Cause.RESIGNED

    # Other voters

    def change_voters(self, event: VoterChangeAsked) -> Cause | None:
        state = self._state
        reason = self._reason_against(event)
        if reason is not None:
            state.effects.append(Refuse(reason))
            return None
        if state.log.is_flushed:
            self._own_moved_ms = state.now_ms
        voters = state.membership.with_change(event.add, event.remove)
        state.append(Batch(state.epoch, state.log.end_offset, 1, b"", voters))
        self.tell_news()
        return None

    def _reason_against(self, event: VoterChangeAsked) -> str | None:
        state = self._state
        if not self.is_established:
            return "nothing of this epoch is committed yet"
        if not state.membership.is_settled(state.high_watermark):
            return "the last change of voters is not committed yet"
        if event.add is not None and not self.is_caught_up(event.add):
            return f"{event.add} is not caught up"
        voters = state.membership.with_change(event.add, event.remove)
        if voters in ((), state.voters):
            return "that would change nothing, or leave nobody"
        if event.remove is not None and not could_commit(voters, self.is_caught_up):
            return "of those that are left too few are in step to commit it"
        return None

    def is_caught_up(self, replica: ReplicaId) -> bool:
        """It has what is committed, and had everything a moment ago. One that had it and is dead would be a voter that
        the next commit waits for."""
        state, progress = self._state, self._followers.get(replica)
        if progress is None or progress.stored_in(state.epoch) < state.high_watermark:
            return replica == state.id
        return progress.caught_up_ms > state.now_ms - state.settings.fetch_timeout_ms
