"""What a client may do, as the bits that Kafka's tools print. Everyone may do everything: there are no ACLs yet."""

from __future__ import annotations

from zurau.broker.authorization import Operation

_ON_BOTH = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_TOPIC = sum(1 << bit for bit in (*_ON_BOTH, Operation.READ, Operation.WRITE, Operation.DELETE))
ON_CLUSTER = sum(1 << bit for bit in (*_ON_BOTH, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE))
