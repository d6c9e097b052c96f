"""How far a start is: a broker may have thousands of partitions to open, and whoever waits for it wants to know."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from zurau.machines.controller.image import TopicImage
from zurau.ports import Clock

log = logging.getLogger("zurau.broker")

#: How often a start that takes long says how far it is.
PROGRESS_MS = 2000


def with_progress(topics: Sequence[TopicImage], size: int, clock: Clock) -> Iterator[TopicImage]:
    """Topics in parts of `size` partitions, to be opened one after the other."""
    total, opened = sum(len(topic.partitions) for topic in topics), 0
    said_ms = clock.monotonic_ms()
    for topic in topics:
        for first in range(0, len(topic.partitions), size):
            if clock.monotonic_ms() - said_ms > PROGRESS_MS:
                said_ms = clock.monotonic_ms()
                log.info("starting: %d of %d partitions are open", opened + first, total)
            yield replace(topic, partitions=topic.partitions[first : first + size])
        opened += len(topic.partitions)
