"""The metadata log of this broker: its replica, the controller while it leads, and the image of what is committed.

A broker that leads the log decides; every broker follows it up to its high watermark, and shows and does only what it
finds there. The controller's own image, ahead of that, is nobody else's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from zurau.broker.cluster_view import ClusterView
from zurau.broker.forwarding import Forwarding
from zurau.broker.metadata_snapshots import MetadataSnapshots
from zurau.broker.placement import Placement
from zurau.broker.replication import Replication
from zurau.broker.settings import BrokerSettings
from zurau.broker.snapshot_transfer import SnapshotTransfer
from zurau.errors import CorruptData, Refused, ReleaseTooOld
from zurau.ids import BrokerId, PartitionId, TopicId, TopicPartition
from zurau.journal.records import LogId
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.machines.controller.changes import Change, TopicRemoved
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.names import METADATA_TOPIC
from zurau.partition.runtime import MachineRuntime
from zurau.partition.snapshots import Snapshot, load_newest
from zurau.pending import Pending
from zurau.ports import World
from zurau.replica.core.events import BrokersKnown
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.snapshots")

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
#: The metadata log's own topic id, as in Kafka.
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
METADATA_LOG = LogId(METADATA_TOPIC_ID, METADATA_PARTITION.partition)
#: Small enough that what a snapshot makes superfluous is soon a whole segment.
METADATA_SEGMENT_BYTES = 16 * MIB

ControllerRuntime = MachineRuntime[Controller[LogSettings]]


class MetadataLog:
    """See the module. Opened at once; `load` makes the image."""

    def __init__(
        self,
        world: World,
        placement: Placement,
        settings: BrokerSettings,
        log_settings: LogSettings,
        replication: Replication,
        *,
        others: tuple[BrokerId, ...],
        has_data: bool,
    ) -> None:
        """`has_data`: there are partitions here, so the log cannot be empty."""
        self._world = world
        # What is old goes when a snapshot holds it, and only then.
        metadata_settings = LogSettings(
            cleanup_policy=("delete",), retention_ms=-1, segment_bytes=METADATA_SEGMENT_BYTES, flush="fsync"
        )
        try:
            self.partition = placement.open_metadata(
                METADATA_PARTITION,
                METADATA_TOPIC_ID,
                metadata_settings,
                others=others,
                problems=partial(self._problems, has_data=has_data),
            )
        except CorruptData as damage:
            # Refuse to start rather than to take a part of the cluster for the whole.
            raise CorruptData(
                f"the metadata log, {world.disk.root / str(METADATA_PARTITION)}, is damaged: {damage}. Topics would be "
                "forgotten, so the broker does not start. Look at it with `zurau log check`; restore the directory "
                "from a copy, or give up what is damaged with `zurau log repair`"
            ) from damage
        make_controller = partial(Controller, settings, log_settings)
        self.config_rules = make_controller().rules
        self.runtime: ControllerRuntime = MachineRuntime(
            self.partition, make_controller, world, _is_not_controller, self._newest_snapshot
        )
        self.runtime.on_loaded = self._controller_loaded
        self._view = ClusterView(self.partition)
        self.transfer = SnapshotTransfer(
            world, PartitionId(*METADATA_LOG), self.partition.log.directory, replication.shells
        )
        self.transfer.on_fetched = self.snapshot_fetched
        replication.on_snapshot_wanted = self.transfer.fetch
        self._snapshots = MetadataSnapshots(world, self.partition, self._view)
        self.controller = Forwarding(self.runtime, self.partition, self._view, world.clock)
        #: Those that were connected at some time, and those that were named at the start.
        self._known_brokers = set(others)
        self._is_started = False
        #: One that came from another broker.
        self._fetched: Snapshot | None = None
        #: Called with what was committed since.
        self.on_changes: Callable[[list[Change]], None] = _nobody_follows
        #: Called when this broker has become the controller.
        self.on_controller: Callable[[], None] = _nobody_waits

    @property
    def image(self) -> ClusterImage:
        """The cluster as far as it is committed."""
        return self._view.image

    @property
    def last_offset(self) -> int:
        """Of what the image holds."""
        return self._view.next_offset - 1

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """What a repair has given up."""
        return self._view.gaps

    def connected(self, broker: BrokerId) -> None:
        """Another broker, which may know who leads."""
        self._known_brokers.add(broker)
        if self._is_started:
            self._tell_brokers()

    def start(self) -> Pending[None]:
        """Done when this broker leads the log."""
        established = self.partition.start()
        self._is_started = True
        if self._known_brokers:
            self._tell_brokers()
        return established

    def _tell_brokers(self) -> None:
        self.partition.shell.tell(BrokersKnown(tuple(sorted(self._known_brokers))))

    def load(self) -> list[TopicId]:
        """Make the image of what is committed by now, and follow from there on. Returns topics that were deleted."""
        snapshot = self._newest_snapshot()
        self._snapshots.begin(snapshot)
        # Only where it ends counts now, apart from what must not come back.
        changes = self._view.load(snapshot)
        self.partition.on_commit = self._follow
        return [change.topic.topic_id for change in changes if isinstance(change, TopicRemoved)]

    def is_member(self, broker: BrokerId) -> bool:
        """It is registered, has been given its id, or votes: a voter may be known before what is committed is. As long
        as nothing is committed, it may be anybody."""
        image = self.image
        if not image.brokers or broker in image.brokers or broker in image.reserved_ids:
            return True
        return any(voter.broker == broker for voter in self.partition.shell.core.membership.voters)

    def _controller_loaded(self, loaded: Pending[None]) -> None:
        if loaded.error is None:
            self.on_controller()
        elif not self.partition.is_only_voter:  # who is alone awaits it, and does not start
            # It would lead on without deciding anything; when it stops, the others elect one that can.
            self._world.fail(loaded.error)

    def _follow(self) -> None:
        changes = self._jump() if self._view.next_offset < self.partition.log.start_offset else []
        try:
            changes += self._view.catch_up()
        except ReleaseTooOld as unknown:
            self._world.fail(unknown)  # what it does not know of the cluster, it cannot obey
            raise
        self.on_changes(changes)
        self._snapshots.take_if_due()
        self.controller.image_moved()

    def _newest_snapshot(self) -> Snapshot:
        stored = self.partition.log
        return load_newest(self._world.disk, stored.directory, stored.start_offset, stored.end_offset)

    def snapshot_fetched(self, snapshot: Snapshot) -> None:
        """A snapshot has come from another broker, and is on disk: the log goes on behind it when it is begun anew."""
        self._fetched = snapshot

    def _jump(self) -> list[Change]:
        """The log has begun anew behind a snapshot, which tells what was before."""
        fetched, self._fetched = self._fetched, None
        if fetched is None or fetched.offset != self.partition.log.start_offset:
            fetched = self._newest_snapshot()
        log.warning(
            "the metadata begins anew with a snapshot of offset %d: this broker had followed up to %d",
            fetched.offset,
            self._view.next_offset,
        )
        self._snapshots.begin(fetched)
        return self._view.jump(fetched)

    def _problems(self, metadata: Log, *, has_data: bool) -> list[str]:
        """Why this log does not tell all of the cluster."""
        if metadata.damage:
            return list(map(str, metadata.damage))
        if has_data and not metadata.end_offset:
            return ["it is empty, though there are partitions"]
        try:
            load_newest(self._world.disk, metadata.directory, metadata.start_offset, metadata.end_offset)
        except CorruptData as fault:
            return [str(fault)]
        return []


def _is_not_controller() -> Refused:
    return Refused(ErrorCode.NOT_CONTROLLER, "this broker does not lead the metadata log at present")


def _nobody_waits() -> None:
    """Until the broker is made."""


def _nobody_follows(changes: list[Change]) -> None:
    """Until the broker is open."""
