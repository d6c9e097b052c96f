"""Records of every shape that a topic can hold: with and without keys, values and headers, text and any bytes.

Nothing here is parsed, so nothing can be broken; some records are sent twice, and some are old, since an archive keeps
those too. What must come out is what went in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from pyspark_zurau.pipelines.generated import DUPLICATE, LATE, Generated

TOPICS = {"topics": "orders,payments"}


def generate(
    count: int, seed: int, *, start_ms: int, per_s: float, topics: Mapping[str, str]
) -> Iterator[tuple[str, Generated]]:
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    names = topics["topics"].split(",")
    last: Generated | None = None
    for number in range(count):
        timestamp_ms = start_ms + int(number * 1000 / per_s)
        if last is not None and chance.random() < 0.02:
            yield DUPLICATE, last
            continue
        kind = LATE if chance.random() < 0.02 else ""
        age_ms = chance.randint(1, 3 * 86_400_000) if kind == LATE else 0
        last = Generated(
            topic=chance.choice(names),
            key=None if chance.random() < 0.1 else b"key-%d" % chance.randrange(count),
            value=_value(chance),
            timestamp_ms=timestamp_ms - age_ms,
            headers=_headers(chance),
        )
        yield kind, last


def _value(chance: random.Random) -> bytes | None:
    draw = chance.random()
    if draw < 0.05:
        return None
    if draw < 0.1:
        return b""
    return chance.randbytes(chance.randrange(1, 200)) if draw < 0.5 else b"text %d" % chance.randrange(1 << 30)


def _headers(chance: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    values = (None, b"", b"x", bytes(range(256)))
    return tuple(
        (chance.choice(("trace", "trace", "größe")), chance.choice(values)) for _ in range(chance.randrange(3))
    )
