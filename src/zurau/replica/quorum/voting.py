"""Whether to vote for somebody. The same in every role.

A vote goes to a log that is at least as far as one's own, once in an epoch, and is durable before it is said. It is
given to whoever asks, known as a voter or not: the one who asks may have heard of a change of voters earlier. But it is
given only when the request names this very replica, because whoever had this broker's id before may have voted
already.
"""

from __future__ import annotations

from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Message, Vote, VoteAnswer
from zurau.replica.core.state import ReplicaState


def answer_vote(state: ReplicaState, vote: Vote, *, hears_leader: bool) -> bool:
    """Answer a request for a vote; the epoch is adopted already. True when a real vote was given."""
    if vote.voter != state.id:
        return False
    granted = would_vote(state, vote) and (not hears_leader if vote.is_pre else may_vote(state, vote))
    if granted and not vote.is_pre and state.voted_for is None:
        state.save_vote(state.epoch, vote.sender)
    leader = state.leader if hears_leader else None
    state.send(vote.sender.broker, VoteAnswer(state.id, state.epoch, granted, vote.is_pre, leader))
    return granted and not vote.is_pre


def vote_in_new_epoch(state: ReplicaState, message: Message) -> ReplicaId | None:
    """Whom to vote for in the epoch of a message that is the first of it to be heard here."""
    wins = isinstance(message, Vote) and message.voter == state.id and would_vote(state, message)
    return message.sender if wins else None


def would_vote(state: ReplicaState, vote: Vote) -> bool:
    return vote.epoch >= state.epoch and vote.position >= state.log.position


def may_vote(state: ReplicaState, vote: Vote) -> bool:
    """The vote of this epoch is not given to another, and nobody has won it."""
    return state.leader is None and state.voted_for in (None, vote.sender)
