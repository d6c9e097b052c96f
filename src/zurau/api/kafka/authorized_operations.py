"""What a client may do, as the bits that Kafka's tools print. Everyone may do everything: there are no ACLs yet."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """Kafka's numbers of the operations on topics and on the cluster."""

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


_ON_BOTH = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_TOPIC = sum(1 << bit for bit in (*_ON_BOTH, Operation.READ, Operation.WRITE, Operation.DELETE))
ON_CLUSTER = sum(1 << bit for bit in (*_ON_BOTH, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE))
