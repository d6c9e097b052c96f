"""Who may do what: the words for it, and the one place that decides.

A permission is an operation on a kind of resource. Every front end declares which ones each of its questions needs, as
data (Kafka's: `api/kafka/handlers.py`), and asks here; nobody else decides.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from zurau.broker.caller import Caller


class Operation(IntEnum):
    """What can be done, with Kafka's numbers."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(IntEnum):
    """To what it can be done, with Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


#: What the one resource of type `CLUSTER` is called.
CLUSTER_NAME = "kafka-cluster"


class Permission(NamedTuple):
    operation: Operation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource_type.name}"


def authorize(caller: Caller, permission: Permission, resource: str | None) -> None:
    """Raises `Refused` where a caller may not. Everyone may do everything: there are no rules yet.

    `resource` is its name; None where only the handler knows which ones are meant, and asks again for each.
    """
