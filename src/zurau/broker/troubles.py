"""What fails in the background: logged when it begins and ends, counted, and left alone for longer and longer."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from zurau.broker.outcomes import report
from zurau.ids import TopicPartition
from zurau.ports import Clock
from zurau.settings import MINUTE_MS, SECOND_MS

log = logging.getLogger("zurau.upkeep")

#: How long work that failed is left alone at first; twice as long each time, and at most.
REST_MS = 30 * SECOND_MS
REST_MAX_MS = 15 * MINUTE_MS


class Trouble(msgspec.Struct, eq=False):
    """One kind of work on one partition that does not succeed."""

    job: str
    partition: TopicPartition
    failure: BaseException
    count: int
    rests_until_ms: float


class Troubles:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[tuple[str, TopicPartition], Trouble] = {}
        #: Kinds of work that ever failed.
        self._jobs: set[str] = set()
        #: Of any kind, since the broker started.
        self.failure_count = 0

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._troubles.values())

    def failed(self, job: str, partition: TopicPartition, failure: BaseException) -> None:
        self.failure_count += 1
        self._jobs.add(job)
        before = self._troubles.get((job, partition))
        if before is None or str(before.failure) != str(failure):
            report(f"{job} of {partition} failed and will be tried again", failure)
        count = before.count + 1 if before is not None else 1
        rest_ms = min(REST_MAX_MS, REST_MS << min(count - 1, 16))
        self._troubles[job, partition] = Trouble(job, partition, failure, count, self._clock.monotonic_ms() + rest_ms)

    def worked(self, job: str, partition: TopicPartition) -> None:
        if self._troubles.pop((job, partition), None) is not None:
            log.info("%s of %s works again", job, partition)

    def is_resting(self, job: str, partition: TopicPartition) -> bool:
        trouble = self._troubles.get((job, partition))
        return trouble is not None and trouble.rests_until_ms > self._clock.monotonic_ms()

    def forget(self, partition: TopicPartition) -> None:
        """It is gone."""
        for job in self._jobs:
            self._troubles.pop((job, partition), None)
