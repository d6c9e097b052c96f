"""The broker: the cluster image, the partitions placed here, and the machines that run on some of them.

Opening it replays the metadata log into the controller, opens what the image places here, and replays the consumer
groups. From then on the image's changes are carried out as they are applied.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from zurau.broker.identity import Identity
from zurau.broker.placement import Placement
from zurau.broker.producer_ids import ProducerIds
from zurau.broker.settings import BrokerSettings
from zurau.errors import DiskFault, Refused
from zurau.ids import BrokerId, TopicId, TopicPartition
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
from zurau.partition.partition import Partition
from zurau.pending import Pending, all_of, done, start
from zurau.ports import Disk, World
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.broker")

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
#: The metadata log's own topic id, as in Kafka.
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
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
        self._placement = Placement(world, identity, clean=_stopped_cleanly(world.disk))
        self.controller = self._load_controller()
        self.producer_ids = ProducerIds(self.controller)
        self._group_hosts: dict[int, MachineHost[GroupCommand]] = {}
        #: New topics with partitions that are still being opened.
        self._openings: dict[TopicId, Pending[None]] = {}

    # Who and what

    @property
    def broker_id(self) -> BrokerId:
        return self.identity.broker_id

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def image(self) -> ClusterImage:
        """The cluster as the metadata log describes it."""
        return self._controller_machine.image

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        return self._placement.partitions

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that this broker leads."""
        partition = self.partitions.get(TopicPartition(topic, index))
        if partition is not None:
            return partition
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
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC}-{index} is not served here")
        return host

    def group_hosts(self) -> list[MachineHost[GroupCommand]]:
        return list(self._group_hosts.values())

    # Its life

    async def open(self) -> None:
        """Become ready to serve: register, open every partition, bring the groups back."""
        topics = list(self.image.topics.values())
        self._placement.undo_deletions(self.image.topics_by_id)
        for topic in topics:
            self._placement.open_topic(topic, self._settings_of(topic))
        placed = [TopicPartition(topic.name, partition.index) for topic in topics for partition in topic.partitions]
        self._placement.sort_out_directories(self._deleted_while_loading, placed)
        registration = RegisterBroker(self.broker_id, self.identity.directory_id, self.randomness.bytes(16))
        await self.controller.ask(registration)
        if OFFSETS_TOPIC not in self.image.topics:
            created: TopicImage = await self.controller.ask(self._offsets_topic())
            await self.opened(created.topic_id)
        self._load_groups()

    def close(self) -> None:
        """Stop in good order. Whoever still waits is told to look elsewhere."""
        self._is_open = False
        self.searches.close(_is_stopping)
        self.controller.close(_is_stopping)
        for host in self.group_hosts():
            host.close(_is_stopping)
        if self._placement.close():
            try:
                self.world.disk.replace_file(CLEAN_STOP_FILE, b"")
            except DiskFault as fault:
                log.warning("everything has to be checked at the next start: %s", fault)

    def _load_controller(self) -> MachineHost[ControllerCommand]:
        self._deleted_while_loading: list[TopicId] = []
        self._is_open = False
        self._controller_machine = Controller(self.settings, self.log_settings, on_change=self._changed)
        # Every record counts: without snapshots this log is the only memory of the cluster.
        settings = LogSettings(cleanup_policy=("delete",), retention_ms=-1, flush="fsync")
        metadata = self._placement.open(METADATA_PARTITION, METADATA_TOPIC_ID, settings)
        host = MachineHost(metadata, self._controller_machine, self.clock)
        host.load()
        self._is_open = True
        return host

    def _load_groups(self) -> None:
        for image in self.image.topics[OFFSETS_TOPIC].partitions:
            partition = self.partitions.get(TopicPartition(OFFSETS_TOPIC, image.index))
            if partition is not None:
                self._load_group_host(partition)

    def _load_group_host(self, partition: Partition) -> None:
        host = MachineHost(partition, GroupMachine(self.group_settings), self.clock)
        try:
            host.load()
        except DiskFault as fault:
            # Other groups and all topics can be served; the groups in this partition find no coordinator.
            log.error("the groups of %s are not served: %s", partition.name, fault)  # noqa: TRY400 - says it all
        else:
            self._group_hosts[partition.name.partition] = host

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

    def _changed(self, change: Change) -> None:
        """Carry out what an applied record of the metadata log means for this broker."""
        if not self._is_open:
            # While the log is replayed only its end counts, apart from what must not come back.
            if isinstance(change, TopicRemoved):
                self._deleted_while_loading.append(change.topic.topic_id)
            return
        match change:
            case TopicAdded(topic) | PartitionsAdded(topic):
                self._begin_opening(topic)
            case TopicConfigChanged(topic):
                self._placement.tune(topic, self._settings_of(topic))
            case BrokerConfigChanged():
                start(self._tune_all())
            case TopicRemoved(topic):
                self._placement.remove_topic(topic, self._metadata_committed())
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
            if first and self.world.turns.is_over():
                await self.world.turns.next()
            present = self.image.topics_by_id.get(topic.topic_id)
            if present is None or not self._is_open:
                return  # it was deleted meanwhile, or the broker has stopped
            part = replace(present, partitions=present.partitions[first : first + OPENED_AT_ONCE])
            self._placement.open_topic(part, self._settings_of(present))

    async def _tune_all(self) -> None:
        for name in list(self.image.topics):
            topic = self.image.topics.get(name)
            if topic is not None:
                self._placement.tune(topic, self._settings_of(topic))
            if self.world.turns.is_over():
                await self.world.turns.next()

    def _metadata_committed(self) -> Pending[None]:
        """Done when all that the metadata log holds now is committed."""
        metadata = self.partitions[METADATA_PARTITION]
        return metadata.wait_high_watermark(metadata.log.end_offset)

    def _settings_of(self, topic: TopicImage) -> LogSettings:
        return self._controller_machine.log_settings_of(topic, self.broker_id)


def _stopped_cleanly(disk: Disk) -> bool:
    """Whether the last run came to its end. The mark is taken off, durably, before anything is written."""
    clean = disk.exists(CLEAN_STOP_FILE)
    if clean:
        disk.remove(CLEAN_STOP_FILE)
        disk.flush_directory("")
    return clean


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
