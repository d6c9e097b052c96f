"""One replica in quorum mode: replicas elect their leader, and a majority of voters commits."""

from __future__ import annotations

from collections.abc import Callable

from zurau.ids import BrokerId, Epoch, Offset
from zurau.ports import Randomness
from zurau.replica.core.effects import RoleChanged
from zurau.replica.core.events import (
    BrokersKnown,
    Event,
    RecordsWritten,
    ShutdownAsked,
    TransferAsked,
    VoterChangeAsked,
)
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership, Voters
from zurau.replica.core.messages import Fetch, Fetched, HighWatermark, Message, Vote, VoteAnswer, leader_named_by
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import TRANSITIONS, Cause, Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.core.state import ReplicaState
from zurau.replica.quorum.election import Candidate, Prospective
from zurau.replica.quorum.leader import Leader
from zurau.replica.quorum.majority import majority
from zurau.replica.quorum.voting import answer_vote, vote_in_new_epoch

AnyRole = Follower | Prospective | Candidate | Leader
ROLES: dict[Role, Callable[[ReplicaState], AnyRole]] = {
    Role.FOLLOWER: Follower,
    Role.PROSPECTIVE: Prospective,
    Role.CANDIDATE: Candidate,
    Role.LEADER: Leader,
}
_FETCH_ID_BOUND = 1 << 48
#: What nearly every message is, to a role that hears it.
_USUAL: dict[type[Message], type[AnyRole]] = {Fetch: Leader, Fetched: Follower, HighWatermark: Follower}


class Replica(ReplicaCore):
    """Starts as a follower without a leader, whatever it was before: a leader that restarts leads no more."""

    def __init__(
        self,
        replica_id: ReplicaId,
        *,
        brokers: tuple[BrokerId, ...],
        log: LogView,
        membership: Membership,
        epoch: Epoch,
        voted_for: ReplicaId | None,
        high_watermark: Offset,
        settings: ReplicaSettings,
        randomness: Randomness,
        stands_first: bool = False,
    ) -> None:
        """`stands_first`: nobody has led yet, and of all it should."""
        self._stands_first = stands_first
        super().__init__(
            ReplicaState(
                replica_id,
                brokers,
                log,
                membership,
                settings,
                randomness,
                max(epoch, log.epochs.last),
                voted_for,
                high_watermark=high_watermark,
                last_fetch_id=randomness.below(_FETCH_ID_BOUND),
            )
        )

    # What may be asked of it

    @property
    def voters(self) -> Voters:
        return self._state.voters

    def is_caught_up(self, replica: ReplicaId) -> bool:
        """As its leader knows: it could be made a voter."""
        return isinstance(self._role, Leader) and self._role.is_caught_up(replica)

    @property
    def counted(self) -> tuple[ReplicaId, ...]:
        return self._state.voters

    @property
    def in_step(self) -> tuple[ReplicaId, ...]:
        return tuple(each for each in self.followers if self.is_caught_up(each))

    @property
    def acknowledging(self) -> int:
        """A majority; and where more are asked for, as many as keep up."""
        decisive = majority(len(self._state.voters))
        if self._state.settings.in_sync_min <= decisive:
            return decisive
        return max(decisive, sum(map(self.is_caught_up, self._state.voters)))

    @property
    def replicated_offset(self) -> Offset:
        role = self._role
        return role.replicated_offset if isinstance(role, Leader) else self.high_watermark

    def refusal(self, *, acks_all: bool) -> str | None:  # noqa: ARG002 - a majority decides, whoever waits for it
        role = self._role
        return role.refusal if isinstance(role, Leader) else "this replica does not lead"

    # What it is told

    def _begin(self) -> None:
        cause = self._enter(Role.FOLLOWER)
        self._move(Cause.LEADER_SILENT if self._stands_first and self._state.may_stand else cause)

    def _handle_own(self, event: Event) -> Cause | None:
        role = self._role
        if type(event) is BrokersKnown:
            self._state.brokers = event.brokers
            return None
        if type(role) is not Leader:
            self._refuse(event)
            return None
        if type(event) is RecordsWritten:
            return role.written(event)
        match event:
            case VoterChangeAsked():
                return role.change_voters(event)
            case TransferAsked():
                return role.transfer(event)
            case ShutdownAsked():
                return role.resign()
        return None

    def _receive(self, message: Message) -> Cause | None:
        state, role = self._state, self._role
        assert role is not None
        is_usual = message.epoch == state.epoch and type(role) is _USUAL.get(type(message))
        if is_usual and state.leader in (message.sender, state.id):
            return role.receive(message)
        is_pre_vote = isinstance(message, Vote) and message.is_pre
        if message.epoch > state.epoch and not is_pre_vote:
            # Whom to vote for is decided with it: one write to the disk, not two.
            state.save_vote(message.epoch, vote_in_new_epoch(state, message))
            self._move(Cause.HIGHER_EPOCH)
        if isinstance(message, Vote):
            self._answer_vote(message)
            return None
        if isinstance(message, Fetch) and not isinstance(self._role, Leader):
            is_disconnected = isinstance(self._role, Follower) and self._role.is_disconnected
            state.refuse_fetch(message.sender.broker, message.fetch_id, hears_leader=not is_disconnected)
            return None
        if message.epoch < state.epoch and not _may_be_older(message):
            return None
        leader = leader_named_by(message)
        if leader is not None and state.leader is None and message.epoch == state.epoch and leader != state.id:
            state.leader = leader
            self._move(Cause.LEADER_FOUND)
        assert self._role is not None
        return self._role.receive(message)

    def _answer_vote(self, vote: Vote) -> None:
        role = self._role
        if answer_vote(self._state, vote, hears_leader=self.hears_leader) and isinstance(role, Follower):
            role.vote_granted()

    # Roles

    def _move(self, cause: Cause | None) -> None:
        while cause is not None:
            cause = self._enter(TRANSITIONS[self.role, cause])

    def _enter(self, role: Role) -> Cause | None:
        state = self._state
        if self.role is Role.LEADER and state.leader == state.id:
            state.leader = None
        self._role = ROLES[role](state)
        cause = self._role.enter()
        state.effects.append(RoleChanged(role, state.epoch, state.leader))
        return cause


def _may_be_older(message: Message) -> bool:
    """A fetch is answered with the epoch that is; a voter may say what it would do without having come so far."""
    return isinstance(message, Fetch) or (isinstance(message, VoteAnswer) and message.is_pre)
