"""What a broker does by itself from time to time: retention, compaction, forgetting silent producers.

Looking is cheap and happens on the loop, a few partitions at a time so that requests come in between; the heavy part
of compaction and every flush happen in workers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from zurau.broker.broker import Broker
from zurau.errors import DiskFault
from zurau.ids import TopicPartition
from zurau.partition.opening import producers_snapshot
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.ports import Timer
from zurau.settings import MIB

if TYPE_CHECKING:
    from zurau.log.compaction import CompactionJob

log = logging.getLogger("zurau.upkeep")

#: Partitions looked at before requests get their turn again.
AT_A_TIME = 50
#: A snapshot of the producers is worth writing when this much would have to be scanned without it.
SNAPSHOT_EVERY_BYTES = 64 * MIB


class Upkeep:
    """Goes round the broker's partitions, each kind of work at its own interval."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._timers: dict[str, Timer] = {}
        self._compacting = False
        self._snapshot_size: dict[TopicPartition, int] = {}

    def start(self) -> None:
        settings = self._broker.settings
        self._every(settings.log_retention_check_interval_ms, "retention", self._expire)
        self._every(settings.log_cleaner_backoff_ms, "compaction", self._compact)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(self, interval_ms: int, name: str, look: Callable[[Partition], None]) -> None:
        """Look at all partitions, then again after the interval."""

        def begin() -> None:
            go_on(deque(self._broker.partitions))

        def go_on(left: deque[TopicPartition]) -> None:
            for _ in range(min(AT_A_TIME, len(left))):
                partition = self._broker.partitions.get(left.popleft())
                if partition is not None:
                    self._look_safely(partition, look)
            if left:
                self._timers[name] = self._broker.clock.call_later(0, lambda: go_on(left))
            else:
                self._timers[name] = self._broker.clock.call_later(interval_ms, begin)

        self._timers[name] = self._broker.clock.call_later(interval_ms, begin)

    def _look_safely(self, partition: Partition, look: Callable[[Partition], None]) -> None:
        try:
            look(partition)
        except DiskFault as fault:
            log.warning("upkeep of %s failed and will be tried again: %s", partition.name, fault)

    def _expire(self, partition: Partition) -> None:
        now_ms = self._broker.clock.now_ms()
        removed = partition.log.expire(now_ms, partition.high_watermark)
        if removed:
            log.info("%s: %d old segments removed", partition.name, removed)
        self._remove_files(partition)
        partition.producers.expire(now_ms - self._broker.settings.producer_id_expiration_ms)
        self._snapshot_producers(partition)

    def _remove_files(self, partition: Partition) -> None:
        work = partition.log.take_removals()
        if work is not None:
            self._broker.workers.run(work)

    def _snapshot_producers(self, partition: Partition) -> None:
        size = partition.log.size_bytes
        if abs(size - self._snapshot_size.get(partition.name, 0)) < SNAPSHOT_EVERY_BYTES:
            return
        self._snapshot_size[partition.name] = size
        self._broker.workers.run(producers_snapshot(self._broker.world.disk, partition.log, partition.producers))

    def _compact(self, partition: Partition) -> None:
        """Compact at most one partition at a time: it reads and writes a lot."""
        if self._compacting or "compact" not in partition.log.settings.cleanup_policy:
            return
        job = partition.log.plan_compaction(self._broker.clock.now_ms(), partition.high_watermark)
        if job is not None:
            self._compacting = True
            self._broker.workers.run(job.run).then(lambda outcome: self._compacted(partition, job, outcome))

    def _compacted(self, partition: Partition, job: CompactionJob, outcome: Pending[None]) -> None:
        self._compacting = False
        if self._broker.partitions.get(partition.name) is not partition:
            return  # deleted meanwhile, with everything the job made
        try:
            # Also after a failure: what the job left behind has to go, and the next one may come.
            partition.log.finish_compaction(job)
            self._remove_files(partition)
            outcome.result()
            log.info("%s: compacted", partition.name)
        except DiskFault as fault:
            log.warning("compaction of %s failed and will be tried again: %s", partition.name, fault)
