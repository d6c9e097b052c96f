"""Leader epochs as clients use them: to notice that they, or we, are behind (KIP-101, KIP-320)."""

from __future__ import annotations

from zurau.epochs import NO_EPOCH
from zurau.errors import Refused
from zurau.ids import Epoch, Offset
from zurau.log.epochs import end_offset_for
from zurau.partition.partition import Partition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import EpochEndOffset


def check_leader_epoch(clients_epoch: Epoch, partition: Partition) -> None:
    """Refuse a client that believes in another leader epoch than ours."""
    if clients_epoch in (NO_EPOCH, partition.leader_epoch):
        return
    if clients_epoch < partition.leader_epoch:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH, f"{partition.name} is led in epoch {partition.leader_epoch}")
    raise Refused(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{partition.name} has not reached epoch {clients_epoch} here")


def find_divergence(last_fetched_epoch: Epoch, fetch_offset: Offset, partition: Partition) -> EpochEndOffset | None:
    """Where a reader's history parts from ours, if it does: it must go back to there."""
    if last_fetched_epoch == NO_EPOCH:
        return None
    epoch, end_offset = end_offset_for(partition.log.epochs, last_fetched_epoch, partition.log.end_offset)
    if epoch == last_fetched_epoch and fetch_offset <= end_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)
