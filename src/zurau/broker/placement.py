"""Opens, tunes and removes the partitions that the cluster image puts on this broker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from zurau.broker.identity import Identity
from zurau.errors import DiskFault, Refused
from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition, id_bytes, id_text
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.machines.controller.image import TopicImage
from zurau.partition.judging import Judges
from zurau.partition.opening import (
    holds_partition,
    producers_snapshot,
    read_topic_id,
    restore_producers,
    write_topic_id,
)
from zurau.partition.partition import Partition
from zurau.pending import Pending, done
from zurau.ports import World
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.placement")

DELETED = "-delete"
STRAY = "-stray"
#: Of a directory's name when it is renamed. File systems take 255 in all.
KEPT_CHARACTERS = 200


class Placement:
    """The partitions of this process, by name."""

    def __init__(self, world: World, identity: Identity, *, clean: bool) -> None:
        self._world = world
        self._identity = identity
        #: Whether the last run stopped in good order, so that logs need no recovery.
        self._clean = clean
        self._judges = Judges(world.workers)
        self.partitions: dict[TopicPartition, Partition] = {}

    def open(self, name: TopicPartition, topic_id: TopicId, settings: LogSettings) -> Partition:
        """Open a partition, making it if it is new."""
        disk = self._world.disk
        directory = str(name)
        stored_id = read_topic_id(disk, directory)
        if stored_id not in (None, topic_id):
            self._put_aside(directory, stored_id or NO_TOPIC_ID)
            stored_id = None
        opened = Log.open(disk, directory, settings, now_ms=self._world.clock.now_ms(), clean=self._clean)
        if stored_id is None:
            # After the log, to which an empty directory says that it is new: nothing to recover, nothing to flush.
            write_topic_id(disk, directory, topic_id)
        partition = self.partitions[name] = Partition(
            name,
            topic_id,
            opened,
            broker_id=self._identity.broker_id,
            replicas=[self._identity.broker_id],
            producers=restore_producers(disk, opened),
            clock=self._world.clock,
            flusher=self._world.flusher,
            judges=self._judges,
        )
        return partition

    def open_topic(self, topic: TopicImage, settings: LogSettings) -> None:
        """Open those partitions of a topic that are placed here and not open yet."""
        for image in topic.partitions:
            name = TopicPartition(topic.name, image.index)
            if self._identity.broker_id in image.replicas and name not in self.partitions:
                try:
                    self.open(name, topic.topic_id, settings)
                except DiskFault as fault:
                    # The others can be served all the same; this one answers with a storage error.
                    log.error("%s stays closed: %s", name, fault)  # noqa: TRY400 - the message says it all

    def tune(self, topic: TopicImage, settings: LogSettings) -> None:
        """Give a topic's partitions changed settings."""
        for partition in self._of(topic):
            partition.settings_changed(settings)

    def remove_topic(self, topic: TopicImage, committed: Pending[None]) -> None:
        """Close a deleted topic's partitions, and remove their data once the deletion is committed.

        Their directories get other names at once, so that a topic of the same name can be created.
        """
        for partition in list(self._of(topic)):
            del self.partitions[partition.name]
            partition.close(_topic_is_gone)
            partition.log.close(clean=False)  # a flush may be under way in its thread; nobody needs it any more
            self._delete(str(partition.name), topic.topic_id, committed)

    def undo_deletions(self, topics: Mapping[TopicId, TopicImage]) -> None:
        """Give the directories of topics their names back, if the deletion was lost in a crash before it counted."""
        disk = self._world.disk
        for directory in disk.list_directory(""):
            if directory.endswith(DELETED):
                partition, _, topic_id = directory.removesuffix(DELETED).rpartition(".")
                topic = topics.get(_topic_id_in(topic_id))
                if topic is not None:
                    name = f"{topic.name}-{partition.rpartition('-')[2]}"
                    if disk.exists(name):  # of a topic that was created after the deletion, and is lost with it
                        self._put_aside(name, read_topic_id(disk, name) or NO_TOPIC_ID)
                    disk.rename(directory, name)

    def close(self) -> bool:
        """Leave every partition so that the next start is quick. Blocks: the last thing a broker does.

        Returns whether all could be left so.
        """
        closed_well = [self._close(partition) for partition in self.partitions.values()]
        self._judges.close(_broker_stops)
        return all(closed_well)

    def _close(self, partition: Partition) -> bool:
        partition.close(_broker_stops)
        try:
            producers_snapshot(self._world.disk, partition.log, partition.producers)()
            partition.log.close()
        except DiskFault as fault:
            log.warning("%s has to be checked at the next start: %s", partition.name, fault)
            return False
        return not partition.is_broken

    def sort_out_directories(self, deleted: Iterable[TopicId], placed: Iterable[TopicPartition]) -> None:
        """Finish deletions that a crash cut short, and put aside what no topic of the cluster explains.

        `placed`: what belongs here, whether it could be opened or not.
        """
        deleted = set(deleted)
        known = {str(name) for name in (*self.partitions, *placed)}
        for directory in self._world.disk.list_directory(""):
            if directory.endswith(DELETED):
                self._remove(directory)
            elif (
                directory not in known
                and not directory.endswith(STRAY)
                and holds_partition(self._world.disk, directory)
            ):
                topic_id = read_topic_id(self._world.disk, directory)
                if topic_id is not None and topic_id in deleted:
                    self._delete(directory, topic_id, done(None))
                else:
                    self._put_aside(directory, topic_id or NO_TOPIC_ID)

    def _of(self, topic: TopicImage) -> Iterable[Partition]:
        for image in topic.partitions:
            partition = self.partitions.get(TopicPartition(topic.name, image.index))
            if partition is not None:
                yield partition

    def _delete(self, directory: str, topic_id: TopicId, committed: Pending[None]) -> None:
        doomed = _renamed(directory, topic_id, DELETED)
        try:
            self._world.disk.rename(directory, doomed)
            # Before a topic of the same name is created: after a crash its directory must not be the old one.
            self._world.disk.flush_directory("")
        except DiskFault as fault:
            log.warning("the data in %s is left to the next start, though its topic is deleted: %s", directory, fault)
            return
        committed.then(lambda outcome: self._remove_if(outcome, doomed))

    def _remove_if(self, committed: Pending[None], directory: str) -> None:
        try:
            committed.result()
        except Refused:
            return  # the next start tells whether the topic is deleted
        self._remove(directory)

    def _remove(self, directory: str) -> None:
        self._world.workers.run(lambda: self._world.disk.remove_tree(directory))

    def _put_aside(self, directory: str, topic_id: TopicId) -> None:
        disk = self._world.disk
        aside, count = _renamed(directory, topic_id, STRAY), 1
        while disk.exists(aside):
            count += 1
            aside = _renamed(directory, topic_id, f"-{count}{STRAY}")
        log.warning("no topic explains the data in %s: kept as %s; remove it if it is of no use", directory, aside)
        disk.rename(directory, aside)


def _renamed(directory: str, topic_id: TopicId, suffix: str) -> str:
    """Another name for a partition's directory. A long one loses its beginning, or file systems would not take it."""
    return f"{directory[-KEPT_CHARACTERS:]}.{id_text(topic_id)}{suffix}"


def _topic_id_in(text: str) -> TopicId:
    try:
        return TopicId(id_bytes(text))
    except ValueError:
        return NO_TOPIC_ID


def _topic_is_gone() -> Refused:
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")


def _broker_stops() -> Refused:
    return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker is stopping")
