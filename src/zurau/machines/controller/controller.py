"""The controller as a machine: commands in, records and replies out, and an image of all that was decided so far."""

from __future__ import annotations

from typing import Generic, TypeVar

from zurau.errors import Refused
from zurau.machines.controller.brokers import register_broker
from zurau.machines.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    ControllerCommand,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    RegisterBroker,
    ReplaceConfigs,
)
from zurau.machines.controller.config_rules import ConfigRules
from zurau.machines.controller.configs import alter_configs, replace_configs
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.producer_ids import allocate_producer_ids
from zurau.machines.controller.records import decode_record, encode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.controller.topics import TopicDefaults, create_partitions, create_topic, delete_topic
from zurau.machines.machine import Decision, StateRecord, Ticket

S = TypeVar("S")


class Controller(Generic[S]):
    """Implements `Machine[ControllerCommand]`.

    `topic_defaults` (of type `S`) are the settings of a log that this broker was started with. The image is ahead of
    what is committed: only decisions may look at it.
    """

    def __init__(self, topics: TopicDefaults, topic_defaults: S) -> None:
        self.image = ClusterImage()
        self.rules = ConfigRules(topic_defaults)
        self._topics = topics

    def decide(self, ticket: Ticket, command: ControllerCommand, now_ms: int) -> Decision:  # noqa: ARG002 - nothing here is timed
        try:
            decided = self._decide(command)
        except Refused as refused:
            return Decision(replies=[(ticket, refused)])
        records = [] if decided.record is None else [encode_record(decided.record)]
        return Decision(records, [(ticket, decided.reply)])

    def _decide(self, command: ControllerCommand) -> Decided:
        match command:
            case CreateTopic():
                return create_topic(self.image, self.rules, self._topics, command)
            case DeleteTopic():
                return delete_topic(self.image, command)
            case CreatePartitions():
                return create_partitions(self.image, command)
            case AlterConfigs():
                return alter_configs(self.image, self.rules, command)
            case ReplaceConfigs():
                return replace_configs(self.image, self.rules, command)
            case AllocateProducerIds():
                return allocate_producer_ids(self.image, command)
            case RegisterBroker():
                return register_broker(self.image, command)

    def apply(self, record: StateRecord) -> None:
        apply_record(self.image, decode_record(record))

    def loaded(self, now_ms: int) -> None:
        """Nothing here depends on time."""

    def next_deadline_ms(self) -> int | None:
        return None

    def time_passed(self, now_ms: int) -> Decision:  # noqa: ARG002 - nothing here is timed
        return Decision()
