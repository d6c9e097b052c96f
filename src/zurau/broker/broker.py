"""The broker: the cluster image, the partitions placed here, and the machines that run on some of them.

Opening it replays the metadata log, opens what the image places here, and replays the consumer groups. From then on
the image's changes are carried out as they are committed.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from zurau.broker.cluster_view import ClusterView
from zurau.broker.directories import partition_directories
from zurau.broker.health import Health
from zurau.broker.identity import FILE as IDENTITY_FILE
from zurau.broker.identity import Identity
from zurau.broker.metadata_snapshots import MetadataSnapshots
from zurau.broker.placement import Placement
from zurau.broker.producer_ids import ProducerIds
from zurau.broker.settings import BrokerSettings
from zurau.broker.troubles import Troubles
from zurau.errors import CorruptData, DiskFault, Refused
from zurau.ids import BrokerId, TopicId, TopicPartition
from zurau.journal.journal import Journal
from zurau.journal.records import LogId
from zurau.log.settings import LogSettings
from zurau.machines.controller.changes import (
    BrokerConfigChanged,
    Change,
    PartitionsAdded,
    TopicAdded,
    TopicConfigChanged,
    TopicRemoved,
)
from zurau.machines.controller.commands import ControllerCommand, CreateTopic, RegisterBroker
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage, TopicImage
from zurau.machines.controller.names import METADATA_TOPIC, OFFSETS_TOPIC
from zurau.machines.groups.commands import ForgetTopic, GroupCommand, Unfinished
from zurau.machines.groups.machine import GroupMachine
from zurau.machines.groups.settings import GroupSettings
from zurau.partition.host import MachineHost
from zurau.partition.judging import Lane
from zurau.partition.opening import holds_segments
from zurau.partition.partition import Partition
from zurau.partition.snapshots import load_newest
from zurau.pending import Pending, all_of, done, start
from zurau.ports import Disk, World
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.broker")

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
#: The metadata log's own topic id, as in Kafka.
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
METADATA_LOG = LogId(METADATA_TOPIC_ID, METADATA_PARTITION.partition)
#: Small enough that what a snapshot makes superfluous is soon a whole segment.
METADATA_SEGMENT_BYTES = 16 * MIB
#: Says that a broker stopped in good order: with the count of its start by the journal, or empty if it was an older
#: release, which kept none. Older releases remove it when they start, which shows that they ran.
CLEAN_STOP_FILE = "clean-stop"
#: Partitions of a new topic: each takes some files and a fraction of a millisecond.
OPENED_AT_ONCE = 4


class Broker:
    """Everything that one broker process serves."""

    def __init__(
        self,
        world: World,
        identity: Identity,
        settings: BrokerSettings,
        log_settings: LogSettings,
        group_settings: GroupSettings,
        *node_settings: object,
    ) -> None:
        self.world = world
        self.clock = world.clock
        self.workers = world.workers
        #: Searches for records by time.
        self.searches = Lane(world.workers)
        self.randomness = world.randomness
        self.identity = identity
        self.settings = settings
        self.log_settings = log_settings
        self.group_settings = group_settings
        #: What was read once, at start, for whoever asks (DescribeConfigs).
        self.fixed_settings = (settings, group_settings, *node_settings)
        self._group_hosts: dict[int, MachineHost[GroupCommand]] = {}
        #: Partitions of `__consumer_offsets` whose groups are not served, and why.
        self.groups_not_served: dict[TopicPartition, str] = {}
        #: Directories with data of topics that a repair of the metadata log has given up.
        self.unexplained: list[str] = []
        self.troubles = Troubles(world.clock)
        self.health = Health(self)
        self.journal = Journal(world)
        self.placement = self._begin(world.disk)
        self.controller = self._load_controller()
        self.producer_ids = ProducerIds(self.controller)
        #: New topics with partitions that are still being opened.
        self._openings: dict[TopicId, Pending[None]] = {}
        self._is_open = True

    # Who and what

    @property
    def broker_id(self) -> BrokerId:
        return self.identity.broker_id

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def image(self) -> ClusterImage:
        """The cluster as far as it is committed."""
        return self._view.image

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        return self.placement.partitions

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that this broker leads."""
        # A plain pair finds what its name does, and this is asked for every batch.
        partition: Partition | None = self.placement.partitions.get((topic, index))  # type: ignore[call-overload]
        if partition is not None:
            return partition
        closed = self.placement.closed.get(TopicPartition(topic, index))
        if closed is not None:
            self.placement.open_again(TopicPartition(topic, index))
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} cannot be opened: {closed.fault}")
        image = self.image.topics.get(topic)
        if image is not None and 0 <= index < len(image.partitions):
            if image.topic_id in self._openings:
                raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is still being opened")
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {topic}-{index} failed; see the broker's log")
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}")

    def group_host(self, group_id: str) -> MachineHost[GroupCommand]:
        """Where a group lives: the same partition of `__consumer_offsets` that Kafka would choose."""
        topic = self.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the topic of the consumer groups is not there yet")
        index = _java_abs(_java_hash(group_id)) % len(topic.partitions)
        host = self._group_hosts.get(index)
        if host is None:
            name = TopicPartition(OFFSETS_TOPIC, index)
            self.placement.open_again(name)
            reason = self.groups_not_served.get(name, f"{name} is not open")
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the groups of {name} are not served: {reason}")
        return host

    def group_hosts(self) -> list[MachineHost[GroupCommand]]:
        return list(self._group_hosts.values())

    # Its life

    async def open(self) -> None:
        """Become ready to serve: register, open every partition, bring the groups back."""
        topics = list(self.image.topics.values())
        self.placement.directories.undo_deletions(self.image.topics_by_id)
        for topic in topics:
            self.placement.open_topic(topic, self._settings_of(topic))
        placed = [TopicPartition(topic.name, partition.index) for topic in topics for partition in topic.partitions]
        self._sort_out(placed)
        registration = RegisterBroker(self.broker_id, self.identity.directory_id, self.randomness.bytes(16))
        await self.controller.ask(registration)
        if OFFSETS_TOPIC not in self.image.topics:
            created: TopicImage = await self.controller.ask(self._offsets_topic())
            await self.opened(created.topic_id)
        self._load_groups()
        self.journal.recovered(LogId(closed.topic_id, name.partition) for name, closed in self.placement.closed.items())

    def close(self) -> None:
        """Stop in good order. Whoever still waits is told to look elsewhere."""
        self._is_open = False
        self.searches.close(_is_stopping)
        self.controller.close(_is_stopping)
        for host in self.group_hosts():
            host.close(_is_stopping)
        ended = self.placement.close()
        try:
            self.journal.close(ended)
            self.world.disk.replace_file(CLEAN_STOP_FILE, self._stop_mark())
        except DiskFault as fault:
            log.warning("everything has to be checked at the next start: %s", fault)

    def _begin(self, disk: Disk) -> Placement:
        """See that the directory is what this broker left, and note the start before anything else is written."""
        mark = disk.read_file(CLEAN_STOP_FILE)
        knows_metadata = mark is not None or METADATA_LOG in self.journal.logs
        has_data = any(partition_directories(disk, besides=[str(METADATA_PARTITION)]))
        if (knows_metadata or has_data) and not holds_segments(disk, str(METADATA_PARTITION)):
            raise CorruptData(
                f"the metadata log, {disk.root / str(METADATA_PARTITION)}, is missing beside {IDENTITY_FILE}: without "
                "it no topic is known. Restore that directory from a copy, or start with another --dir; nothing was "
                "changed here"
            )
        self._has_data = has_data
        if mark != self._stop_mark():
            self.journal.forget_ends()
        disk.remove(CLEAN_STOP_FILE)
        self.journal.begin()  # which flushes the directory too
        return Placement(self.world, self.identity, self.journal, clean=mark == b"", opened_late=self._opened_late)

    def _stop_mark(self) -> bytes:
        return b"%d" % self.journal.start_count

    def _sort_out(self, placed: list[TopicPartition]) -> None:
        """Directories and the journal hold what the image places here, and nothing else."""
        if self.controller.gaps:
            # The metadata log was repaired: what no topic explains may belong to one whose record was given up.
            known = {str(name) for name in placed} | {str(METADATA_PARTITION)}
            self.unexplained = self.placement.directories.unexplained(known)
            for name in self.unexplained:
                log.warning(
                    "no topic explains the data in %s; its record may have been lost, so it is left there", name
                )
            return
        self.placement.sort_out_directories(self._deleted_before, placed)
        topics = self.image.topics_by_id
        self.journal.forget(
            [name for name in self.journal.logs if name != METADATA_LOG and name.topic_id not in topics]
        )

    def _load_controller(self) -> MachineHost[ControllerCommand]:
        # What is old goes when a snapshot holds it, and only then.
        settings = LogSettings(
            cleanup_policy=("delete",), retention_ms=-1, segment_bytes=METADATA_SEGMENT_BYTES, flush="fsync"
        )
        metadata = self.placement.open(METADATA_PARTITION, METADATA_TOPIC_ID, settings)
        self._require_whole(metadata)
        controller = Controller(self.settings, self.log_settings)
        host = MachineHost(metadata, controller, self.clock)
        snapshot = load_newest(self.world.disk, metadata.log.directory, metadata.log.start_offset)
        host.load(snapshot)
        self._config_rules = controller.rules
        self._view = ClusterView(metadata)
        # Only where it ends counts now, apart from what must not come back.
        self._deleted_before = [
            change.topic.topic_id for change in self._view.load(snapshot) if isinstance(change, TopicRemoved)
        ]
        self._snapshots = MetadataSnapshots(self.world, metadata, self._view, snapshot)
        metadata.on_commit = self._follow
        return host

    def _require_whole(self, metadata: Partition) -> None:
        """Refuse to start rather than to take a part of the cluster for the whole."""
        damage = list(map(str, metadata.log.damage))
        if not damage and self._has_data and not metadata.log.end_offset:
            damage = ["it is empty, though there are partitions"]
        if damage:
            raise CorruptData(
                f"the metadata log, {self.world.disk.root / metadata.log.directory}, is damaged: {'; '.join(damage)}. "
                "Topics would be forgotten, so the broker does not start. Look at it with `zurau log check`; restore "
                "the directory from a copy, or give up what is damaged with `zurau log repair`"
            )

    def _load_groups(self) -> None:
        for image in self.image.topics[OFFSETS_TOPIC].partitions:
            partition = self.partitions.get(TopicPartition(OFFSETS_TOPIC, image.index))
            if partition is not None:
                self._load_group_host(partition)

    def _load_group_host(self, partition: Partition) -> None:
        groups = GroupMachine(self.group_settings)
        host = MachineHost(partition, groups, self.clock)
        try:
            if partition.log.damage:
                # With some of their offsets forgotten, consumers would silently skip or repeat records.
                raise CorruptData(
                    f"{'; '.join(map(str, partition.log.damage))}. Restore its directory from a copy, or give up what "
                    "is damaged with `zurau log repair`"
                )
            host.load()
        except DiskFault as fault:
            # Other groups and all topics can be served; the groups in this partition find no coordinator.
            log.error("the groups of %s are not served: %s", partition.name, fault)  # noqa: TRY400 - says it all
            self.groups_not_served[partition.name] = str(fault)
        else:
            self._group_hosts[partition.name.partition] = host
            self._forget_deleted_topics(groups, host)

    def _forget_deleted_topics(self, groups: GroupMachine, host: MachineHost[GroupCommand]) -> None:
        """A crash may have come between the deletion of a topic and this: a new one of its name must not inherit."""
        if not self.controller.gaps:  # or else a topic may be missing that was never deleted
            for topic in sorted(groups.topics() - self.image.topics.keys()):
                start(_forget_topic(topic, host))

    def _opened_late(self, partition: Partition) -> None:
        if partition.name.topic == OFFSETS_TOPIC:
            self._load_group_host(partition)

    def _offsets_topic(self) -> CreateTopic:
        return CreateTopic(
            name=OFFSETS_TOPIC,
            topic_id=TopicId(self.randomness.bytes(16)),
            partition_count=self.settings.offsets_topic_num_partitions,
            configs={
                "cleanup.policy": "compact",
                "segment.bytes": str(self.settings.offsets_topic_segment_bytes),
            },
            by_broker=True,
        )

    # The image changes

    def _follow(self) -> None:
        for change in self._view.catch_up():
            self._carry_out(change)
        self._snapshots.take_if_due()

    def _carry_out(self, change: Change) -> None:
        """Do what a committed change means for this broker."""
        match change:
            case TopicAdded(topic) | PartitionsAdded(topic):
                self._begin_opening(topic)
            case TopicConfigChanged(topic):
                self.placement.tune(topic, self._settings_of(topic))
            case BrokerConfigChanged():
                start(self._tune_all())
            case TopicRemoved(topic):
                self.placement.remove_topic(topic)
                for partition in topic.partitions:
                    self.troubles.forget(TopicPartition(topic.name, partition.index))
                for host in self.group_hosts():
                    start(_forget_topic(topic.name, host))
            case _:
                pass

    def opened(self, topic_id: TopicId) -> Pending[None]:
        """Done when the partitions of a new topic can be used."""
        return self._openings.get(topic_id) or done(None)

    def _begin_opening(self, topic: TopicImage) -> None:
        opening = start(self._open_in_turns(topic))
        if not opening.is_done:
            self._openings[topic.topic_id] = opened = all_of([self.opened(topic.topic_id), opening])
            opened.then(lambda _: self._is_opened(topic.topic_id, opened))

    def _is_opened(self, topic_id: TopicId, opened: Pending[None]) -> None:
        if self._openings.get(topic_id) is opened:  # no more partitions were added meanwhile
            del self._openings[topic_id]

    async def _open_in_turns(self, topic: TopicImage) -> None:
        """Open the partitions of a topic, of which there may be thousands. A small topic is open at once."""
        for first in range(0, len(topic.partitions), OPENED_AT_ONCE):
            if self.world.turns.is_over():
                await self.world.turns.next()
            present = self.image.topics_by_id.get(topic.topic_id)
            if present is None or not self._is_open:
                return  # it was deleted meanwhile, or the broker has stopped
            part = replace(present, partitions=present.partitions[first : first + OPENED_AT_ONCE])
            self.placement.open_topic(part, self._settings_of(present))

    async def _tune_all(self) -> None:
        for name in list(self.image.topics):
            topic = self.image.topics.get(name)
            if topic is not None:
                self.placement.tune(topic, self._settings_of(topic))
            if self.world.turns.is_over():
                await self.world.turns.next()

    def _settings_of(self, topic: TopicImage) -> LogSettings:
        return self._config_rules.topic_settings(self.image, self.broker_id, topic.configs)


async def _forget_topic(name: str, host: MachineHost[GroupCommand]) -> None:
    reply = await host.ask(ForgetTopic(name))
    while isinstance(reply, Unfinished):
        reply = await host.ask(ForgetTopic(name, reply.now_ms))


def _is_stopping() -> Refused:
    return Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")


def _java_abs(number: int) -> int:
    """As Kafka takes it: the one number whose positive twin does not fit into 32 bits becomes 0."""
    return 0 if number == -(1 << 31) else abs(number)


def _java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, in signed 32 bits."""
    units = text.encode("utf-16-be")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
