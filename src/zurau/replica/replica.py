"""One replica of a partition: told what happened, it says what follows.

    effects = replica.step(event, now_ms)

A core: the same events at the same times, with the same chance, give the same effects. Carry the effects out in their
order (effects.py says what has to be durable when), and come back with `TimePassed` when `deadline_ms` has come.
"""

from __future__ import annotations

from collections.abc import Callable

from zurau.ids import BrokerId, Epoch, Offset
from zurau.ports import Randomness
from zurau.replica.candidate import Candidate, Prospective
from zurau.replica.effects import Announce, Effect, Refuse
from zurau.replica.events import (
    AnswerStands,
    Event,
    FetchProgressed,
    FetchStands,
    Flushed,
    LogStartMoved,
    Received,
    RecordsOffered,
    ShutdownAsked,
    SnapshotProgressed,
    SnapshotStored,
    StoodUntil,
    TimePassed,
    TransferAsked,
    VoterChangeAsked,
)
from zurau.replica.facts import ReplicaFacts
from zurau.replica.follower import Follower
from zurau.replica.identity import ReplicaId
from zurau.replica.leader import Leader
from zurau.replica.log_view import LogView
from zurau.replica.membership import Membership, Voters
from zurau.replica.messages import Fetch, Message, Vote, VoteAnswer, leader_named_by
from zurau.replica.roles import TRANSITIONS, Cause, Role
from zurau.replica.settings import ReplicaSettings
from zurau.replica.silence import note_silence
from zurau.replica.state import ReplicaState
from zurau.replica.voting import answer_vote, vote_in_new_epoch

AnyRole = Follower | Prospective | Candidate | Leader
ROLES: dict[Role, Callable[[ReplicaState], AnyRole]] = {
    Role.FOLLOWER: Follower,
    Role.PROSPECTIVE: Prospective,
    Role.CANDIDATE: Candidate,
    Role.LEADER: Leader,
}
_FETCH_ID_BOUND = 1 << 48


class Replica(ReplicaFacts):
    """Starts as a follower without a leader, whatever it was before: a leader that restarts has lost its reign."""

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
    ) -> None:
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
        self._role: AnyRole | None = None

    # What may be asked of it

    @property
    def role(self) -> Role:
        return self._role.role if self._role is not None else Role.FOLLOWER

    @property
    def voters(self) -> Voters:
        return self._state.voters

    @property
    def hears_leader(self) -> bool:
        """It leads, or follows somebody that has answered."""
        role = self._role
        follows = isinstance(role, Follower) and role.has_fetched and self._state.leader is not None
        return isinstance(role, Leader) or follows

    @property
    def is_established(self) -> bool:
        """It leads, and knows the true high watermark: before that, an end offset told to a client might go back."""
        return isinstance(self._role, Leader) and self._role.is_established

    def is_caught_up(self, replica: ReplicaId) -> bool:
        """As its leader knows: it could be made a voter."""
        return isinstance(self._role, Leader) and self._role.is_caught_up(replica)

    @property
    def low_watermark(self) -> Offset | None:
        """What is below this is deleted on every replica that the leader knows; None when it does not lead."""
        return self._role.low_watermark if isinstance(self._role, Leader) else None

    @property
    def rests_on(self) -> tuple[ReplicaId, ...]:
        """Whose silence it takes for a sign of life."""
        return self._role.rests_on if isinstance(self._role, Follower | Leader) else ()

    @property
    def deadline_ms(self) -> int:
        return self._role.deadline_ms if self._role is not None else 0

    # What it is told

    def step(self, event: Event, now_ms: int) -> tuple[Effect, ...]:
        self._begin_step(now_ms)
        if self._role is None:
            self._move(self._enter(Role.FOLLOWER))
        # Time first: one that was stopped for a while must not act on a reign that is over.
        self._move(self._current.time_passed())
        if not isinstance(event, TimePassed):
            self._move(self._handle(event))
        self._is_in_step = False
        return tuple(self._state.effects)

    @property
    def _current(self) -> AnyRole:
        assert self._role is not None
        return self._role

    def _handle(self, event: Event) -> Cause | None:
        state, role = self._state, self._current
        match event:
            case Received(message):
                return self._receive(message)
            case FetchStands(fetch):
                note_silence(role, event)
                return self._receive(fetch)
            case AnswerStands() | StoodUntil():
                note_silence(role, event)
            case FetchProgressed():
                if isinstance(role, Follower):
                    role.fetch_progressed()
            case Flushed(number):
                state.log.flush_done(number)
                state.flush()
                return role.flushed()
            case LogStartMoved(offset):
                state.start_moved(offset)
                if isinstance(role, Leader):
                    role.tell_news()
            case SnapshotProgressed(loaded):
                state.snapshot_progressed(loaded)
            case SnapshotStored(point):
                if not isinstance(role, Leader):
                    state.install_snapshot(point)
                if isinstance(role, Follower):
                    role.snapshot_stored()
            case _ if isinstance(role, Leader):
                return self._lead(role, event)
            case ShutdownAsked():
                pass
            case _:
                state.effects.append(Refuse("this replica does not lead"))
        return None

    @staticmethod
    def _lead(role: Leader, event: Event) -> Cause | None:
        match event:
            case RecordsOffered():
                role.offered(event)
            case VoterChangeAsked():
                return role.change_voters(event)
            case TransferAsked():
                return role.transfer(event)
            case _:  # shut down
                return role.resign()
        return None

    def _receive(self, message: Message) -> Cause | None:
        state = self._state
        is_pre_vote = isinstance(message, Vote) and message.is_pre
        if message.epoch > state.epoch and not is_pre_vote:
            # Whom to vote for is decided with it: one write to the disk, not two.
            state.save_vote(message.epoch, vote_in_new_epoch(state, message))
            self._move(Cause.HIGHER_EPOCH)
        if isinstance(message, Vote):
            self._answer_vote(message)
            return None
        if isinstance(message, Fetch) and not isinstance(self._role, Leader):
            state.refuse_fetch(message.sender.broker, message.fetch_id)
            return None
        if message.epoch < state.epoch and not _may_be_older(message):
            return None
        leader = leader_named_by(message)
        if leader is not None and state.leader is None and message.epoch == state.epoch and leader != state.id:
            state.leader = leader
            self._move(Cause.LEADER_FOUND)
        return self._current.receive(message)

    def _answer_vote(self, vote: Vote) -> None:
        role = self._current
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
        state.effects.append(Announce(role, state.epoch, state.leader))
        return cause


def _may_be_older(message: Message) -> bool:
    """A fetch is answered with the epoch that is; a voter may say what it would do without having come so far."""
    return isinstance(message, Fetch) or (isinstance(message, VoteAnswer) and message.is_pre)
