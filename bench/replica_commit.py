"""What a commit costs the replica core: `python bench/replica_commit.py`.

Three brokers hold partitions in quorum mode; the first leads all of them. Records are written one after the other
(*isolated*: everything comes to rest before the next), or to all partitions in one tick. Only the cores run, replicas
and sessions, in virtual time: what is counted is the time spent inside them on all three brokers, until every follower
knows the new high watermark. Codec, sockets and disks come on top. `us` are microseconds of this machine; the ratio is
against a plain dict operation measured in the same run, which says the same on any machine.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from measure import Spread, show
from zurau.ids import BrokerId, TopicId
from zurau.replica.effects import Announce, ReadAndSend, Send, StartFlush
from zurau.replica.events import Event, Flushed, Received, RecordsOffered, TimePassed
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.log_view import LogView
from zurau.replica.membership import Membership
from zurau.replica.messages import Fetched
from zurau.replica.position import Batch
from zurau.replica.replica import Replica
from zurau.replica.roles import Role
from zurau.replica.settings import NEVER_MS, ReplicaSettings
from zurau.replica.streams import Streams
from zurau.simulation.world import SeededRandomness

SETTINGS = ReplicaSettings()
BROKERS = tuple(BrokerId(number) for number in (1, 2, 3))
VOTERS = tuple(ReplicaId(broker, "a") for broker in BROKERS)
#: Long enough for the high watermark to reach followers that get no further records.
REST_MS = 300
ISOLATED_US, TICK_US = 100, 30


class Trio:
    """Three brokers, and what happens when. Messages and flushes take no time, in the order in which they begin."""

    def __init__(self, partitions: int) -> None:
        self.now_ms = 0
        self.steps = self.messages = 0
        self.core_ns = 0
        self.soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.partitions = [PartitionId(TopicId(bytes(16)), index) for index in range(partitions)]
        self.brokers = {broker: Broker(self, broker) for broker in BROKERS}
        for broker in self.brokers.values():
            for partition in self.partitions:
                broker.place(partition)
        self.run_for(SETTINGS.fetch_timeout_ms)
        first = self.brokers[BROKERS[0]]
        while not all(first.replicas[partition].is_established for partition in self.partitions):
            self.run_for(SETTINGS.fetch_wait_ms)
        self.run_for(2000)

    def at(self, at_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._later, (at_ms, self._count, act))

    def run_for(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while True:
            while self.soon:
                # What arrives in one tick is handled before anything is sent.
                for _ in range(len(self.soon)):
                    self.soon.popleft()()
                for broker in self.brokers.values():
                    broker.pump()
            if not self._later or self._later[0][0] > until_ms:
                break
            self.now_ms = self._later[0][0]
            while self._later and self._later[0][0] == self.now_ms:
                self.soon.append(heapq.heappop(self._later)[2])
        self.now_ms = until_ms

    def write(self, partition: PartitionId) -> None:
        leader = self.brokers[BROKERS[0]]
        self.soon.append(lambda: leader.tell(partition, RecordsOffered(b"x" * 100, 1)))

    def in_core(self, call: Callable[..., Any], *arguments: Any) -> Any:
        began_ns = time.perf_counter_ns()
        result = call(*arguments)
        self.core_ns += time.perf_counter_ns() - began_ns
        return result


class Broker:
    def __init__(self, trio: Trio, broker: BrokerId) -> None:
        self.id = broker
        self._trio = trio
        self._streams = Streams(SETTINGS, SeededRandomness(broker))
        self.replicas: dict[PartitionId, Replica] = {}
        self._logs: dict[PartitionId, list[Batch]] = {}
        self._wakes: dict[PartitionId | None, int] = {}

    def place(self, partition: PartitionId) -> None:
        self._logs[partition] = []
        self.replicas[partition] = Replica(
            ReplicaId(self.id, "a"),
            brokers=BROKERS,
            log=LogView(),
            membership=Membership(VOTERS),
            epoch=0,
            voted_for=None,
            high_watermark=0,
            settings=SETTINGS,
            # The first broker is the first to stand for election.
            randomness=_Fixed(0 if self.id == BROKERS[0] else 400),
        )
        self._trio.soon.append(lambda: self.tell(partition, TimePassed()))

    def tell(self, partition: PartitionId, event: Event) -> None:
        trio, replica = self._trio, self.replicas[partition]
        trio.steps += 1
        for effect in trio.in_core(replica.step, event, trio.now_ms):
            match effect:
                case Send(to, message):
                    trio.in_core(self._streams.send, to, partition, message)
                case ReadAndSend(to, message, from_offset):
                    found = tuple(each for each in self._logs[partition][-4:] if each.base_offset >= from_offset)
                    trio.in_core(self._streams.send, to, partition, _with_batches(message, found))
                case StartFlush(number):
                    trio.soon.append(lambda number=number: self.tell(partition, Flushed(number)))  # type: ignore[misc]
                case Announce(role, epoch):
                    assert self.id == BROKERS[0] or role is not Role.LEADER, "the first broker leads"
                    self._streams.turned(partition, role, epoch)
                case _:
                    self._logs[partition] += [each for each in getattr(effect, "items", ()) if isinstance(each, Batch)]
        self._wake(partition, trio.in_core(lambda: replica.deadline_ms), lambda: self.tell(partition, TimePassed()))

    def hear(self, sender: BrokerId, it: Any) -> None:
        trio, streams = self._trio, self._streams
        trio.messages += 1
        said = trio.in_core(streams.heard, sender, it, trio.now_ms)
        self._send(trio.in_core(streams.replies))
        self._pass_on_notices()
        for partition, message in said:
            self.tell(partition, Received(message))

    def pump(self) -> None:
        trio, streams = self._trio, self._streams
        self._pass_on_notices()
        self._send(trio.in_core(streams.due, trio.now_ms))
        self._pass_on_notices()
        self._wake(None, streams.deadline_ms or NEVER_MS, lambda: None)

    def _send(self, messages: list[tuple[BrokerId, Any]]) -> None:
        for to, it in messages:
            self._trio.soon.append(lambda to=to, it=it: self._trio.brokers[to].hear(self.id, it))  # type: ignore[misc]

    def _pass_on_notices(self) -> None:
        for partition, event in self._trio.in_core(self._streams.notices):
            self.tell(partition, event)

    def _wake(self, whom: PartitionId | None, at_ms: int, act: Callable[[], None]) -> None:
        if at_ms < NEVER_MS and self._wakes.get(whom) != at_ms:
            self._wakes[whom] = at_ms
            self._trio.at(at_ms, lambda: act() if self._wakes.get(whom) == at_ms else None)


class _Fixed:
    """Chance that always says the same."""

    def __init__(self, value: int) -> None:
        self._value = value

    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        return min(self._value, bound - 1)


def _with_batches(message: Fetched, batches: tuple[Batch, ...]) -> Fetched:
    return Fetched(message.sender, message.epoch, message.fetch_id, message.high_watermark, message.marks, batches)


class Measured:
    """What a number of commits cost, each."""

    def __init__(self, trio: Trio, commits: int, write: Callable[[int], None]) -> None:
        steps, messages, core_ns = trio.steps, trio.messages, trio.core_ns
        for index in range(commits):
            write(index)
        self.steps = trio.steps - steps
        self.messages = trio.messages - messages
        self.us = (trio.core_ns - core_ns) / 1000


def in_turn(active: int, commits: int) -> Measured:
    """Commits in turn over so many partitions that have all been written to a moment ago."""
    trio = Trio(active)

    def write(index: int) -> None:
        trio.write(trio.partitions[index % active])
        trio.run_for(0)

    for index in range(active):
        write(index)
    measured = Measured(trio, commits, write)
    trio.run_for(REST_MS)
    return measured


def at_rest(commits: int) -> Measured:
    trio = Trio(1)

    def write(_: int) -> None:
        trio.write(trio.partitions[0])
        trio.run_for(REST_MS)

    return Measured(trio, commits, write)


def one_tick(partitions: int, ticks: int) -> Measured:
    trio = Trio(partitions)

    def write(_: int) -> None:
        for partition in trio.partitions:
            trio.write(partition)
        trio.run_for(REST_MS)

    return Measured(trio, ticks, write)


def dict_operation_us() -> float:
    """The limit: one lookup and one store in a dict, in a loop."""
    table, count = dict.fromkeys(range(1000), 0), 200_000
    began_s = time.perf_counter()
    for index in range(count):
        table[index % 1000] = table[(index + 1) % 1000] + 1
    return (time.perf_counter() - began_s) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer commits and repeats")
    commits, repeats = (100, 2) if parser.parse_args().quick else (400, 5)
    kinds: dict[str, tuple[int, Callable[[], Measured]]] = {
        "isolated, 1 partition": (commits, lambda: at_rest(commits)),
        "in turn, 1 active": (commits, lambda: in_turn(1, commits)),
        "in turn, 10 active": (commits, lambda: in_turn(10, commits)),
        "in turn, 50 active": (commits, lambda: in_turn(50, commits)),
        "in turn, 200 active": (commits, lambda: in_turn(200, commits)),
        "100 partitions in one tick": (100 * (commits // 20), lambda: one_tick(100, commits // 20)),
    }
    rows: dict[str, list[Any]] = {}
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    limits: list[float] = []
    for _ in range(repeats):
        limits.append(dict_operation_us())
        for kind, (count, measure) in kinds.items():
            measured = measure()
            found[kind].append(measured.us / count)
            rows[kind] = [f"{measured.steps / count:.1f}", f"{measured.messages / count:.2f}"]
    limit_us = min(limits)
    for kind, values in found.items():
        spread = Spread(values)
        rows[kind] += [spread.best, spread.median, f"{spread.best / limit_us:,.0f}x"]
    show(
        "A commit on three replicas, all cores together",
        ["steps", "messages", "us, best", "median", "a dict operation = 1"],
        rows,
        f"For each commit. Budget: {ISOLATED_US} us isolated, {TICK_US} us in a tick of 100 partitions.",
    )


if __name__ == "__main__":
    main()
