"""The controller as a machine: commands in, records and replies out, and an image of all that was decided so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol

from zurau.errors import Refused
from zurau.ids import Offset
from zurau.machines.controller.brokers import (
    active_brokers,
    broker_heartbeat,
    fence_silent,
    register_broker,
    rename_replica,
    reserve_broker_id,
    unregister_broker,
)
from zurau.machines.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    BrokerDisconnected,
    BrokerHeartbeat,
    CatchUp,
    ControllerCommand,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectLeader,
    FinishReassignment,
    ReassignPartition,
    RegisterBroker,
    RenameReplica,
    ReplaceConfigs,
    ReserveBrokerId,
    UnregisterBroker,
    UpdateFeatures,
)
from zurau.machines.controller.config_rules import ConfigRules, S
from zurau.machines.controller.configs import alter_configs, replace_configs
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.features import update_features
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.in_sync import Drafts, alter_partition, elect_leader, rebalance
from zurau.machines.controller.producer_ids import allocate_producer_ids
from zurau.machines.controller.reassignment import finish_reassignment, reassign_partition
from zurau.machines.controller.records import MetadataRecord, decode_record, encode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.controller.sessions import BrokerSessions
from zurau.machines.controller.topics import TopicDefaults, create_partitions, create_topic, delete_topic
from zurau.machines.machine import NOTHING, Decision, RequestId, StateRecord

BrokerCommand = (
    BrokerHeartbeat | BrokerDisconnected | RegisterBroker | ReserveBrokerId | RenameReplica | UnregisterBroker
)


class ControllerSettings(TopicDefaults, Protocol):
    @property
    def broker_session_timeout_ms(self) -> int: ...

    @property
    def auto_leader_rebalance_enable(self) -> bool: ...

    @property
    def leader_imbalance_check_interval_s(self) -> int: ...


class Controller(Generic[S]):
    """Implements `Machine[ControllerCommand]`.

    `topic_defaults` (of type `S`) are the settings of a log that this broker was started with. The image is ahead of
    what is committed: only decisions may look at it.
    """

    def __init__(self, settings: ControllerSettings, topic_defaults: S) -> None:
        self.image = ClusterImage()
        self.rules = ConfigRules(topic_defaults)
        self._settings = settings
        self._sessions = BrokerSessions(settings.broker_session_timeout_ms)
        self._last_offset: Offset = -1
        #: When to look next whether leaders are where they should be; None: before anybody is there.
        self._rebalance_ms: int | None = None

    def decide(self, request_id: RequestId, command: ControllerCommand, now_ms: int) -> Decision:
        try:
            decided = self._decide(command, now_ms)
        except Refused as refused:
            return Decision(replies=[(request_id, refused)])
        return Decision([encode_record(record) for record in decided.records], [(request_id, decided.reply)])

    def _decide(self, command: ControllerCommand, now_ms: int) -> Decided:
        image, rules = self.image, self.rules
        match command:
            case AlterPartition() | ElectLeader() | ReassignPartition() | FinishReassignment():
                return self._decide_on_partition(command)
            case CreateTopic():
                return create_topic(image, rules, self._settings, self._drafts(), command)
            case DeleteTopic():
                return delete_topic(image, command)
            case CreatePartitions():
                return create_partitions(image, self._drafts(), command)
            case AlterConfigs():
                return alter_configs(image, rules, command)
            case ReplaceConfigs():
                return replace_configs(image, rules, command)
            case CatchUp():
                return Decided()
            case AllocateProducerIds():
                return allocate_producer_ids(image, command)
            case UpdateFeatures():
                return update_features(image, command)
            case _:
                return self._decide_of_brokers(command, now_ms)

    def _decide_of_brokers(self, command: BrokerCommand, now_ms: int) -> Decided:
        image, rules, sessions = self.image, self.rules, self._sessions
        match command:
            case BrokerHeartbeat():
                return broker_heartbeat(image, sessions, command, now_ms, self._last_offset)
            case BrokerDisconnected():
                sessions.disconnected(command.broker_id, now_ms - command.since_ms)
                return Decided()
            case RegisterBroker():
                return register_broker(image, rules, sessions, command, now_ms)
            case ReserveBrokerId():
                return reserve_broker_id(image, sessions, command, now_ms)
            case UnregisterBroker():
                return unregister_broker(image, command)
            case RenameReplica():
                return rename_replica(image, sessions, command)

    def _decide_on_partition(
        self, command: AlterPartition | ElectLeader | ReassignPartition | FinishReassignment
    ) -> Decided:
        image, drafts = self.image, self._drafts()
        match command:
            case AlterPartition():
                return alter_partition(image, drafts, command)
            case ElectLeader():
                return elect_leader(image, drafts, command)
            case ReassignPartition():
                return reassign_partition(image, drafts, command)
            case FinishReassignment():
                return finish_reassignment(image, drafts, command)

    def _drafts(self) -> Drafts:
        return Drafts(self.image, self._sessions, active_brokers(self.image))

    def apply(self, record: StateRecord, offset: Offset) -> None:
        self._last_offset = offset
        known = decode_record(record)
        if known is not None:
            apply_record(self.image, known, offset)

    def loaded(self, now_ms: int) -> Decision:
        """Everybody who was there is given a whole session to be heard of."""
        for broker in self.image.brokers:
            self._sessions.begin(broker, now_ms)
        self._rebalance_later(now_ms)
        return NOTHING

    def next_deadline_ms(self) -> int | None:
        deadlines = (self._sessions.next_deadline_ms(self.image), self._rebalance_ms)
        return min((each for each in deadlines if each is not None), default=None)

    def time_passed(self, now_ms: int) -> Decision:
        """One thing at a time: what is decided later has to know what was."""
        records: Sequence[MetadataRecord] = fence_silent(self.image, self._sessions, now_ms)
        if not records and self._rebalance_ms is not None and self._rebalance_ms <= now_ms:
            records = rebalance(self.image, self._drafts())
            self._rebalance_later(now_ms)
        return Decision([encode_record(record) for record in records])

    def _rebalance_later(self, now_ms: int) -> None:
        if self._settings.auto_leader_rebalance_enable:
            self._rebalance_ms = now_ms + self._settings.leader_imbalance_check_interval_s * 1000
