"""The broker: the cluster image, the partitions placed here, and the machines that run on some of them.

Opening it replays the metadata log, opens what the image places here, and replays the consumer groups. From then on
the image's changes are carried out as they are committed.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from zurau.broker import openings
from zurau.broker.directories import partition_directories
from zurau.broker.disconnections import Disconnections
from zurau.broker.elections import Elections
from zurau.broker.fetch_sessions import FetchSessions
from zurau.broker.forwarding import Forwarding
from zurau.broker.group_coordinators import GroupCoordinators, GroupRuntime
from zurau.broker.handing_over import hand_over
from zurau.broker.health import Health
from zurau.broker.heartbeats import Heartbeats
from zurau.broker.identity import FILE as IDENTITY_FILE
from zurau.broker.identity import Identity, save_identity
from zurau.broker.image_changes import ImageChanges
from zurau.broker.in_sync import InSyncPartitions
from zurau.broker.internal_topics import InternalTopicGrowth, offsets_topic
from zurau.broker.known_leaders import KnownLeaders
from zurau.broker.last_seen import LastSeen
from zurau.broker.leader_moves import LeaderMoves
from zurau.broker.lost_replicas import others_have_metadata
from zurau.broker.metadata_log import METADATA_LOG, METADATA_PARTITION, MetadataLog
from zurau.broker.openings import Openings
from zurau.broker.peer_calls import PeerCalls
from zurau.broker.placement import Placement
from zurau.broker.producer_ids import ProducerIds
from zurau.broker.progress import with_progress
from zurau.broker.replica_names import ReplicaNames
from zurau.broker.replication import Replication
from zurau.broker.room import Room
from zurau.broker.settings import BrokerSettings
from zurau.broker.stop_mark import StopMark, read_stop_mark, remove_stop_mark, write_stop_mark
from zurau.broker.throttles import Throttles
from zurau.broker.troubles import Troubles
from zurau.broker.voter_changes import VoterChanges
from zurau.broker.waiting import pause
from zurau.errors import CorruptData, DiskFault, Refused
from zurau.ids import BrokerId, Epoch, PartitionId, TopicId, TopicPartition
from zurau.journal.journal import Journal
from zurau.journal.records import LogId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import BrokerHeartbeat, RegisterBroker
from zurau.machines.controller.features import supported_ranges
from zurau.machines.controller.image import ClusterImage, Listener, PartitionImage, TopicImage
from zurau.machines.controller.names import OFFSETS_TOPIC
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.machine import Command, Reply
from zurau.partition.opening import holds_segments
from zurau.partition.partition import Partition
from zurau.pending import Pending, all_of, any_of
from zurau.ports import Disk, Handshake, Peers, World
from zurau.settings import SECOND_MS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.peer.frames import Kind, kind_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

log = logging.getLogger("zurau.broker")

#: How long to wait before the controller is asked again for what cannot be done yet.
ASK_AGAIN_MS = 200
#: What the controller cannot do now and may do soon.
_NOT_YET = (ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.DUPLICATE_BROKER_REGISTRATION)


class Broker:
    """Everything that one broker process serves."""

    def __init__(
        self,
        world: World,
        identity: Identity,
        settings: BrokerSettings,
        log_settings: LogSettings,
        group_settings: GroupSettings,
        node_settings: DataclassInstance | None = None,
        *,
        others: tuple[BrokerId, ...] = (),
        listeners: tuple[Listener, ...] = (),
        expected_brokers: int = 0,
    ) -> None:
        """`others`: the other brokers of the cluster, as far as they are known. `listeners`: where they send clients
        that look for this one. `expected_brokers`: how many there will be at least, when a cluster is formed."""
        self.world = world
        self.clock = world.clock
        self.workers, self.randomness = world.workers, world.randomness
        self.identity = identity
        self.settings = settings
        self.log_settings = log_settings
        self.group_settings = group_settings
        #: What was read once, at start, for whoever asks (DescribeConfigs).
        self.fixed_settings = tuple(each for each in (settings, group_settings, node_settings) if each is not None)
        #: Directories with data of topics that a repair of the metadata log has given up.
        self.unexplained: list[str] = []
        self.troubles = Troubles(world.clock)
        self.health = Health(self)
        self.last_seen = LastSeen(world.disk, world.clock, world.background)
        self.journal = Journal(world)
        self.replication = Replication(world)
        self.calls = PeerCalls(world.clock, self._answer_call)
        self._others = others
        self._expected_brokers = max(1 + len(others), expected_brokers)
        #: Called when brokers have registered, with all that are known.
        self.on_brokers: Callable[[ClusterImage], None] = _nobody_connects
        self._listeners = listeners
        self._incarnation_id = world.randomness.bytes(16)
        #: How the last start ended; None if nobody knows.
        self._last_stop: StopMark | None = None
        self.placement = self._begin(world.disk)
        self.metadata = MetadataLog(
            world, self.placement, settings, log_settings, self.replication, others=others, has_data=self._has_data
        )
        self.metadata.on_changes = ImageChanges(self).follow
        self.groups = GroupCoordinators(world, group_settings, lambda: self.image)
        self.producer_ids = ProducerIds(self.controller)
        self.fetch_sessions = FetchSessions(settings, world)
        self.in_sync = InSyncPartitions(self.controller, self.partitions, lambda: self.image)
        self.replication.on_proposal = self.in_sync.propose
        #: The number of this start, as the controller counts.
        self.broker_epoch: Epoch = -1
        self._watch_others()
        self.openings = Openings(world, self._present, self._open)
        self.names = ReplicaNames(self.broker_id, self.placement, self._present, self._ask)
        self._is_open = True

    def _watch_others(self) -> None:
        settings, me = self.settings, self.broker_id
        self.heartbeats = Heartbeats(
            self.controller.submit, self._heartbeat, self.clock, settings.broker_heartbeat_interval_ms
        )
        self.disconnections = Disconnections(
            me, self.metadata.runtime, lambda: self.image, self.heartbeats.say_now, self.clock
        )
        self.controller.is_lost = self.disconnections.is_lost
        self.metadata.on_controller = self.disconnections.controller_loaded
        self.elections = Elections(self.clock, PartitionId(*METADATA_LOG))
        #: When brokers were last fenced or unfenced, as far as this one has seen it.
        self.fenced_since_ms: dict[BrokerId, int] = {}
        self.known_leaders = KnownLeaders(me, self.replication.shells, lambda: self.image.brokers, self.clock)
        followers = (self.known_leaders, self.disconnections, self.elections)
        self.replication.role_listeners += [each.role_changed for each in followers]
        self.leader_moves = LeaderMoves(
            me,
            self.metadata.partition,
            self.partitions,
            lambda: self.image,
            self.known_leaders,
            self.world,
            prefers=settings.auto_leader_rebalance_enable,
            interval_ms=settings.leader_imbalance_check_interval_s * SECOND_MS,
        )
        self.room = Room(self.leader_moves, self.world, self.heartbeats.say_now)
        self.replication.on_cannot_write, self.in_sync.yields = self.room.is_missing, self.room.yields
        self._voter_changes = VoterChanges(
            self.metadata.partition, self.partitions, lambda: self.image, self.controller.submit, self.world,
            settings.metadata_voter_replacement_ms,
        )  # fmt: skip
        self._growth = InternalTopicGrowth(
            lambda: self.image, lambda: self.metadata.runtime.is_loaded, self.controller.submit, self.world,
            settings.offsets_topic_replication_factor,
        )  # fmt: skip

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
        return self.metadata.image

    @property
    def controller(self) -> Forwarding:
        """Whoever decides, here or elsewhere."""
        return self.metadata.controller

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
            if image.topic_id in self.openings or self.broker_id not in image.partitions[index].replicas:
                raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not here, or still being opened")
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {topic}-{index} failed; see the broker's log")
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}")

    def groups_of(self, group_id: str) -> GroupRuntime:
        """The coordinator of a group, if it is here."""
        self.placement.open_again(self.groups.partition_of(group_id))
        return self.groups.find(group_id)

    def group_runtimes(self) -> list[GroupRuntime]:
        """Those whose groups are loaded."""
        return self.groups.loaded()

    # Other brokers

    def use_peers(self, peers: Peers) -> None:
        """From now on other brokers can be reached."""
        self.replication.peers = self.controller.peers = self.calls.peers = peers
        self.replication.throttles = Throttles(self.broker_id, self.clock, lambda: self.image)
        self.known_leaders.peers = self.leader_moves.peers = self.room.peers = self.metadata.transfer.peers = peers

    def connected(self, peer: Handshake) -> None:
        self.replication.connected(peer)
        self.calls.connected(peer)
        self.metadata.connected(peer.broker)
        self.known_leaders.connected(peer.broker)
        self.disconnections.connected(peer.broker)
        self.last_seen.connected(peer.broker)

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        match kind_of(frame):
            case Kind.COMMAND | Kind.REPLY:
                self.controller.received(sender, frame)
            case Kind.CALL | Kind.CALL_ANSWER:
                self.calls.received(sender, frame)
            case Kind.SNAPSHOT_ASK | Kind.SNAPSHOT_PIECE:
                self.metadata.transfer.received(sender, frame)
            case Kind.LEADERS:
                self.known_leaders.received(sender, frame)
            case Kind.PREFER_LEADER:
                self.leader_moves.received(sender, frame)
            case Kind.ROOM_ASKED | Kind.ROOM_OFFERED:
                self.room.received(sender, frame)
            case _:
                self.replication.received(sender, frame)

    def _answer_call(self, name: str, content: msgspec.Raw, data: memoryview) -> Coroutine[Any, None, Any]:
        from zurau.broker.any_broker import answer

        return answer(name, content, data, self)

    def progressed(self, broker: BrokerId) -> None:
        self.replication.progressed(broker)

    def lost(self, broker: BrokerId) -> None:
        self.replication.lost(broker)
        self.controller.lost(broker)
        self.calls.lost(broker)
        self.elections.begin()
        self.disconnections.lost(broker)
        self.last_seen.lost(broker)

    # Its life

    async def open(self) -> None:
        """Become ready to serve: learn what there is, register, open every partition, bring the groups back."""
        established = self.metadata.start()
        if self._is_alone:
            await self._led([established])
            await self.metadata.runtime.loaded
        deleted_before = self.metadata.load()
        self.on_brokers(self.image)
        self.broker_epoch = await self._ask(self._registration())
        self.names.registered(self.broker_epoch)
        topics = list(self.image.topics.values())
        self.placement.directories.undo_deletions(self.image.topics_by_id)
        opened = [
            each for part in with_progress(topics, openings.OPENED_AT_ONCE, self.clock) for each in self._open(part)
        ]
        self._sort_out(topics, deleted_before)
        await self.names.told
        self.in_sync.registered(self.broker_epoch)
        self.heartbeats.begin()
        self.last_seen.begin()
        if not self._is_alone:  # who votes alone goes on doing so, and thousands of partitions need no second look
            self._look_after_others()
        await self._led([self.heartbeats.unfenced])
        if OFFSETS_TOPIC not in self.image.topics:
            await self._create_offsets_topic()
        await self._led([partition.established for partition in opened if partition.is_only_voter])
        await self._led(self.groups.loading())
        if not self._is_alone:
            await self._voter_changes.settled()
        self.journal.recovered(LogId(closed.topic_id, name.partition) for name, closed in self.placement.closed.items())

    @property
    def _is_alone(self) -> bool:
        return not self._others and not self.identity.is_clustered

    async def open_to_others(self) -> None:
        """It was alone, and others may join from now on: who votes is written down, so that a broker that forgets it is
        never again taken for the only one."""
        voters = self.metadata.partition.shell.core.membership.history
        await self.journal.notes_of(METADATA_LOG).save_voters(voters)
        self.identity = replace(self.identity, is_clustered=True)
        save_identity(self.world.disk, self.identity)
        self._look_after_others()

    def _look_after_others(self) -> None:
        self._voter_changes.begin()
        self.leader_moves.begin()
        self._growth.begin()

    def _registration(self) -> RegisterBroker:
        stop = self._last_stop
        return RegisterBroker(
            self.broker_id,
            self.identity.directory_id,
            self._incarnation_id,
            listeners=self._listeners,
            rack=self.settings.broker_rack or None,
            previous_broker_epoch=stop.broker_epoch if stop is not None else -1,
            metadata_directory=self.journal.facts(METADATA_LOG).directory,
            features=supported_ranges(),
        )

    async def _ask(self, command: Command[Reply]) -> Reply:
        """Ask the controller. In a cluster, until there is one that can do it: others may not be there yet."""
        while True:
            try:
                return await self.controller.submit(command)
            except Refused as refused:
                if self._is_alone or refused.code not in _NOT_YET:
                    raise
            await pause(self.clock, ASK_AGAIN_MS)
            if not self._is_open:
                raise _is_stopping()

    async def _create_offsets_topic(self) -> None:
        """Any of the brokers may be the first to do it."""
        try:
            created = await self._ask(offsets_topic(self.settings, self.randomness, self._expected_brokers))
        except Refused as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            if self._is_alone:
                await self._led([self.opened(created.topic_id)])

    async def _led(self, established: list[Pending[None]]) -> None:
        """Wait until these are led, which takes a vote that is safe: a broker that cannot write one does not start."""
        await any_of([all_of(established), self.journal.failed])
        if self.journal.fault is not None:
            raise self.journal.fault

    async def hand_over(self) -> None:
        """Let others lead what this broker leads: it is about to stop."""
        if not self._is_alone:
            await hand_over(self.heartbeats, self.leader_moves, self.clock)

    def close(self) -> None:
        """Stop in good order. Whoever still waits is told to look elsewhere."""
        self._is_open = False
        self.heartbeats.close()
        self._voter_changes.close()
        self.leader_moves.close()
        self._growth.close()
        self.metadata.runtime.close(_is_stopping)
        self.groups.close(_is_stopping)
        self.last_seen.close()
        ended = self.placement.close()
        self.replication.stop()
        try:
            self.journal.close(ended)
            epoch = self.broker_epoch
            if epoch < 0 and self._last_stop is not None:
                epoch = self._last_stop.broker_epoch  # a start that was never counted has changed nothing
            write_stop_mark(self.world.disk, StopMark(self.journal.start_count, epoch))
        except DiskFault as fault:
            log.warning("everything has to be checked at the next start: %s", fault)

    def _begin(self, disk: Disk) -> Placement:
        """See that the directory is what this broker left, and note the start before anything else is written."""
        mark = read_stop_mark(disk)
        knows_metadata = mark is not None or self.journal.has_flushed(METADATA_LOG)
        has_data = any(partition_directories(disk, besides=[str(METADATA_PARTITION)]))
        is_missing = (knows_metadata or has_data) and not holds_segments(disk, str(METADATA_PARTITION))
        if is_missing and not others_have_metadata(self.identity, self.journal.facts(METADATA_LOG)):
            raise CorruptData(
                f"the metadata log, {disk.root / str(METADATA_PARTITION)}, is missing beside {IDENTITY_FILE}: without "
                "it no topic is known. Restore that directory from a copy, or start with another --dir; nothing was "
                "changed here"
            )
        self._has_data = has_data or is_missing
        if mark is not None and mark.start_count == self.journal.start_count:
            self._last_stop = mark
        else:
            self.journal.forget_ends()
        remove_stop_mark(disk)
        self.journal.begin()  # which flushes the directory too
        return Placement(
            self.world,
            self.identity,
            self.journal,
            clean=mark is not None and mark.is_old,
            opened_late=self._opened_late,
            replication=self.replication,
            producers_bytes_max=self.settings.producers_memory_bytes_max,
        )

    def _sort_out(self, topics: Iterable[TopicImage], deleted_before: Iterable[TopicId]) -> None:
        """Directories and the journal hold what the image places here, and nothing else."""
        placed = [
            TopicPartition(topic.name, partition.index)
            for topic in topics
            for partition in topic.partitions
            if self.broker_id in partition.replicas
        ]
        self.groups.may_forget = not self.metadata.gaps
        if self.metadata.gaps:
            # The metadata log was repaired: what no topic explains may belong to one whose record was given up.
            known = {str(name) for name in placed} | {str(METADATA_PARTITION)}
            self.unexplained = self.placement.directories.unexplained(known)
            for name in self.unexplained:
                log.warning(
                    "no topic explains the data in %s; its record may have been lost, so it is left there", name
                )
            return
        self.placement.sort_out_directories(deleted_before, placed)
        # What was moved away comes back as another replica, if ever, and then nothing is missing of what this one had.
        here = {LogId(self.image.topics[name.topic].topic_id, name.partition) for name in placed}
        self.journal.forget([name for name in self.journal.logs if name != METADATA_LOG and name not in here])

    def _open(self, topic: TopicImage) -> list[Partition]:
        """Open those partitions of a topic that are placed here."""
        opened = self.placement.open_topic(topic, self.settings_of(topic))
        for partition in opened:
            self._opened(partition)
        self._compare(topic, topic.partitions)
        return opened

    def _opened_late(self, partition: Partition) -> None:
        self._opened(partition)
        topic = self.image.topics_by_id.get(partition.topic_id)
        if topic is not None:
            self._compare(topic, [topic.partitions[partition.name.partition]])

    def _compare(self, topic: TopicImage, partitions: Sequence[PartitionImage]) -> None:
        """What the image says of replicas that were opened."""
        self.in_sync.tell(topic, partitions)
        self.names.compare(topic, partitions)

    def _opened(self, partition: Partition) -> None:
        if partition.name.topic == OFFSETS_TOPIC:
            self.groups.run_on(partition)

    def _heartbeat(self, wants_shutdown: bool) -> BrokerHeartbeat:
        failed = self.in_sync.failed()
        return BrokerHeartbeat(self.broker_id, self.broker_epoch, self.metadata.last_offset, failed, wants_shutdown)

    def _present(self, topic_id: TopicId) -> TopicImage | None:
        """The topic as it is now, while this broker is open."""
        return self.image.topics_by_id.get(topic_id) if self._is_open else None

    def settings_of(self, topic: TopicImage) -> LogSettings:
        """Of a topic's logs on this broker."""
        settings = self.metadata.config_rules.topic_settings(self.image, self.broker_id, topic.configs)
        internal_bytes = self.settings.internal_segment_bytes
        return settings if not internal_bytes else dataclasses.replace(settings, segment_bytes=internal_bytes)

    def opened(self, topic_id: TopicId) -> Pending[None]:
        """Done when the partitions of a new topic can be used, or it takes too long to wait for that."""
        return self.openings.opened(topic_id)


def _nobody_connects(image: ClusterImage) -> None:
    """Alone, nobody has to know where brokers are."""


def _is_stopping() -> Refused:
    return Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")
