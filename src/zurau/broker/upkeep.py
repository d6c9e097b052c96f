"""What a broker does by itself from time to time: retention, compaction, forgetting silent producers.

Looking is cheap and happens on the loop, a few partitions at a time so that requests come in between; the heavy part
of compaction and every flush happen in the background.

Compaction is for one partition at a time, each in its turn. Whatever fails is logged, counted, and tried again later
and later, so that one damaged partition takes neither the turns of the others nor the log. Removals and snapshots are
for one partition at a time too: thousands may expire in one round, and somebody waits for the log's start to be moved.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from zurau.broker.broker import Broker
from zurau.broker.outcomes import failure_in, tried
from zurau.errors import Abandoned, DiskFault, FlushFailed
from zurau.ids import TopicPartition
from zurau.partition.fair_queue import FairQueue
from zurau.partition.opening import producers_snapshot
from zurau.partition.partition import Partition
from zurau.pending import Pending, start
from zurau.ports import Timer
from zurau.settings import MIB

if TYPE_CHECKING:
    from zurau.log.compaction import CompactionJob

log = logging.getLogger("zurau.upkeep")

#: Partitions looked at before requests get their turn again.
AT_A_TIME = 50
#: A snapshot of the producers is worth writing when this much would have to be scanned without it.
SNAPSHOT_EVERY_BYTES = 64 * MIB

RETENTION, COMPACTION, REMOVAL, SNAPSHOT = "retention", "compaction", "removal of files", "snapshot of the producers"


class Upkeep:
    """Goes round the broker's partitions, each kind of work at its own interval."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._troubles = broker.troubles
        self._timers: dict[str, Timer] = {}
        #: What to compact next: each partition once, in the order in which it was found to be due.
        self._to_compact: dict[TopicPartition, None] = {}
        self._compacting: CompactionJob | None = None
        self._snapshot_size: dict[TopicPartition, int] = {}
        self._chores = FairQueue(broker.world.background)

    def start(self) -> None:
        settings = self._broker.settings
        self._every(settings.log_retention_check_interval_ms, RETENTION, self._expire)
        self._every(settings.log_cleaner_backoff_ms, COMPACTION, self._compact_in_turn)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._to_compact.clear()
        self._chores.close(lambda: Abandoned("the broker stops"))
        if self._compacting is not None:
            self._compacting.abandon()

    def _every(self, interval_ms: int, job: str, look: Callable[[Partition], bool]) -> None:
        """Look at all partitions, then again after the interval. `look` says whether there is more to do at once."""

        def begin() -> None:
            go_on(deque(self._broker.partitions))

        def go_on(left: deque[TopicPartition]) -> None:
            for _ in range(min(AT_A_TIME, len(left))):
                partition = self._broker.partitions.get(left.popleft())
                if partition is None or self._troubles.is_resting(job, partition.name):
                    continue
                if self._try(job, partition, partial(look, partition)):
                    left.appendleft(partition.name)
                    break
                if self._broker.world.turns.is_over():
                    break
            if left:
                self._timers[job] = self._broker.clock.call_later(0, lambda: go_on(left))
            else:
                self._timers[job] = self._broker.clock.call_later(interval_ms, begin)

        self._timers[job] = self._broker.clock.call_later(interval_ms, begin)

    def _try(self, job: str, partition: Partition, work: Callable[[], bool]) -> bool:
        """What the work returns. A failure that shows in one partition must not end the round."""
        return tried(work, partial(self._troubles.failed, job, partition.name)) or False

    def _run(self, job: str, partition: Partition, work: Callable[[], Any]) -> None:
        """Have done in its turn what nobody waits for."""
        self._chores.run(job, work).then(partial(self._ended, job, partition))

    def _ended(self, job: str, partition: Partition, outcome: Pending[Any]) -> None:
        self._note(job, partition, outcome.error)

    def _note(self, job: str, partition: Partition, failure: BaseException | None) -> None:
        if failure is None:
            self._troubles.worked(job, partition.name)
        elif self._is_here(partition) and not isinstance(
            failure, Abandoned
        ):  # or else it was deleted meanwhile, and nobody misses the work
            self._troubles.failed(job, partition.name, failure)

    def _is_here(self, partition: Partition) -> bool:
        return self._broker.partitions.get(partition.name) is partition

    # Retention

    def _expire(self, partition: Partition) -> bool:
        offset = partition.log.start_to_write_down(self._broker.clock.now_ms(), partition.safe_high_watermark)
        if offset is None:
            return self._remove_expired(partition)
        start(partition.move_start(offset)).then(partial(self._start_written, partition))
        return False

    def _start_written(self, partition: Partition, outcome: Pending[None]) -> None:
        """Now the segments before it can go. If there is no room even to write it down, the log copes with that."""
        failure = outcome.error
        if failure is None or (isinstance(failure, DiskFault) and not isinstance(failure, FlushFailed)):
            self._remove_all_expired(partition)
        else:
            self._note(RETENTION, partition, failure)

    def _remove_all_expired(self, partition: Partition) -> None:
        is_stopped = not self._timers
        if is_stopped or not self._is_here(partition):
            return
        if self._try(RETENTION, partition, partial(self._remove_expired, partition)):
            self._broker.clock.call_later(0, partial(self._remove_all_expired, partition))

    def _remove_expired(self, partition: Partition) -> bool:
        """Some of them; whether there were any."""
        now_ms = self._broker.clock.now_ms()
        removed = partition.log.expire(now_ms, partition.safe_high_watermark)
        self._troubles.worked(RETENTION, partition.name)
        if removed:
            partition.start_moved()
            log.info("%s: %d old segments removed", partition.name, removed)
        self._remove_files(partition)
        if removed:
            return True
        partition.producers.expire(now_ms - self._broker.settings.producer_id_expiration_ms)
        self._snapshot_producers(partition)
        return False

    def _remove_files(self, partition: Partition) -> None:
        work = partition.log.take_removals()
        if work is not None:
            self._run(REMOVAL, partition, work)

    def _snapshot_producers(self, partition: Partition) -> None:
        size = partition.log.size_bytes
        is_resting = self._troubles.is_resting(SNAPSHOT, partition.name)
        if is_resting or abs(size - self._snapshot_size.get(partition.name, 0)) < SNAPSHOT_EVERY_BYTES:
            return
        work = producers_snapshot(self._broker.world.disk, partition.log, partition.producers)

        def snapshot() -> None:
            work()
            self._snapshot_size[partition.name] = size

        self._run(SNAPSHOT, partition, snapshot)

    # Compaction

    def _compact_in_turn(self, partition: Partition) -> bool:
        if "compact" in partition.log.settings.cleanup_policy:
            self._to_compact[partition.name] = None
            self._compact_next()
        return False

    def _compact_next(self) -> None:
        """Compact at most one partition at a time: it reads and writes a lot."""
        while self._to_compact and not self._compacting:
            name = next(iter(self._to_compact))
            del self._to_compact[name]
            partition = self._broker.partitions.get(name)
            if partition is not None:
                self._try(COMPACTION, partition, partial(self._compact, partition))

    def _compact(self, partition: Partition) -> bool:
        job = partition.log.plan_compaction(self._broker.clock.now_ms(), partition.high_watermark)
        if job is not None:
            self._compacting = job
            self._broker.world.background.run(job.run).then(partial(self._compacted, partition, job))
        return False

    def _compacted(self, partition: Partition, job: CompactionJob, outcome: Pending[None]) -> None:
        self._compacting = None
        if self._is_here(partition):  # or else everything the job made is deleted with it
            # Also after a failure: what the job left behind has to go, and the next one may come.
            finishing = failure_in(lambda: partition.log.finish_compaction(job))
            self._remove_files(partition)
            failure = outcome.error or finishing
            self._note(COMPACTION, partition, failure)
            if failure is None:
                log.info("%s: compacted", partition.name)
                self._to_compact[partition.name] = None  # there may be more: a job takes some segments at a time
        self._compact_next()
