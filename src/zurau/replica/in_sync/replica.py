"""One replica of a partition in in-sync mode: the same events, effects and fetches as in quorum mode, and no votes.

The controller's word comes as `PartitionChanged`; a leader's wishes go to it as `AlterPartition`. Nobody learns of an
epoch from a message here: one that is of another epoch is refused, and its sender asks again when it knows better.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.ports import Randomness
from zurau.replica.core.effects import RoleChanged
from zurau.replica.core.events import BrokerRegistered, Event, PartitionChanged, RecordsWritten
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership
from zurau.replica.core.messages import Fetch, Message
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.core.state import ReplicaState
from zurau.replica.in_sync.roles import Assignment, InSyncFollower, InSyncLeader

_UNASSIGNED = PartitionState(leader=None, leader_epoch=-1, in_sync=(), partition_epoch=-1)
_FETCH_ID_BOUND = 1 << 48


class InSyncReplica(ReplicaCore):
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

    # What may be asked of it

    @property
    def assignment(self) -> PartitionState:
        return self._assignment.state

    @property
    def led_before_restart(self) -> bool:
        """The controller's word is that it leads, and it does not: it led in that epoch and has forgotten it. A broker
        says of such a replica that it does not work, or the controller would never know to choose anew."""
        return self._assignment.state.leader == self._state.id and self.role is not Role.LEADER

    @property
    def maximal_in_sync(self) -> tuple[ReplicaId, ...]:
        """Whom a leader commits by; nobody when it does not lead."""
        return self._role.maximal if isinstance(self._role, InSyncLeader) else ()

    @property
    def counted(self) -> tuple[ReplicaId, ...]:
        return self._assignment.state.in_sync

    @property
    def in_step(self) -> tuple[ReplicaId, ...]:
        return tuple(each for each in self._assignment.state.in_sync if each in self.followers)

    @property
    def acknowledging(self) -> int:
        return len(self._assignment.state.in_sync)

    def refusal(self, *, acks_all: bool) -> str | None:
        role = self._role
        return role.refusal(acks_all=acks_all) if isinstance(role, InSyncLeader) else "this replica does not lead"

    # What it is told

    def _begin(self) -> None:
        self._role = InSyncFollower(self._state)

    def _move(self, cause: Cause | None) -> None:
        """Only the controller's word makes another role."""

    def _handle_own(self, event: Event) -> Cause | None:
        state, role = self._state, self._role
        match event:
            case RecordsWritten() if isinstance(role, InSyncLeader):
                role.written(event)
            case PartitionChanged(partition, broker_epoch):
                if broker_epoch == state.broker_epoch and broker_epoch >= 0:
                    self._partition_changed(partition)
            case BrokerRegistered(broker_epoch):
                self._assignment.broker_epoch = state.broker_epoch = broker_epoch
                if isinstance(role, InSyncFollower):
                    role.registered()
            case _:
                self._refuse(event)
        return None

    def _receive(self, message: Message) -> Cause | None:
        state, role = self._state, self._role
        assert role is not None
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
            # The mark of this epoch is in the log already: it led, and was restarted.
            is_over = partition.leader == state.id and partition.leader_epoch <= state.log.epochs.last
            state.epoch, state.leader = partition.leader_epoch, None if is_over else partition.leader
            leads = state.leader == state.id
            self._role = InSyncLeader(state, self._assignment) if leads else InSyncFollower(state)
            self._role.enter()
            state.effects.append(RoleChanged(self._role.role, state.epoch, state.leader))
        if isinstance(self._role, InSyncLeader):
            # Behind the change of role: the only one in sync may be established at once.
            self._role.in_sync_changed()
