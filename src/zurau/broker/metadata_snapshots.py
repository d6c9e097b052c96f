"""Keeps the metadata log short: now and then the image is written down, and the log behind it goes.

A snapshot costs as much as the image is large, so one is taken when as many records have been committed as the last one
had: a record costs the same however large the cluster is, and a start never reads much more than what is true.
"""

from __future__ import annotations

import logging

from zurau.broker.cluster_view import ClusterView
from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.machines.controller.records import encode_record
from zurau.machines.controller.snapshot import freeze
from zurau.partition import snapshots
from zurau.partition.partition import Partition
from zurau.partition.snapshots import Snapshot, SnapshotId
from zurau.pending import Pending
from zurau.ports import World

log = logging.getLogger("zurau.snapshots")

#: Fewer records than these are read in no time.
RECORDS_MIN = 1000


class MetadataSnapshots:
    """Invariant: the log begins at or before the older of the two snapshots that are kept."""

    def __init__(self, world: World, metadata: Partition, view: ClusterView, last: Snapshot) -> None:
        self._world = world
        self._metadata = metadata
        self._view = view
        self._last_offset = last.offset
        self._last_count = len(last.records)
        self._is_writing = False

    def take_if_due(self) -> None:
        image, offset = self._view.image, self._view.next_offset
        if self._is_writing or offset - self._last_offset < max(RECORDS_MIN, self._last_count):
            return
        self._is_writing = True
        self._last_offset, self._last_count = offset, len(image.topics) + len(image.brokers)
        disk, directory = self._world.disk, self._metadata.log.directory
        snapshot = SnapshotId(offset, self._metadata.log.epochs.epoch_of(offset - 1))
        records = freeze(image)
        written = self._world.workers.run(
            lambda: snapshots.write(disk, directory, snapshot, map(encode_record, records()))
        )
        written.then(self._written)

    def _written(self, outcome: Pending[Offset]) -> None:
        self._is_writing = False
        try:
            self._metadata.log.advance_start(outcome.result())
        except DiskFault as fault:
            log.warning("no snapshot of the metadata this time, the log stays as long as it is: %s", fault)
