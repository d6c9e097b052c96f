"""Orders that change, and are removed; and the table that must come out.

The topic's order is the truth: of an order's records the last one counts, and a tombstone (a key without a value)
removes it. Some records are sent twice and some are broken.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, Generated

TOPICS = {"orders": "orders"}
REMOVED = "removed"
STATES = ("placed", "paid", "packed", "sent")
CHANCES = {DUPLICATE: 0.03, BROKEN: 0.03, REMOVED: 0.05}


@dataclass(frozen=True)
class Order:
    kind: str
    changed_ms: int
    id: int
    customer: str
    state: str
    cents: int


def generate(
    count: int, seed: int, *, start_ms: int, per_s: float, topics: Mapping[str, str]
) -> Iterator[tuple[str, Generated]]:
    for order in make_orders(count, seed, start_ms=start_ms, per_s=per_s):
        yield order.kind, render(order, topics)


def make_orders(count: int, seed: int, *, start_ms: int, per_s: float = 50.0) -> Iterator[Order]:
    """So many changes; an order is changed four times, about."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    last: Order | None = None
    for number in range(count):
        changed_ms = start_ms + int(number * 1000 / per_s)
        kind = _choose_kind(chance)
        if kind == DUPLICATE and last is not None:
            yield replace(last, kind=DUPLICATE)
            continue
        kind = "" if kind == DUPLICATE else kind
        order = Order(
            kind=kind,
            changed_ms=changed_ms,
            id=chance.randrange(1 + count // 4),
            customer=f"customer {chance.randrange(100)}",
            state=chance.choice(STATES),
            cents=chance.randrange(100, 100_000),
        )
        last = order if kind == "" else last
        yield order


def render(order: Order, topics: Mapping[str, str]) -> Generated:
    facts = {
        "id": order.id,
        "customer": order.customer,
        "state": order.state,
        "cents": order.cents,
        "changed": datetime.fromtimestamp(order.changed_ms / 1000, UTC).isoformat(),
    }
    value: bytes | None = json.dumps(facts).encode()
    if order.kind == REMOVED:
        value = None
    elif order.kind == BROKEN:
        value = json.dumps(facts | {"cents": "many"}).encode()
    return Generated(topics["orders"], b"%d" % order.id, value, order.changed_ms)


def expect(orders: Iterable[Order]) -> dict[int, Order]:
    """The rows of the table, by id."""
    table: dict[int, Order] = {}
    for order in orders:
        if order.kind == REMOVED:
            table.pop(order.id, None)
        elif order.kind != BROKEN:
            table[order.id] = order
    return table


def _choose_kind(chance: random.Random) -> str:
    draw = chance.random()
    for kind, share in CHANCES.items():
        if draw < share:
            return kind
        draw -= share
    return ""
