"""One replica of a partition in in-sync mode: the same events, effects and fetches as in quorum mode, and no votes.

The controller's word comes as `PartitionChanged`; a leader's wishes go to it as `AskController`. Nobody learns of an
epoch from a message here: one that is of another epoch is refused, and its sender asks again when it knows better.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.ports import Randomness
from zurau.replica.effects import Announce, Effect, Refuse
from zurau.replica.events import (
    AnswerStands,
    BrokerRegistered,
    Event,
    FetchProgressed,
    FetchStands,
    Flushed,
    LogStartMoved,
    PartitionChanged,
    Received,
    RecordsOffered,
    ShutdownAsked,
    SnapshotProgressed,
    SnapshotStored,
    StoodUntil,
    TimePassed,
)
from zurau.replica.facts import ReplicaFacts
from zurau.replica.identity import ReplicaId
from zurau.replica.in_sync import Assignment, InSyncFollower, InSyncLeader
from zurau.replica.log_view import LogView
from zurau.replica.membership import Membership
from zurau.replica.messages import Fetch, Message
from zurau.replica.partition_state import PartitionState
from zurau.replica.roles import Cause, Role
from zurau.replica.settings import ReplicaSettings
from zurau.replica.silence import note_silence
from zurau.replica.state import ReplicaState

_UNASSIGNED = PartitionState(leader=None, leader_epoch=-1, in_sync=(), partition_epoch=-1)
_FETCH_ID_BOUND = 1 << 48


class InSyncReplica(ReplicaFacts):
    def __init__(
        self,
        replica_id: ReplicaId,
        *,
        log: LogView,
        high_watermark: Offset,
        settings: ReplicaSettings,
        randomness: Randomness,
    ) -> None:
        super().__init__(
            ReplicaState(
                replica_id,
                (),
                log,
                Membership(()),
                settings,
                randomness,
                epoch=-1,
                high_watermark=high_watermark,
                last_fetch_id=randomness.below(_FETCH_ID_BOUND),
            )
        )
        self._assignment = Assignment(_UNASSIGNED)
        self._role: InSyncFollower | InSyncLeader = InSyncFollower(self._state)

    # What may be asked of it

    @property
    def role(self) -> Role:
        return self._role.role

    @property
    def assignment(self) -> PartitionState:
        return self._assignment.state

    @property
    def has_lost_its_reign(self) -> bool:
        """The controller's word is that it leads, and it does not: it led in that epoch and has forgotten it. A broker
        says of such a replica that it does not work, or the controller would never know to choose anew."""
        return self._assignment.state.leader == self._state.id and self.role is not Role.LEADER

    @property
    def maximal_in_sync(self) -> tuple[ReplicaId, ...]:
        """Whom a leader commits by; nobody's business when it does not lead."""
        return self._role.maximal if isinstance(self._role, InSyncLeader) else ()

    @property
    def is_established(self) -> bool:
        return isinstance(self._role, InSyncLeader) and self._role.is_established

    @property
    def low_watermark(self) -> Offset | None:
        """What is below this is deleted on every replica that the leader knows; None when it does not lead."""
        return self._role.low_watermark if isinstance(self._role, InSyncLeader) else None

    @property
    def rests_on(self) -> tuple[ReplicaId, ...]:
        """Whose silence it takes for a sign of life."""
        return self._role.rests_on

    @property
    def deadline_ms(self) -> int:
        return self._role.deadline_ms

    # What it is told

    def step(self, event: Event, now_ms: int) -> tuple[Effect, ...]:
        self._begin_step(now_ms)
        self._role.time_passed()
        if not isinstance(event, TimePassed):
            self._handle(event)
        self._is_in_step = False
        return tuple(self._state.effects)

    def _handle(self, event: Event) -> Cause | None:
        state, role = self._state, self._role
        match event:
            case Received(message):
                return self._receive(message)
            case FetchStands(fetch):
                note_silence(role, event)
                return self._receive(fetch)
            case AnswerStands() | StoodUntil():
                note_silence(role, event)
            case FetchProgressed():
                if isinstance(role, InSyncFollower):
                    role.fetch_progressed()
            case Flushed(number):
                state.log.flush_done(number)
                state.flush()
                return role.flushed()
            case PartitionChanged(partition, broker_epoch):
                if broker_epoch == state.broker_epoch and broker_epoch >= 0:
                    self._partition_changed(partition)
            case BrokerRegistered(broker_epoch):
                self._assignment.broker_epoch = state.broker_epoch = broker_epoch
                if isinstance(role, InSyncFollower):
                    role.registered()
            case LogStartMoved(offset):
                state.start_moved(offset)
                if isinstance(role, InSyncLeader):
                    role.tell_news()
            case SnapshotProgressed(loaded):
                state.snapshot_progressed(loaded)
            case SnapshotStored(point) if isinstance(role, InSyncFollower):
                state.install_snapshot(point)
                role.snapshot_stored()
            case RecordsOffered() if isinstance(role, InSyncLeader):
                role.offered(event)
            case ShutdownAsked() | SnapshotStored():
                pass
            case _:
                state.effects.append(Refuse("this replica does not lead"))
        return None

    def _receive(self, message: Message) -> Cause | None:
        state, role = self._state, self._role
        if isinstance(message, Fetch) and not isinstance(role, InSyncLeader):
            state.refuse_fetch(message.sender.broker, message.fetch_id)
        elif isinstance(message, Fetch) or message.epoch == state.epoch:
            return role.receive(message)
        return None

    def _partition_changed(self, partition: PartitionState) -> None:
        state, known = self._state, self._assignment.state
        if partition.partition_epoch <= known.partition_epoch:
            return  # said late, or twice
        self._assignment.state = partition
        if partition.leader_epoch > known.leader_epoch:
            # The mark of this epoch is in the log already: it led, and has lost its reign with its memory.
            is_over = partition.leader == state.id and partition.leader_epoch <= state.log.epochs.last
            state.epoch, state.leader = partition.leader_epoch, None if is_over else partition.leader
            leads = state.leader == state.id
            self._role = InSyncLeader(state, self._assignment) if leads else InSyncFollower(state)
            self._role.enter()
            state.effects.append(Announce(self._role.role, state.epoch, state.leader))
        elif isinstance(self._role, InSyncLeader):
            self._role.in_sync_changed()
