"""What a shell asks of a broker that has no others."""

from __future__ import annotations

from zurau.ids import BrokerId, PartitionId
from zurau.partition.outbox import Alone
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Fetched

PARTITION = PartitionId(bytes(16), 0)


def test_who_is_alone_holds_nothing_back():
    assert not Alone().holds_back(BrokerId(2), PARTITION, Fetched(ReplicaId(BrokerId(1), "a"), 1, 1, 0))
