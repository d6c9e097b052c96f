"""The cluster as far as it is committed: what a broker believes, shows to clients and acts upon.

The controller decides ahead of what is committed, on an image of its own. Everybody else, on the controller's broker
too, follows the metadata log up to its high watermark. So no client sees a topic, and no directory is made for it,
while a crash could still take it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zurau.ids import Offset
from zurau.machines.controller.changes import Change
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import decode_record
from zurau.machines.controller.replay import apply_record
from zurau.partition.partition import Partition
from zurau.partition.replay import ReplayedBatch, replay, replay_log
from zurau.partition.snapshots import Snapshot


class ClusterView:
    """Follows the metadata log. Invariant: `image` is what its records below `next_offset` make of an empty one."""

    def __init__(self, metadata: Partition) -> None:
        self.image = ClusterImage()
        self.next_offset: Offset = metadata.log.start_offset
        self._metadata = metadata

    def load(self, snapshot: Snapshot) -> Iterator[Change]:
        """Begin with a snapshot and what is committed by now."""
        return self._apply(replay(self._metadata, snapshot, self._metadata.high_watermark))

    def catch_up(self) -> Iterator[Change]:
        """Apply what was committed since, and tell of each change once the image shows it."""
        return self._apply(replay_log(self._metadata, self.next_offset, self._metadata.high_watermark))

    def _apply(self, batches: Iterable[ReplayedBatch]) -> Iterator[Change]:
        for records, next_offset in batches:
            for record in records:
                change = apply_record(self.image, decode_record(record))
                if change is not None:
                    yield change
            self.next_offset = next_offset
