"""Standing for election, in two rounds that differ only in what a vote costs.

A *prospective* asks who would vote for it, in the epoch that it is in: nothing is promised and nobody is disturbed, so
a replica that was cut off does not depose a leader that the others hear. A *candidate* opens a new epoch,
votes for itself, and asks in earnest. Either round ends with a majority or, after some chance, with another first
round.
"""

from __future__ import annotations

from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Message, Vote, VoteAnswer
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.state import ReplicaState
from zurau.replica.quorum.majority import majority


class _Round:
    role: Role
    is_pre: bool
    won: Cause

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._answers: dict[ReplicaId, bool] = {state.id: True}
        self._over_ms = state.randomized_deadline(state.settings.election_timeout_ms)
        self._ask_again_ms = 0
        #: Soon at first: others may not have opened a new partition yet, or not have heard that a leader is gone.
        self._retry_ms = max(1, state.settings.retry_ms // 8)

    def enter(self) -> Cause | None:
        self._ask()
        return self._count()

    @property
    def deadline_ms(self) -> int:
        return min(self._over_ms, self._ask_again_ms)

    def time_passed(self) -> Cause | None:
        if self._state.now_ms >= self._over_ms:
            return Cause.ROUND_OVER
        if self._state.now_ms >= self._ask_again_ms:
            self._ask()
        return None

    def flushed(self) -> Cause | None:
        return None

    def receive(self, message: Message) -> Cause | None:
        if isinstance(message, VoteAnswer) and message.is_pre == self.is_pre:
            self._answers[message.sender] = message.is_granted
            return self._count()
        return None

    def _ask(self) -> None:
        state = self._state
        self._ask_again_ms = state.now_ms + self._retry_ms
        self._retry_ms = min(2 * self._retry_ms, state.settings.retry_ms)
        for voter in state.other_voters:
            # Who would not vote now because it hears a leader may hear it no more in a moment.
            if voter not in self._answers or (self.is_pre and not self._answers[voter]):
                state.send(voter.broker, Vote(state.id, state.epoch, voter, state.log.position, self.is_pre))

    def _count(self) -> Cause | None:
        voters = self._state.voters
        granted = sum(self._answers.get(voter, False) for voter in voters)
        return self.won if granted >= majority(len(voters)) else None


class Prospective(_Round):
    role = Role.PROSPECTIVE
    is_pre = True
    won = Cause.PRE_VOTES_WON

    def enter(self) -> Cause | None:
        state = self._state
        state.leader = None
        random_peer = state.random_peer()
        if random_peer is not None:
            # One that is in a later epoch than the leader's must say so to the leader, or neither would follow.
            state.ask(random_peer)
        return super().enter()


class Candidate(_Round):
    role = Role.CANDIDATE
    is_pre = False
    won = Cause.VOTES_WON

    def enter(self) -> Cause | None:
        state = self._state
        state.save_vote(state.epoch + 1, state.id)
        return super().enter()
