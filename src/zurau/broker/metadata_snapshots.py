"""Keeps the metadata log short: now and then the image is written down, and the log behind it goes.

Each broker does so by itself. Who follows the log and has fallen behind its start is sent the snapshot that stands
there (`snapshot_transfer.py`).

A snapshot costs as much as the image is large, so one is taken when as many records have been committed as the last one
had: a record costs the same however large the cluster is, and a start never reads much more than what is true.
"""

from __future__ import annotations

import logging
from functools import partial

from zurau.broker.cluster_view import ClusterView
from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.machines.controller.records import encode_record
from zurau.machines.controller.snapshot import freeze
from zurau.partition import snapshots
from zurau.partition.partition import Partition
from zurau.partition.snapshots import Snapshot, SnapshotId
from zurau.pending import Pending, start
from zurau.ports import World

log = logging.getLogger("zurau.snapshots")

#: Fewer records than these are read in no time.
RECORDS_MIN = 1000


class MetadataSnapshots:
    """Invariant: the log begins at or before the older of the two snapshots that are kept."""

    def __init__(self, world: World, metadata: Partition, view: ClusterView) -> None:
        self._world = world
        self._metadata = metadata
        self._view = view
        self._last_offset = self._last_count = 0
        self._is_writing = False

    def begin(self, last: Snapshot) -> None:
        """This is the snapshot that the view began with."""
        self._last_offset, self._last_count = last.offset, len(last.records)

    def take_if_due(self) -> None:
        image, offset = self._view.image, self._view.next_offset
        if self._is_writing or offset - self._last_offset < max(RECORDS_MIN, self._last_count):
            return
        self._is_writing = True
        self._last_offset, self._last_count = offset, len(image.topics) + len(image.brokers)
        disk, directory = self._world.disk, self._metadata.log.directory
        snapshot = SnapshotId(offset, self._metadata.log.epochs.epoch_of(offset - 1))
        records = freeze(image)
        written = self._world.background.run(
            lambda: snapshots.write(disk, directory, snapshot, map(encode_record, records()))
        )
        start(self._trim_behind(written))

    async def _trim_behind(self, written: Pending[Offset]) -> None:
        disk, directory = self._world.disk, self._metadata.log.directory
        try:
            upto = await written
            if upto <= self._metadata.safe_high_watermark:
                await self._metadata.move_start(upto)
                start_offset = self._metadata.log.start_offset
                await self._world.background.run(partial(snapshots.remove_old, disk, directory, start_offset))
        except DiskFault as fault:
            log.warning("no snapshot of the metadata this time, the log stays as long as it is: %s", fault)
        finally:
            self._is_writing = False
