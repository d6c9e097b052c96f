"""The records that another broker sends are the ones that it read.

A frame's checksum covers what is said of its records, not the records: those are covered by the checksums of their
batches, except for offset and epoch, which are stamped later. So each batch is held against both. What was damaged on
the way must not be stored as if a leader had written it.
"""

from __future__ import annotations

from zurau.errors import CorruptData, ProtocolViolation
from zurau.records.batch import MAGIC, check_crc, iter_batches
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import Fetched
from zurau.replica.session.messages import SessionRequest, SessionResponse


def check_records(said: SessionRequest | SessionResponse) -> None:
    """Raises `ProtocolViolation` if a batch is not whole, or not the one that it is said to be."""
    for partition, message in said.messages:
        if isinstance(message, Fetched) and message.batches:
            for run in message.batches:
                if not _is_sound(run):
                    raise ProtocolViolation(f"records of {partition} were damaged on their way: {run}")


def _is_sound(run: Batch) -> bool:
    """A run has batches of one epoch, from its first offset to its last; compaction may have left gaps."""
    begin = end = run.base_offset
    try:
        for header, batch in iter_batches(run.data):
            is_in_place = header.base_offset == begin if end == begin else header.base_offset >= end
            is_as_said = is_in_place and header.leader_epoch == run.epoch and header.magic == MAGIC
            if not is_as_said or not check_crc(batch, header):
                return False
            end = header.next_offset
    except CorruptData:
        return False
    return end == run.next_offset
