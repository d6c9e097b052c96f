"""A bound on what the producers of all partitions take in memory together.

Ids are for clients to choose, and one can write with thousands of them to thousands of partitions. When there are too
many, those that have been silent longest are forgotten, as after `producer.id.expiration.ms`, in the partitions that
have most: whoever invents ids loses his own first, and a partition with few producers loses none.

What a producer that was forgotten sends next is taken, whatever its sequence number. Only a batch that it repeats
after all that time would be stored twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from zurau.partition.producers import Producers

log = logging.getLogger("zurau.partition")

#: Of one producer that has written five batches or more.
PRODUCER_BYTES = 1056
#: When there are too many, so many in a thousand are forgotten at once: looking for them takes a while.
FORGOTTEN_PER_MILLE = 30


class ProducerMemory:
    """That of one broker."""

    __slots__ = ("_bound", "_everyone", "_producers_max")

    def __init__(self, bytes_max: int, everyone: Callable[[], Iterable[Producers]]) -> None:
        """`everyone`: the producers of each partition."""
        self._producers_max = bytes_max // PRODUCER_BYTES
        self._everyone = everyone
        #: There are at most so many: ones that left have not been counted.
        self._bound = 0

    def added(self, count: int) -> None:
        """So many have come."""
        self._bound += count
        if self._bound > self._producers_max:
            self._count_again()

    def _count_again(self) -> None:
        counts = [(len(producers), producers) for producers in self._everyone()]
        self._bound = sum(count for count, _ in counts)
        if self._bound <= self._producers_max:
            return
        wanted = self._producers_max * (1000 - FORGOTTEN_PER_MILLE) // 1000
        kept = _level((count for count, _ in counts), wanted)
        for _, producers in counts:
            producers.keep(kept)
        left = sum(len(producers) for _, producers in counts)
        log.warning(
            "%d producers that were silent longest are forgotten, in partitions with more than %d: there are more than "
            "zurau.producers.memory.max.bytes allows, as clients cause that make a new producer for every few records",
            self._bound - left,
            kept,
        )
        self._bound = left


def _level(counts: Iterable[int], wanted: int) -> int:
    """How many each may keep, so that all together keep about what is wanted; the one that wrote last always stays."""
    largest_first = sorted(counts, reverse=True)
    while largest_first[-1] <= wanted // len(largest_first):
        wanted -= largest_first.pop()
    return max(wanted // len(largest_first), 1)
