"""What a running broker knows from its log, and what it does about it.

Producers are known at the end of the log, because the next retry may be of what was written last; they are cut with it.
Metadata is applied when it is committed, and topics have folders. A folder is removed because a record says so; one
that the metadata does not name, after a snapshot or at a start, is put aside: the metadata may be the one that is
behind, or damaged.
"""

from __future__ import annotations

from zurau.ids import Offset
from zurau.partition.producers import Producers
from zurau.replica.core.items import Batch, Item
from zurau.simulation.cluster.snapshots import Image, command, has_producer, remember
from zurau.simulation.cluster.storage import ReplicaDisk


class Folders:
    """The data of topics, on disks of their own: they outlive the metadata's."""

    def __init__(self) -> None:
        self.kept: set[tuple[int, Offset]] = set()
        self.aside: set[tuple[int, Offset]] = set()
        self.removed: set[tuple[int, Offset]] = set()

    def reconcile(self, image: Image) -> None:
        """Everything that the metadata names has its place; what it does not name is put aside."""
        named = image.ids
        self.aside = (self.aside | self.kept) - named
        self.kept = set(named)

    def made(self, topic: tuple[int, Offset]) -> None:
        self.kept.add(topic)
        self.aside.discard(topic)

    def remove(self, topic: tuple[int, Offset]) -> None:
        if topic in self.kept or topic in self.aside:
            self.removed.add(topic)
        self.kept.discard(topic)
        self.aside.discard(topic)


class Memory:
    def __init__(self, disk: ReplicaDisk, folders: Folders, high_watermark: Offset) -> None:
        self._disk = disk
        self._folders = folders
        self.producers = Producers()
        self.image = Image()
        self.applied: Offset = 0
        self.begin(high_watermark)

    def begin(self, high_watermark: Offset) -> None:
        """From the snapshot, and what of the log is committed for sure."""
        snapshot = self._disk.snapshot
        self._remember_producers()
        self.image, self.applied = snapshot.image, self._disk.start_offset
        self._apply(high_watermark, lets_go=False)
        self._folders.reconcile(self.image)

    def appended(self, items: tuple[Item, ...]) -> None:
        remember(self.producers, (item for item in items if isinstance(item, Batch)))

    def cut(self) -> None:
        self._remember_producers()

    def committed(self, high_watermark: Offset) -> None:
        self._apply(high_watermark, lets_go=True)

    def _remember_producers(self) -> None:
        self.producers = Producers()
        self.producers.restore(self._disk.snapshot.producers)
        remember(self.producers, self._disk.seen.since(self._disk.start_offset))

    def _apply(self, high_watermark: Offset, *, lets_go: bool) -> None:
        if high_watermark <= self.applied:
            return
        for batch in self._disk.seen.since(self.applied):
            if batch.next_offset > high_watermark:
                break
            before, self.image = self.image, self.image.after(batch)
            self.applied = batch.next_offset
            if lets_go and has_producer(batch):
                self._let_go_or_make(batch, before)

    def _let_go_or_make(self, batch: Batch, before: Image) -> None:
        name, deletes = command(batch)
        if deletes and name in dict(before.topics):
            self._folders.remove((name, dict(before.topics)[name]))
        elif not deletes:
            self._folders.made((name, dict(self.image.topics)[name]))
