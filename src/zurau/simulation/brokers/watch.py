"""Looks into brokers after each step of their loops: what they have committed never changes.

Each partition's committed log is kept as a checksum for each batch, fed from whichever broker's high watermark gets
there first. Everybody else who gets there has to have the same bytes; so has everybody who comes back after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from zurau.broker.broker import Broker
from zurau.errors import CorruptData, DiskFault
from zurau.ids import Epoch, Offset, TopicId
from zurau.machines.controller.image import ClusterImage
from zurau.partition.partition import Partition
from zurau.records.batch import iter_batches
from zurau.replica.core.identity import PartitionId
from zurau.simulation.brokers.invariants import broken, require

if TYPE_CHECKING:
    from zurau.simulation.brokers.node import SimulatedNode

_READ_BYTES = 1 << 20


class CommittedLog:
    """One partition, whoever holds it."""

    def __init__(self) -> None:
        self.end: Offset = 0
        #: The last in which something was committed.
        self.epoch: Epoch = -1
        #: The last whose leader knew what was committed.
        self.led_in: Epoch = -1
        self.sums: dict[Offset, int] = {}


class Watch:
    def __init__(self) -> None:
        self._logs: dict[tuple[TopicId, int], CommittedLog] = {}
        #: For each partition object, which lives as long as its process, up to where it has been compared.
        self._compared: dict[Partition, Offset] = {}
        #: And the last epoch in which something was committed before it came.
        self._epochs_before: dict[Partition, Epoch] = {}
        #: Who led in which epoch.
        self._leaders: dict[tuple[TopicId, int, Epoch], tuple[Partition, str]] = {}
        #: Those that lead, and know what is committed.
        self._leading: set[Partition] = set()
        #: Up to where each broker's image was looked at.
        self._images: dict[Broker, int] = {}

    def opened(self, node: SimulatedNode, broker: Broker) -> None:
        """It has started, with what its disk has."""
        damage = [f"{name}: {one}" for name, it in broker.partitions.items() for one in it.log.damage]
        damage += broker.journal.damage
        require(not damage or node.is_damaged, "NoFalseDamage", f"{node}: {damage[:3]}")
        self.look(node, broker, list(broker.replication._shells))

    def look(self, node: SimulatedNode, broker: Broker, touched: Iterable[PartitionId]) -> None:
        """At partitions whose replicas have been told something."""
        if self._images.get(broker) != broker.image.epoch:
            self._images[broker] = broker.image.epoch
            self._look_at_image(node, broker.image)
        compared = self._compared
        for key in touched:
            shell = broker.replication._shells.get(key)
            if shell is None:
                continue
            partition: Partition = shell._owner  # type: ignore[assignment]
            high_watermark = partition.high_watermark
            if compared.get(partition) != high_watermark:
                self._moved(node, partition, high_watermark)
            if partition.leads:
                self._leads(node, partition)
            if partition.is_established and partition not in self._leading:
                self._is_established(node, partition)
            if partition.shell.is_settled and not partition.shell.is_stopped:
                self._fits(node, partition)

    def _look_at_image(self, node: SimulatedNode, image: ClusterImage) -> None:
        """Who leads by the word of the controller is there, and in sync."""
        for key, partition in image.partitions():
            leader = partition.leader
            if leader is not None:
                known = image.brokers.get(leader.broker)
                may_lead = known is not None and not known.is_fenced and leader in partition.in_sync
                require(may_lead, "LeadersAreThere", f"{node} knows {leader} as leader of {key}: {known}")

    def _fits(self, node: SimulatedNode, partition: Partition) -> None:
        """What the core believes of its log is so."""
        believed, log = partition.shell.core.log, partition.log
        start = max(believed.start_offset, log.start_offset)
        found = [mark for mark in log.epochs.marks if mark.start_offset > start]
        marks = [mark for mark in believed.epochs.marks if mark.start_offset > start]
        fits = believed.end_offset == log.end_offset and marks == found
        seen = f"{partition.name} on {node}: {believed.position} and {marks}; its log has {log.position} and {found}"
        require(fits, "CoreKnowsItsLog", seen)

    def _moved(self, node: SimulatedNode, partition: Partition, high_watermark: Offset) -> None:
        log = self._log_of(partition)
        before = self._compared.get(partition)
        if before is None:
            before = partition.log.start_offset
            self._epochs_before[partition] = log.epoch
        seen = f"{partition.name} on {node}: {high_watermark} after {before}"
        require(high_watermark >= before, "HighWatermarkNeverGoesBack", seen)
        self._compared[partition] = high_watermark
        if "compact" not in partition.log.settings.cleanup_policy:
            with node.disk.looked_into():
                self._compare(node, partition, before, high_watermark, log)
        log.end = max(log.end, high_watermark)

    def _leads(self, node: SimulatedNode, partition: Partition) -> None:
        epoch = (partition.topic_id, partition.name.partition, partition.leader_epoch)
        known = self._leaders.setdefault(epoch, (partition, f"{node}, start {node.start_count}"))
        if known[0] is not partition:
            seen = f"{node}, start {node.start_count} leads {partition.name} in epoch {epoch[2]}, as did {known[1]}"
            broken("OneLeaderPerEpoch", seen)

    def _is_established(self, node: SimulatedNode, partition: Partition) -> None:
        """It has become a leader who knows what is committed."""
        self._leading.add(partition)
        log = self._log_of(partition)
        seen = f"{partition.name} on {node} leads up to {partition.high_watermark}, and {log.end} was committed"
        # One that is behind and hears only now that it leads may have a successor already: nothing of its own counts.
        is_deposed = partition.leader_epoch < log.led_in
        require(is_deposed or partition.high_watermark >= log.end, "CommittedLogNeverChanges", seen)
        log.led_in = max(log.led_in, partition.leader_epoch)
        epoch, before = partition.leader_epoch, self._epochs_before[partition]
        require(
            epoch > before, "EpochsNeverGoBack", f"{partition.name} on {node} leads in epoch {epoch} after {before}"
        )

    def _log_of(self, partition: Partition) -> CommittedLog:
        return self._logs.setdefault((partition.topic_id, partition.name.partition), CommittedLog())

    def _compare(
        self, node: SimulatedNode, partition: Partition, offset: Offset, upto: Offset, log: CommittedLog
    ) -> None:
        offset = max(offset, partition.log.start_offset)  # a snapshot may have taken the place of what was before
        while offset < upto:
            try:
                data = partition.log.read(offset, _READ_BYTES, upto, may_block=True)
            except DiskFault as fault:
                if node.is_damaged and isinstance(fault, CorruptData):
                    return
                broken("CommittedLogNeverChanges", f"{partition.name} cannot be read at {offset}: {fault}")
            if not data:
                return
            for header, batch in iter_batches(memoryview(data)):
                if node.is_damaged:
                    return  # by now it may read otherwise; clients and the others would see it
                found = crc32(batch)
                known = log.sums.setdefault(header.base_offset, found)
                seen = f"{partition.name}: the batch at {header.base_offset} is another one"
                require(found == known, "CommittedLogNeverChanges", seen)
                log.epoch = max(log.epoch, header.leader_epoch)
                offset = header.next_offset
