"""A leader writes its mark, answers fetches, and counts.

The high watermark is the offset that a majority of voters has stored, itself among them for what it has flushed and no
more; a voter counts from when it holds this leader's mark. A leader that sees no majority move on resigns: it may be
the last to hear that there is another.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.replica.effects import ReadAndSend, Refuse
from zurau.replica.events import RecordsOffered, TransferAsked, VoterChangeAsked
from zurau.replica.identity import ReplicaId
from zurau.replica.membership import Voters
from zurau.replica.messages import BeginEpoch, EndEpoch, Fetch, Fetched, Message, SnapshotPoint
from zurau.replica.position import Batch, EpochMark
from zurau.replica.progress import Progress
from zurau.replica.quorum import committed_offset, majority
from zurau.replica.roles import Cause, Role
from zurau.replica.state import ReplicaState


class Leader:
    role = Role.LEADER

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._followers: dict[ReplicaId, Progress] = {voter: Progress(state.now_ms) for voter in state.other_voters}
        self._own_moved_ms = state.now_ms
        self._begin_again_ms = state.now_ms
        self._successor: ReplicaId | None = None
        self._hand_over_until_ms = 0
        #: The mark is committed, and with it everything before it: only now the high watermark is not too low.
        self.is_established = False

    def enter(self) -> Cause | None:
        state = self._state
        state.leader = state.id
        state.append(EpochMark(state.epoch, state.log.end_offset))
        self._announce()
        return None

    # Time

    @property
    def deadline_ms(self) -> int:
        parked = [progress.parked[1] for progress in self._followers.values() if progress.parked is not None]
        return min([self._begin_again_ms, self._quorum_lost_ms(), *parked])

    def time_passed(self) -> Cause | None:
        state = self._state
        if state.now_ms >= self._quorum_lost_ms():
            return Cause.QUORUM_LOST
        for progress in self._followers.values():
            if progress.parked is not None and state.now_ms >= progress.parked[1]:
                self._answer(progress, progress.parked[0])
        if state.now_ms >= self._begin_again_ms:
            self._announce()
        if self._successor is not None and state.now_ms >= self._hand_over_until_ms:
            self._successor = None
        return None

    def _quorum_lost_ms(self) -> int:
        """When this leader has to resign unless somebody moves on."""
        moved = [self._followers[voter].moved_ms for voter in self._state.other_voters]
        if self._state.is_voter:
            moved.append(self._state.now_ms if self._state.log.is_flushed else self._own_moved_ms)
        return sorted(moved, reverse=True)[majority(len(moved)) - 1] + self._state.settings.check_quorum_ms

    def _announce(self) -> None:
        """Tell the voters that have not come yet; a follower that fetches somewhere else cannot be pulled."""
        state = self._state
        self._begin_again_ms = state.now_ms + state.settings.retry_ms
        for voter in state.other_voters:
            if not self._followers[voter].has_fetched:
                state.send(voter.broker, BeginEpoch(state.id, state.epoch))

    # Writing

    def offered(self, event: RecordsOffered) -> None:
        if self._successor is not None:
            self._state.effects.append(Refuse("leadership is being handed over"))
            return
        self._write(event.data, event.count)

    def _write(self, data: bytes, count: int, voters: Voters | None = None) -> None:
        state = self._state
        state.append(Batch(state.epoch, state.log.end_offset, count, data, voters))
        self._tell_news()

    def flushed(self) -> Cause | None:
        self._own_moved_ms = self._state.now_ms
        return self._count()

    # Answering

    def receive(self, message: Message) -> Cause | None:
        if not isinstance(message, Fetch):
            return None
        state = self._state
        if message.epoch < state.epoch:
            state.refuse_fetch(message.sender.broker, message.fetch_id)
            return None
        progress = self._followers.setdefault(message.sender, Progress(state.now_ms))
        answer = self._correction(message)
        if answer is not None:
            state.send(message.sender.broker, answer)
            return None
        progress.asked(message.position, state.log.position, state.now_ms)
        progress.parked = (message, state.now_ms + state.settings.fetch_wait_ms)
        cause = self._count() or self._maybe_hand_over()
        self._tell_news()
        return cause

    def _correction(self, fetch: Fetch) -> Fetched | None:
        """What to answer to a follower whose log is not a beginning of this one."""
        state = self._state
        diverging = state.log.where_diverging(fetch.position)
        first = state.log.epochs.marks[0]
        if state.log.start_offset > 0 and (
            fetch.position.offset < state.log.start_offset or fetch.position.epoch < first.epoch
        ):
            point = SnapshotPoint(EpochMark(first.epoch, state.log.start_offset), state.membership.first)
            return Fetched(state.id, state.epoch, fetch.fetch_id, state.high_watermark, snapshot=point)
        if diverging is not None:
            return Fetched(state.id, state.epoch, fetch.fetch_id, state.high_watermark, diverging=diverging)
        return None

    def _tell_news(self) -> None:
        """Answer the parked questions of followers for whom there is something new."""
        state = self._state
        for progress in self._followers.values():
            if progress.parked is None:
                continue
            fetch = progress.parked[0]
            if fetch.position != state.log.position or fetch.high_watermark < state.high_watermark:
                self._answer(progress, fetch)

    def _answer(self, progress: Progress, fetch: Fetch) -> None:
        state = self._state
        progress.parked = None
        marks = state.log.epochs.after(fetch.position.epoch)
        answer = Fetched(state.id, state.epoch, fetch.fetch_id, state.high_watermark, marks)
        state.effects.append(ReadAndSend(fetch.sender.broker, answer, fetch.position.offset, state.log.end_offset))

    # Counting

    def _count(self) -> Cause | None:
        state = self._state
        offset = committed_offset([self._stored(voter) for voter in state.voters])
        if offset < 0:
            return None
        self.is_established = True
        if state.raise_high_watermark(offset):
            self._tell_news()
        voted_out = not state.is_voter and state.membership.is_settled(state.high_watermark)
        return self.resign() if voted_out else None

    def _stored(self, voter: ReplicaId) -> Offset:
        state = self._state
        if voter != state.id:
            return self._followers[voter].stored_in(state.epoch)
        return state.stored.offset if state.stored.epoch == state.epoch else -1

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
        self._write(b"", 1, state.membership.with_change(event.add, event.remove))
        for voter in state.other_voters:
            self._followers.setdefault(voter, Progress(state.now_ms))
        return None

    def _reason_against(self, event: VoterChangeAsked) -> str | None:
        state = self._state
        if not self.is_established:
            return "nothing of this epoch is committed yet"
        if not state.membership.is_settled(state.high_watermark):
            return "the last change of voters is not committed yet"
        if event.add is not None and not self._is_caught_up(event.add):
            return f"{event.add} is not caught up"
        if state.membership.with_change(event.add, event.remove) in ((), state.voters):
            return "that would change nothing, or leave nobody"
        return None

    def _is_caught_up(self, learner: ReplicaId) -> bool:
        progress = self._followers.get(learner)
        return progress is not None and progress.stored_in(self._state.epoch) >= self._state.high_watermark
