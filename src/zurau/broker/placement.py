"""Opens, tunes and removes the partitions that the cluster image puts on this broker.

A partition that cannot be opened stays closed while the others are served: its clients get a storage error. It is
tried again from time to time, and when somebody asks for it, by a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from zurau.broker.directories import DELETED, MOVED, Directories
from zurau.broker.identity import Identity
from zurau.broker.lost_replicas import has_lost_something, new_name, others_have_metadata
from zurau.broker.outcomes import report
from zurau.broker.replication import Replication
from zurau.errors import CorruptData, DiskFault, Refused
from zurau.ids import BrokerId, Offset, ReplicaId, TopicId, TopicPartition
from zurau.journal.journal import Journal
from zurau.journal.records import LogId
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.machines.controller.names import METADATA_TOPIC
from zurau.partition.closing import close_together
from zurau.partition.opening import read_topic_id, restore_producers, write_topic_id
from zurau.partition.partition import Partition
from zurau.partition.producer_memory import ProducerMemory
from zurau.partition.producers import Producers
from zurau.partition.replicas import Replicas, make_replica
from zurau.partition.unpacking import Unpacking
from zurau.partition.validation import RecordValidator
from zurau.pending import Pending
from zurau.ports import Timer, World
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.placement")

#: How long to wait before a closed partition is tried again, at first; twice as long each time, and at most.
REOPEN_AFTER_MS = 1000
REOPEN_AFTER_MAX_MS = 60_000
#: Ids that differ in fewer bits are the same one, damaged: chance brings two so near once in 500 million times.
DAMAGED_BITS_MAX = 32
#: How many are tried at a time.
REOPEN_AT_A_TIME = 50


class OpenedFiles(msgspec.Struct, eq=False):
    """A log, and the producers that it tells of."""

    log: Log
    producers: Producers


class ClosedPartition(msgspec.Struct, eq=False):
    """One that could not be opened."""

    topic_id: TopicId
    settings: LogSettings
    replicas: Replicas
    fault: BaseException
    tried_at_ms: float
    tries: int = 1
    #: Its topic was deleted.
    is_deleted: bool = False

    @property
    def due_at_ms(self) -> float:
        return self.tried_at_ms + min(REOPEN_AFTER_MAX_MS, REOPEN_AFTER_MS << min(self.tries - 1, 16))


class Placement:
    """The partitions of this process, by name."""

    def __init__(
        self,
        world: World,
        identity: Identity,
        journal: Journal,
        *,
        clean: bool,
        opened_late: Callable[[Partition], None],
        replication: Replication,
        producers_bytes_max: int,
    ) -> None:
        self._world = world
        self._replication = replication
        self._identity = identity
        self._journal = journal
        #: Whether an older release, which kept no journal, says that it stopped in good order.
        self._clean = clean
        #: Called with a partition that could be opened after all.
        self._opened_late = opened_late
        self.directories = Directories(world)
        #: Shared with searches by time.
        self.unpacking = Unpacking(world.workers)
        self._validator = RecordValidator(self.unpacking)
        self.partitions: dict[TopicPartition, Partition] = {}
        self._producer_memory = ProducerMemory(
            producers_bytes_max, lambda: (partition.producers for partition in self.partitions.values())
        )
        self.closed: dict[TopicPartition, ClosedPartition] = {}
        #: Of logs that are not new: what was written before was not flushed, and a crash took it.
        self._topic_ids_written = 0
        #: Those that a worker is trying to open.
        self._opening: set[TopicPartition] = set()
        self._retry_timer: Timer | None = None

    # Opening

    def open_metadata(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        settings: LogSettings,
        *,
        others: tuple[BrokerId, ...],
        problems: Callable[[Log], list[str]],
    ) -> Partition:
        """Open the metadata log. Who founds a cluster votes alone at first; who joins it hears who votes. Blocks.

        `problems`: what is wrong with a log. Where others have the metadata it is fetched anew, by a replica of another
        name, which has promised nothing; or else this raises `CorruptData`.
        """
        log_id, identity = LogId(topic_id, name.partition), self._identity
        facts = self._journal.facts(log_id)
        me = ReplicaId(identity.broker_id, facts.directory or identity.directory_name)
        # Who has begun anew is not the one who founded the cluster.
        voters = (me,) if identity.is_founder and not facts.directory else ()
        replicas = Replicas(me, voters, others, has_company=identity.is_clustered, keeps_snapshots=True)
        files = self._open_files(name, topic_id, settings, replicas)
        if found := problems(files.log):
            if not others_have_metadata(identity, facts):
                raise CorruptData("; ".join(found))
            log.warning("the metadata log is damaged here (%s), and is fetched anew from the others", "; ".join(found))
            files.log.close(clean=False)
            opened = self._begin_anew(name, log_id, settings)
            write_topic_id(self._world.disk, str(name), topic_id)
            files, replicas = OpenedFiles(opened, Producers()), replace(replicas, voters=())
        return self._adopt(name, topic_id, replicas, files)

    def open_topic(self, topic: TopicImage, settings: LogSettings) -> list[Partition]:
        """Open those partitions of a topic that are placed here and not open yet, and start their replicas."""
        opened = []
        for image in topic.partitions:
            name = TopicPartition(topic.name, image.index)
            if self._identity.broker_id in image.replicas and name not in self.partitions and name not in self.closed:
                try:
                    if name in self._opening:  # of a topic that had this name before, and is deleted
                        raise DiskFault(f"{name} is still in use by a deleted topic")
                    replicas = self._replicas_of(topic, image)
                    files = self._open_files(name, topic.topic_id, settings, replicas)
                    opened.append(self._adopt(name, topic.topic_id, replicas, files))
                    opened[-1].start()
                except DiskFault as fault:
                    # The others can be served all the same; this one answers with a storage error.
                    log.error("%s stays closed, and is tried again: %s", name, fault)  # noqa: TRY400 - says it all
                    self.closed[name] = ClosedPartition(
                        topic.topic_id,
                        settings,
                        self._replicas_of(topic, image),
                        fault,
                        self._world.clock.monotonic_ms(),
                    )
                    self._retry_later()
        return opened

    def _open_files(
        self, name: TopicPartition, topic_id: TopicId, settings: LogSettings, replicas: Replicas
    ) -> OpenedFiles:
        """All of it that blocks; in the background, when it is tried again."""
        disk = self._world.disk
        directory = str(name)
        stored_id = read_topic_id(disk, directory)
        log_id = LogId(topic_id, name.partition)
        last_known = self._journal.last_known(log_id)
        if stored_id is not None and stored_id != topic_id:
            if _is_nearly(stored_id, topic_id):
                log.warning("the topic id in %s is damaged, and written again", directory)
            else:
                self.directories.put_aside(directory, stored_id)
            stored_id = None
        clean = self._clean or (last_known is not None and last_known.closed_offset is not None)
        now_ms = self._world.clock.now_ms()
        opened = Log.open(disk, directory, settings, now_ms=now_ms, clean=clean, last_known=last_known)
        if name.topic != METADATA_TOPIC and has_lost_something(opened, log_id, replicas, self._journal):
            opened.close(clean=False)
            opened, stored_id = self._begin_anew(name, log_id, settings), None
        if stored_id is None:
            self._topic_ids_written += opened.size_bytes > 0
            # After the log, to which an empty directory says that it is new: nothing to recover, nothing to flush.
            write_topic_id(disk, directory, topic_id)
        return OpenedFiles(opened, restore_producers(disk, opened, now_ms))

    def _begin_anew(self, name: TopicPartition, log_id: LogId, settings: LogSettings) -> Log:
        """What is left is put aside, and the replica begins with nothing, as somebody else."""
        directory, new = str(name), new_name(self._world.randomness)
        log.warning("%s has lost something that it had promised: it is fetched anew, as replica %s", directory, new)
        self.directories.put_aside(directory, log_id.topic_id)
        self._journal.begin_anew(log_id, new)
        return Log.open(self._world.disk, directory, settings, now_ms=self._world.clock.now_ms(), clean=True)

    def other_name(self, topic: TopicImage, image: PartitionImage) -> str:
        """What a replica here is called, if the image calls it something else."""
        me = image.replica_on(self._identity.broker_id)
        if me is None or not self.has(topic, image):
            return ""
        opened = self.partitions.get(TopicPartition(topic.name, image.index))
        facts = self._journal.facts(LogId(topic.topic_id, image.index))
        name = facts.directory if opened is None else opened.shell.core.id.directory
        return name if name != me.directory else ""

    def _replicas_of(self, topic: TopicImage, image: PartitionImage) -> Replicas:
        me = image.replica_on(self._identity.broker_id)
        assert me is not None, "only what is placed here is opened"
        others = tuple(replica.broker for replica in image.replica_ids if replica != me)
        founders = image.founders if me in image.founders else ()
        is_alone = topic.is_in_sync_mode and image.in_sync == (me,)
        return Replicas(me, founders, others, is_in_sync_mode=topic.is_in_sync_mode, is_alone_in_sync=is_alone)

    def _adopt(self, name: TopicPartition, topic_id: TopicId, replicas: Replicas, files: OpenedFiles) -> Partition:
        notes = self._journal.notes_of(LogId(topic_id, name.partition))
        if notes.facts.directory:
            replicas = replace(replicas, me=replicas.me._replace(directory=notes.facts.directory))
        partition = self.partitions[name] = Partition(
            name,
            topic_id,
            files.log,
            replica=make_replica(replicas, files.log, notes.facts, self._world.randomness),
            producers=files.producers,
            restore_producers=partial(restore_producers, self._world.disk, files.log, self._world.clock.now_ms()),
            world=self._world,
            notes=notes,
            outbox=self._replication,
            validator=self._validator,
        )
        files.producers.tell_of_new(self._producer_memory.added)
        self._replication.add(partition.shell)
        membership = partition.shell.core.membership
        if (replicas.others or replicas.has_company) and membership.history != notes.facts.voters:
            notes.save_voters(membership.history)
        return partition

    # Opening again

    def open_again(self, name: TopicPartition) -> None:
        """Somebody asks for a partition that is closed. Whether it can be opened turns out later."""
        closed = self.closed.get(name)
        if closed is not None and closed.tried_at_ms + REOPEN_AFTER_MS <= self._world.clock.monotonic_ms():
            self._try_again(name, closed)

    def _retry_later(self) -> None:
        if self._retry_timer is None:
            self._retry_timer = self._world.clock.call_later(REOPEN_AFTER_MS, self._retry_due)

    def _retry_due(self) -> None:
        self._retry_timer = None
        now_ms = self._world.clock.monotonic_ms()
        due = [(name, closed) for name, closed in self.closed.items() if closed.due_at_ms <= now_ms]
        for name, closed in due[:REOPEN_AT_A_TIME]:
            self._try_again(name, closed)
        if self.closed:
            self._retry_later()

    def _try_again(self, name: TopicPartition, closed: ClosedPartition) -> None:
        if name in self._opening:
            return
        self._opening.add(name)
        work = partial(self._open_files, name, closed.topic_id, closed.settings, closed.replicas)
        self._world.background.run(work).then(partial(self._tried_again, name, closed))

    def _tried_again(self, name: TopicPartition, closed: ClosedPartition, outcome: Pending[OpenedFiles]) -> None:
        self._opening.discard(name)
        failure = outcome.error
        if closed.is_deleted:
            if failure is None:
                outcome.result().log.close(clean=False)
            self.directories.delete([str(name)], closed.topic_id)
        elif failure is not None:
            closed.tries += 1
            closed.tried_at_ms = self._world.clock.monotonic_ms()
            if str(failure) != str(closed.fault):
                report(f"{name} stays closed, and is tried again", failure)
            closed.fault = failure
        else:
            del self.closed[name]
            partition = self._adopt(name, closed.topic_id, closed.replicas, outcome.result())
            partition.settings_changed(closed.settings)
            log.info("%s could be opened", name)
            partition.start()
            self._opened_late(partition)

    # Changing and removing

    def tune(self, topic: TopicImage, settings: LogSettings) -> None:
        """Give a topic's partitions changed settings."""
        for name in _names(topic):
            if name in self.partitions:
                self.partitions[name].settings_changed(settings)
            elif name in self.closed:
                self.closed[name].settings = settings

    def remove_topic(self, topic: TopicImage) -> None:
        """Close a deleted topic's partitions and remove their data.

        Their directories get other names at once, so that a topic of the same name can be created.
        """
        self._remove(topic, topic.partitions, DELETED)

    def remove_moved(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> list[TopicPartition]:
        """Remove replicas that other brokers have instead. Returns which they were."""
        me = self._identity.broker_id
        moved = [each for each in partitions if me not in each.replicas and self.has(topic, each)]
        self._remove(topic, moved, MOVED)
        return [TopicPartition(topic.name, each.index) for each in moved]

    def has(self, topic: TopicImage, image: PartitionImage) -> bool:
        name = TopicPartition(topic.name, image.index)
        return name in self.partitions or name in self.closed

    def _remove(self, topic: TopicImage, partitions: Sequence[PartitionImage], suffix: str) -> None:
        doomed = []
        for image in partitions:
            name = TopicPartition(topic.name, image.index)
            partition = self.partitions.pop(name, None)
            if partition is not None:
                partition.close(_topic_is_gone)
                self._replication.remove(partition.shell.partition)
                partition.log.close(clean=False)  # a flush may be under way in its thread; nobody needs it any more
            closed = self.closed.pop(name, None)
            if closed is not None:
                closed.is_deleted = True
            if name not in self._opening and self._world.disk.exists(str(name)):
                doomed.append(str(name))
        self.directories.delete(doomed, topic.topic_id, suffix)
        self._journal.forget(LogId(topic.topic_id, image.index) for image in partitions)

    def close(self) -> dict[LogId, Offset]:
        """Leave every partition so that the next start is quick. Blocks: the last thing a broker does.

        Returns where those end that could be left so.
        """
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        for partition in self.partitions.values():
            partition.close(_broker_stops)
        self.unpacking.close(_broker_stops)
        return {
            LogId(partition.topic_id, partition.name.partition): partition.log.end_offset
            for partition in close_together(self._world.disk, self.partitions.values())
        }

    def sort_out_directories(self, deleted: Iterable[TopicId], placed: Iterable[TopicPartition]) -> None:
        """Finish deletions, and put aside what no topic explains. `placed`: what belongs here, open or not."""
        if self._topic_ids_written:
            log.info("topic ids of %d partitions, which a crash took, were written again", self._topic_ids_written)
        self.directories.sort_out(deleted, {str(name) for name in (*self.partitions, *placed)})


def _names(topic: TopicImage) -> Iterator[TopicPartition]:
    return (TopicPartition(topic.name, image.index) for image in topic.partitions)


def _topic_is_gone() -> Refused:
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")


def _broker_stops() -> Refused:
    return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker is stopping")


def _is_nearly(stored_id: TopicId, topic_id: TopicId) -> bool:
    """Whether a few flipped bits explain the difference. Ids of two topics, which chance makes, differ in about 64."""
    return (int.from_bytes(stored_id) ^ int.from_bytes(topic_id)).bit_count() < DAMAGED_BITS_MAX
