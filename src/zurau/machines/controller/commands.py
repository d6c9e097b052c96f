"""What may be asked of the controller, and what it answers.

| command               | reply                                                     |
|-----------------------|-----------------------------------------------------------|
| `RegisterBroker`      | None                                                      |
| `CreateTopic`         | `TopicImage`: the topic as it is, or (validate_only) would be |
| `DeleteTopic`         | None                                                      |
| `CreatePartitions`    | None                                                      |
| `AlterConfigs`        | None                                                      |
| `ReplaceConfigs`      | None                                                      |
| `AllocateProducerIds` | `range` of ids that nobody else has or will get           |

or a `Refused`. With `validate_only` everything is checked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from zurau.ids import BrokerId, TopicId
from zurau.machines.machine import Value


class ResourceType(IntEnum):
    """What has settings, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """Kafka's numbers. Append and subtract are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class RegisterBroker(Value):
    broker_id: BrokerId
    directory_id: bytes
    incarnation_id: bytes


class CreateTopic(Value):
    """Ask for counts, or for an assignment of broker ids to each partition index; then both counts are -1."""

    name: str
    #: Drawn at random by whoever asks: a machine draws nothing.
    topic_id: TopicId
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}
    validate_only: bool = False
    #: The broker itself asks, for one of its internal topics.
    by_broker: bool = False


class DeleteTopic(Value):
    topic_id: TopicId


class CreatePartitions(Value):
    name: str
    #: How many there will be in all.
    partition_count: int
    #: Broker ids for each new partition, in order; None lets the controller place them.
    assignments: Sequence[Sequence[int]] | None = None
    validate_only: bool = False


class ConfigEdit(Value):
    name: str
    operation: int
    value: str | None = None


class AlterConfigs(Value):
    """Change some settings of a resource; all of the edits or none."""

    resource_type: int
    resource_name: str
    edits: Sequence[ConfigEdit]
    validate_only: bool = False


class ReplaceConfigs(Value):
    """Set these and take every other setting of the resource back to its default."""

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]
    validate_only: bool = False


class AllocateProducerIds(Value):
    count: int


ControllerCommand = (
    RegisterBroker | CreateTopic | DeleteTopic | CreatePartitions | AlterConfigs | ReplaceConfigs | AllocateProducerIds
)
