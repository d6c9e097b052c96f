"""A leader that was voted for: it writes its mark, answers fetches, and counts.

The high watermark is the offset that a majority of voters has stored, itself among them for what it has flushed and no
more; a voter counts from when it holds this leader's mark. A leader that sees no majority move on resigns: it may be
the last to hear that there is another.
"""

from __future__ import annotations

from zurau.replica.effects import Refuse
from zurau.replica.events import RecordsOffered, TransferAsked, VoterChangeAsked
from zurau.replica.identity import ReplicaId
from zurau.replica.membership import Voters
from zurau.replica.messages import BeginEpoch, EndEpoch, Fetch, Message
from zurau.replica.progress import Progress
from zurau.replica.quorum import committed_offset, majority
from zurau.replica.roles import Cause, Role
from zurau.replica.serving import Serving
from zurau.replica.settings import NEVER_MS
from zurau.replica.state import ReplicaState


class Leader(Serving):
    role = Role.LEADER

    def __init__(self, state: ReplicaState) -> None:
        super().__init__(state)
        self._followers = {voter: Progress(state.now_ms) for voter in state.other_voters}
        self._own_moved_ms = state.now_ms
        self._begin_again_ms = state.now_ms
        self._successor: ReplicaId | None = None
        self._hand_over_until_ms = 0

    def enter(self) -> Cause | None:
        self.lead()
        self._announce()
        return None

    # Time

    @property
    def deadline_ms(self) -> int:
        is_at_rest = all(progress.is_at_rest for progress in self._followers.values())
        look_ms = NEVER_MS if is_at_rest else self._begin_again_ms
        return min([look_ms, self._quorum_lost_ms(), *self.parked_until_ms()])

    def time_passed(self) -> Cause | None:
        state = self._state
        if state.now_ms >= self._quorum_lost_ms():
            return Cause.QUORUM_LOST
        self.answer_overdue()
        if state.now_ms >= self._begin_again_ms:
            self._announce()
            self.forget_silent(state.voters)
        if self._successor is not None and state.now_ms >= self._hand_over_until_ms:
            self._successor = None
        return None

    def _quorum_lost_ms(self) -> int:
        """When this leader has to resign unless somebody moves on. A disk that is stuck counts against itself."""
        state = self._state
        moved = [self._followers[voter].moved_ms for voter in state.other_voters]
        if state.is_voter:
            moved.append(NEVER_MS if state.log.is_flushed else self._own_moved_ms)
        return min(NEVER_MS, sorted(moved, reverse=True)[majority(len(moved)) - 1] + state.settings.check_quorum_ms)

    def _announce(self) -> None:
        """Tell the voters that have not come yet: one that does not ask cannot be answered."""
        state = self._state
        absent = [voter for voter in state.other_voters if not self._followers[voter].has_fetched]
        self._begin_again_ms = state.now_ms + (state.settings.retry_ms if absent else state.settings.forget_ms)
        for voter in absent:
            state.send(voter.broker, BeginEpoch(state.id, state.epoch))

    # What comes in

    def write(self, data: bytes, count: int, voters: Voters | None = None) -> None:
        if self._state.log.is_flushed:
            self._own_moved_ms = self._state.now_ms  # its disk had nothing to do until now
        super().write(data, count, voters)

    def offered(self, event: RecordsOffered) -> None:
        if self._successor is not None:
            self._state.effects.append(Refuse("leadership is being handed over"))
        else:
            self.write(event.data, event.count)

    def flushed(self) -> Cause | None:
        self._own_moved_ms = self._state.now_ms
        return self._count()

    def receive(self, message: Message) -> Cause | None:
        if not isinstance(message, Fetch):
            return None
        if message.epoch < self._state.epoch:
            self._state.refuse_fetch(message.sender.broker, message.fetch_id)
            return None
        if self.answer_fetch(message) is None:
            return None
        cause = self._count() or self._maybe_hand_over()
        self.tell_news()
        return cause

    def _count(self) -> Cause | None:
        state = self._state
        offset = committed_offset([self.stored_by(voter) for voter in state.voters])
        if offset < 0:
            return None
        moved = state.raise_high_watermark(offset)
        self.establish()
        if moved:
            self.tell_news()
        voted_out = not state.is_voter and state.membership.is_settled(state.high_watermark)
        return self.resign() if voted_out else None

    # Others in the lead

    def transfer(self, event: TransferAsked) -> Cause | None:
        state = self._state
        if event.to not in state.other_voters:
            state.effects.append(Refuse(f"{event.to} is no other voter"))
            return None
        self._successor = event.to
        self._hand_over_until_ms = state.now_ms + state.settings.fetch_timeout_ms
        return self._maybe_hand_over()

    def _maybe_hand_over(self) -> Cause | None:
        """Resign as soon as the successor has everything: it could not win before."""
        if self._successor is None or self._followers[self._successor].position != self._state.log.position:
            return None
        return self.resign()

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
        self.write(b"", 1, state.membership.with_change(event.add, event.remove))
        return None

    def _reason_against(self, event: VoterChangeAsked) -> str | None:
        state = self._state
        if not self.is_established:
            return "nothing of this epoch is committed yet"
        if not state.membership.is_settled(state.high_watermark):
            return "the last change of voters is not committed yet"
        if event.add is not None and not self.is_caught_up(event.add):
            return f"{event.add} is not caught up"
        if state.membership.with_change(event.add, event.remove) in ((), state.voters):
            return "that would change nothing, or leave nobody"
        return None

    def is_caught_up(self, replica: ReplicaId) -> bool:
        """It has what is committed, and had everything a moment ago. One that had it and is dead would be a voter that
        the next commit waits for."""
        state, progress = self._state, self._followers.get(replica)
        if progress is None or progress.stored_in(state.epoch) < state.high_watermark:
            return replica == state.id
        return progress.caught_up_ms > state.now_ms - state.settings.fetch_timeout_ms
