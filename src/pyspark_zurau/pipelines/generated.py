"""What generators give: records that are to be produced, and the way into a broker.

A record carries its own timestamp, so the same seed gives the same data at any speed and on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from zurau.client.producer import Producer

#: Kinds of generated data, beside what is simply good.
DUPLICATE, LATE, TOO_LATE, BROKEN = "duplicate", "late", "too late", "broken"


class Generated(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None


def produce(
    records: Iterable[Generated],
    producer: Producer,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Hand every record to the producer, and return how many were acknowledged: all of them, or this raises."""
    count = 0
    for record in records:
        producer.send(
            record.topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
        count += 1
        advance(1)
    producer.flush()
    return count


def at_rate(records: Iterable[Generated], rate: float, idle: Callable[[], None]) -> Iterator[Generated]:
    """The same records, `rate` of them in a second; `idle` is called while waiting. A rate of 0 does not wait."""
    began_s = time.monotonic()
    for number, record in enumerate(records):
        while rate and (wait_s := began_s + number / rate - time.monotonic()) > 0:
            idle()
            time.sleep(min(wait_s, 0.02))
        yield record
