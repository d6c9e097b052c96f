"""Planted bugs that show when a disk changes what it holds."""

from __future__ import annotations

from typing import Any

from planted import held, in_a_quorum

from zurau.errors import DiskFault
from zurau.log import segment as segment_module
from zurau.log.log import Log
from zurau.partition.partition import Partition
from zurau.ports import Buffer
from zurau.records import batch as batch_module


def _nothing_is_wrong(*_: Any) -> None:
    return None


def _only_checksums(batches: Buffer, *_: Any) -> int | None:
    position = 0
    for header, batch in batch_module.iter_batches(batches):
        if not batch_module.check_crc(batch, header):
            return position
        position += header.length
    return None


def _leads_however_broken(self: Partition) -> None:
    if not self.leads:
        raise DiskFault("not led here")


def _nothing(*_: Any) -> None:
    pass


DAMAGE_MUTATIONS = (
    in_a_quorum(
        "what the disk changed is served", 60, (segment_module, "first_wrong", _nothing_is_wrong), only=("BitFlip",)
    ),
    held(
        "an offset that the disk changed is served",
        "unit/log/test_cold_reads.py::test_a_changed_offset_is_found_though_no_checksum_covers_it",
        (segment_module, "first_wrong", _only_checksums),
    ),
    held(
        "a leader that is broken leads on",
        "unit/broker/test_brokers_together.py::test_a_leader_that_is_broken_is_none_where_others_can_lead",
        (Partition, "require_leadership", _leads_however_broken),
    ),
    held(
        "damage that stopped a replica is forgotten",
        "unit/partition/test_closing.py::test_damage_of_one_that_is_broken_is_known_after_a_restart",
        (Log, "note_damage", _nothing),
    ),
)
