"""What a request names more than once, where Kafka refuses that."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode

K = TypeVar("K", bound=Hashable)


async def repeated(names: Collection[K], call: Call) -> dict[K, None]:
    """Those that come more than once, in order."""
    seen: set[K] = set()
    twice: dict[K, None] = {}
    async for name in call.in_turns(names):
        if name in seen:
            twice[name] = None
        seen.add(name)
    return twice


def named_twice() -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, "named twice")
