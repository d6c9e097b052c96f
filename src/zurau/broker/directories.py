"""The directories of a broker: one for each partition, some that are to be removed, and what else lies there.

Data that no topic explains is put aside under another name, never removed. What is not a partition's is left alone,
and what cannot be read stops nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from zurau.broker.outcomes import log_failure
from zurau.errors import DiskFault
from zurau.ids import NO_TOPIC_ID, TopicId, id_bytes, id_text
from zurau.machines.controller.image import TopicImage
from zurau.partition.opening import holds_partition, read_topic_id
from zurau.pending import Pending
from zurau.ports import Disk, World

log = logging.getLogger("zurau.placement")

DELETED = "-delete"
#: Of replicas that were moved to other brokers. Their topics are still there, which undoes no such deletion.
MOVED = f"-moved{DELETED}"
STRAY = "-stray"
#: Of a directory's name when it is renamed. File systems take 255 in all.
KEPT_CHARACTERS = 200


class Directories:
    def __init__(self, world: World) -> None:
        self._disk = world.disk
        self._background = world.background
        #: To be removed by the next piece of work.
        self._doomed: list[str] = []
        self._is_removing = False

    def undo_deletions(self, topics: Mapping[TopicId, TopicImage]) -> None:
        """Give the directories of topics their names back, if the deletion was lost in a crash before it counted."""
        for directory in self._disk.list_directory(""):
            if directory.endswith(DELETED):
                partition, _, topic_id = directory.removesuffix(DELETED).rpartition(".")
                topic = topics.get(_topic_id_in(topic_id))
                if topic is not None:
                    name = f"{topic.name}-{partition.rpartition('-')[2]}"
                    if self._disk.exists(name):  # of a topic that was created after the deletion, and is lost with it
                        self.put_aside(name, read_topic_id(self._disk, name) or NO_TOPIC_ID)
                    self._disk.rename(directory, name)

    def sort_out(self, deleted: Iterable[TopicId], known: Collection[str]) -> None:
        """Finish deletions that a crash cut short, and put aside what no topic of the cluster explains."""
        deleted = set(deleted)
        self._remove(name for name in self._disk.list_directory("") if name.endswith(DELETED))
        for directory in self.unexplained(known):
            try:
                topic_id = read_topic_id(self._disk, directory)
                if topic_id is not None and topic_id in deleted:
                    self.delete([directory], topic_id)
                else:
                    self.put_aside(directory, topic_id or NO_TOPIC_ID)
            except DiskFault as fault:
                log.warning("no topic explains the data in %s, and it cannot be put aside: %s", directory, fault)

    def unexplained(self, known: Collection[str]) -> list[str]:
        """Partitions' directories that are not among those known."""
        return [
            name for name in partition_directories(self._disk, besides=known) if not name.endswith((DELETED, STRAY))
        ]

    def delete(self, directories: Iterable[str], topic_id: TopicId, suffix: str = DELETED) -> None:
        """Take a topic's directories out of the way at once, and remove them in the background."""
        doomed = []
        try:
            for directory in directories:
                renamed = _renamed(directory, topic_id, suffix)
                self._disk.rename(directory, renamed)
                doomed.append(renamed)
        except DiskFault as fault:
            log.warning("the data of deleted topic %s is left to the next start: %s", id_text(topic_id), fault)
        self._remove(doomed)

    def _remove(self, directories: Iterable[str]) -> None:
        """In one thread, however many there are: others have work for the background too."""
        self._doomed += directories
        if self._doomed and not self._is_removing:
            self._is_removing = True
            doomed, self._doomed = self._doomed, []
            self._background.run(partial(self._remove_now, doomed)).then(self._removed)

    def _removed(self, outcome: Pending[None]) -> None:
        log_failure("what is left of deleted topics is left to the next start")(outcome)
        self._is_removing = False
        self._remove(())

    def _remove_now(self, doomed: list[str]) -> None:
        # First their new names: a part of a partition must not come back under its old one.
        self._disk.flush_directory("")
        for directory in doomed:
            try:
                self._disk.remove_tree(directory)
            except DiskFault as fault:
                log.warning("%s could not be removed and is left to the next start: %s", directory, fault)

    def put_aside(self, directory: str, topic_id: TopicId) -> None:
        aside, count = _renamed(directory, topic_id, STRAY), 1
        while self._disk.exists(aside):
            count += 1
            aside = _renamed(directory, topic_id, f"-{count}{STRAY}")
        log.warning("no topic explains the data in %s: kept as %s; remove it if it is of no use", directory, aside)
        self._disk.rename(directory, aside)


def partition_directories(disk: Disk, besides: Collection[str] = ()) -> Iterator[str]:
    """Directories that hold a partition's files, whatever they are called; one look into each that is asked for."""
    for name in disk.list_directory(""):
        if name not in besides and holds_partition(disk, name):
            yield name


def _renamed(directory: str, topic_id: TopicId, suffix: str) -> str:
    """Another name for a partition's directory. A long one loses its beginning, or file systems would not take it."""
    return f"{directory[-KEPT_CHARACTERS:]}.{id_text(topic_id)}{suffix}"


def _topic_id_in(text: str) -> TopicId:
    try:
        return TopicId(id_bytes(text))
    except ValueError:
        return NO_TOPIC_ID
