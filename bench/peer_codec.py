"""What it costs to say something to another broker: `python bench/peer_codec.py`.

Requests and responses of fetch sessions to frames and back, with one partition in a frame and with a hundred. The
records of a batch are neither copied nor looked at, so their size does not matter. `us` are microseconds of CPU on this
machine; the ratio is against pickle in the same run, which does the same work in C without checking anything.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import time
from collections.abc import Callable
from typing import Any

from measure import Spread, show
from zurau.broker.peers.decoding import decode_session
from zurau.broker.peers.encoding import encode_session
from zurau.epochs import Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import Fetch, Fetched, HighWatermark, Message
from zurau.replica.session.messages import SessionRequest, SessionResponse

LEADER, FOLLOWER = (ReplicaId(BrokerId(number), f"directory-{number}") for number in (1, 2))
RECORDS = bytes(100)
PARTITIONS = (1, 100)
#: So many messages are made into frames and back in one measurement.
MESSAGES = 20_000

Said = SessionRequest | SessionResponse


def fetches(count: int) -> Said:
    messages = _addressed(count, lambda at: Fetch(FOLLOWER, 3, 1 << 20, Position(3, at), at))
    return SessionRequest(1 << 40, 1 << 20, messages, (), 1 << 40)


def fetched(count: int) -> Said:
    return _response(count, lambda at: Fetched(LEADER, 3, 1 << 20, at, (), (Batch(3, at, 1, RECORDS),)))


def high_watermarks(count: int) -> Said:
    return _response(count, lambda at: HighWatermark(LEADER, 3, 1 << 20, at))


def _response(count: int, make: Callable[[int], Message]) -> Said:
    return SessionResponse(1 << 40, 1 << 20, _addressed(count, make), (), False, 1 << 40)


def _addressed(count: int, make: Callable[[int], Message]) -> tuple[tuple[PartitionId, Message], ...]:
    return tuple((PartitionId(TopicId(bytes(16)), number), make((1 << 30) + number)) for number in range(count))


KINDS = {"Fetch": fetches, "Fetched, a batch": fetched, "HighWatermark": high_watermarks}


def us_a_call(call: Callable[[Any], object], argument: Any, count: int) -> float:
    gc.disable()
    began_ns = time.thread_time_ns()
    for _ in range(count):
        call(argument)
    took_ns = time.thread_time_ns() - began_ns
    gc.enable()
    return took_ns / count / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer messages and repeats")
    messages, repeats = (MESSAGES // 10, 2) if parser.parse_args().quick else (MESSAGES, 5)
    cells: dict[tuple[str, int], list[list[float]]] = {}
    sizes: dict[tuple[str, int], int] = {}
    for _ in range(repeats):
        for kind, make in KINDS.items():
            for partitions in PARTITIONS:
                said, count = make(partitions), messages // partitions
                frame = memoryview(b"".join(encode_session(said)))[4:]
                sizes[kind, partitions] = (len(frame) + 4) // partitions
                pickled = pickle.dumps(said)
                measured = [
                    us_a_call(encode_session, said, count),
                    us_a_call(decode_session, frame, count),
                    us_a_call(pickle.dumps, said, count) + us_a_call(pickle.loads, pickled, count),
                ]
                cells.setdefault((kind, partitions), []).append([us / partitions for us in measured])
    rows: dict[str, list[Any]] = {}
    for (kind, partitions), repeated in cells.items():
        encode, decode, both = (Spread(values).best for values in zip(*repeated, strict=True))
        name = f"{kind}, {partitions} in a frame"
        rows[name] = [sizes[kind, partitions], encode, decode, encode + decode, f"{(encode + decode) / both:.2f}x"]
    show(
        "A message between brokers, there and back",
        ["bytes", "us to encode", "us to decode", "together", "pickle = 1"],
        rows,
        "For each message; best of all repeats. The frame's own cost is in it, so one message alone costs most.",
    )


if __name__ == "__main__":
    main()
