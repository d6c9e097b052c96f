"""The cluster as far as it is committed: what a broker believes, shows to clients and acts upon.

The controller decides ahead of what is committed, on an image of its own. Everybody else, on the controller's broker
too, follows the metadata log up to its high watermark. So no client sees a topic, and no directory is made for it,
while a crash could still take it back.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.machines.controller.changes import Change
from zurau.machines.controller.differences import differences
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import decode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.machine import StateRecord
from zurau.partition.partition import Partition
from zurau.partition.replay import Replay
from zurau.partition.snapshots import Snapshot


class ClusterView:
    """Follows the metadata log. Invariant: `image` is what its records below `next_offset` make of an empty one."""

    def __init__(self, metadata: Partition) -> None:
        self.image = ClusterImage()
        self._metadata = metadata
        self._replay = Replay(metadata, self._apply)
        self._changes: list[Change] = []

    @property
    def gaps(self) -> list[tuple[Offset, Offset]]:
        """Stretches of offsets that a repair of the log has given up."""
        return self._replay.gaps

    @property
    def next_offset(self) -> Offset:
        return self._replay.next_offset

    def load(self, snapshot: Snapshot) -> list[Change]:
        """Begin with a snapshot and what is committed by now."""
        self._replay.restore(snapshot)
        return self.catch_up()

    def jump(self, snapshot: Snapshot) -> list[Change]:
        """Go on with a snapshot that is ahead; returns what that changed."""
        before = self.image
        self.image = ClusterImage()
        self._replay = Replay(self._metadata, self._apply)
        self._replay.restore(snapshot)
        self._changes = []
        return differences(before, self.image)

    def catch_up(self) -> list[Change]:
        """Apply what was committed since; returns what that changed."""
        self._replay.catch_up(self._metadata.high_watermark)
        changes, self._changes = self._changes, []
        return changes

    def _apply(self, record: StateRecord, offset: Offset) -> None:
        metadata = decode_record(record)
        change = None if metadata is None else apply_record(self.image, metadata, offset)
        if change is not None:
            self._changes.append(change)
