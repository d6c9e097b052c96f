"""What a commit costs the replica core: `python bench/replica_commit.py`.

Three brokers hold partitions in quorum mode; the first leads all of them. A record is written by itself (*isolated*:
the next one follows when everybody knows the high watermark), or to all partitions in one tick. Only the cores run,
replicas and sessions, in virtual time. Every call of a core is recorded, and the recorded calls are made again on fresh
cores: what is measured is the CPU time of all calls on all three brokers, without whoever made them. Codec, sockets and
disks come on top. `us` are microseconds of this machine; the ratio is against a plain dict operation of the same run.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import time
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from measure import Spread, show
from zurau.ids import BrokerId, TopicId
from zurau.replica.core.effects import ReadAndSend, RoleChanged, Send, StartFlush
from zurau.replica.core.events import Event, Flushed, Received, RecordsWritten, TimePassed
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership
from zurau.replica.core.messages import Fetched
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS, ReplicaSettings
from zurau.replica.quorum.replica import Replica
from zurau.replica.session.sessions import Sessions
from zurau.simulation.world import SeededRandomness

SETTINGS = ReplicaSettings()
BROKERS = tuple(BrokerId(number) for number in (1, 2, 3))
VOTERS = tuple(ReplicaId(broker, "a") for broker in BROKERS)
#: Long enough for the high watermark to reach followers that get no further records; and for everybody to quiesce.
KNOWN_MS, REST_MS = 20, 300
ISOLATED_US, TICK_US = 100, 30


class Trio:
    """Three brokers, and what happens when. Messages and flushes take no time, in the order in which they begin."""

    def __init__(self, partitions: int) -> None:
        self.now_ms = 0
        self.steps = self.messages = 0
        #: Every call of a core: whose it is, its name, and its arguments.
        self.calls: list[tuple[BrokerId, PartitionId | None, str, tuple[Any, ...]]] = []
        self.touched: dict[Broker, None] = {}
        self.soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.partitions = [PartitionId(TopicId(bytes(16)), index) for index in range(partitions)]
        self.brokers = {broker: Broker(self, broker) for broker in BROKERS}
        for broker in self.brokers.values():
            for partition in self.partitions:
                broker.place(partition)

    def elect(self) -> None:
        for broker in self.brokers.values():
            for partition in self.partitions:
                self.soon.append(lambda broker=broker, partition=partition: broker.tell(partition, TimePassed()))  # type: ignore[misc]
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
                touched, self.touched = self.touched, {}
                for broker in touched:
                    broker.pump()
            if not self._later or self._later[0][0] > until_ms:
                break
            self.now_ms = self._later[0][0]
            while self._later and self._later[0][0] == self.now_ms:
                self.soon.append(heapq.heappop(self._later)[2])
        self.now_ms = until_ms

    def write(self, partition: PartitionId) -> None:
        leader = self.brokers[BROKERS[0]]
        self.soon.append(lambda: leader.write(partition))

    def replay(self, calls: list[tuple[BrokerId, PartitionId | None, str, tuple[Any, ...]]]) -> int:
        """Make these calls again; returns the nanoseconds of CPU that they took."""
        made: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        for broker, partition, name, arguments in calls:
            core: Any = self.brokers[broker].core(partition)
            made.append((attrgetter(name), (core,)) if name == "deadline_ms" else (getattr(core, name), arguments))
        gc.freeze()  # the recording is large, and nobody else's garbage
        began_ns = time.thread_time_ns()
        for call, arguments in made:
            call(*arguments)
        took_ns = time.thread_time_ns() - began_ns
        gc.unfreeze()
        return took_ns


class Broker:
    def __init__(self, trio: Trio, broker: BrokerId) -> None:
        self.id = broker
        self._trio = trio
        self._sessions = Sessions(SETTINGS, SeededRandomness(broker))
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

    def core(self, partition: PartitionId | None) -> Replica | Sessions:
        return self._sessions if partition is None else self.replicas[partition]

    def call(self, partition: PartitionId | None, name: str, *arguments: Any) -> Any:
        self._trio.calls.append((self.id, partition, name, arguments))
        found = getattr(self.core(partition), name)
        return found if name == "deadline_ms" else found(*arguments)

    def tell(self, partition: PartitionId, event: Event) -> None:
        trio = self._trio
        trio.touched[self] = None
        trio.steps += 1
        for effect in self.call(partition, "step", event, trio.now_ms):
            match effect:
                case Send(to, message):
                    self.call(None, "send", to, partition, message)
                case ReadAndSend(to, message, from_offset):
                    found = tuple(each for each in self._logs[partition][-4:] if each.base_offset >= from_offset)
                    self.call(None, "send", to, partition, _with_batches(message, found))
                case StartFlush(number):
                    trio.soon.append(lambda number=number: self.tell(partition, Flushed(number)))  # type: ignore[misc]
                case RoleChanged(role, epoch):
                    assert self.id == BROKERS[0] or role is not Role.LEADER, "the first broker leads"
                    self.call(None, "role_changed", partition, role, epoch)
                case _:
                    self._logs[partition] += [each for each in getattr(effect, "items", ()) if isinstance(each, Batch)]
        self._wake(partition, self.call(partition, "deadline_ms"), lambda: self.tell(partition, TimePassed()))

    def write(self, partition: PartitionId) -> None:
        """As a broker does: into the log first."""
        replica = self.replicas[partition]
        self._logs[partition].append(Batch(replica.epoch, replica.log.end_offset, 1, b"x" * 100))
        self.tell(partition, RecordsWritten(1))

    def hear(self, sender: BrokerId, it: Any) -> None:
        trio = self._trio
        trio.messages += 1
        trio.touched[self] = None
        said = self.call(None, "receive", sender, it, trio.now_ms)
        self._send(self.call(None, "replies"))
        self._pass_on_notices()
        for partition, message in said:
            self.tell(partition, Received(message))

    def pump(self) -> None:
        trio = self._trio
        self._send(self.call(None, "due", trio.now_ms))
        self._pass_on_notices()
        self._wake(None, self.call(None, "deadline_ms") or NEVER_MS, lambda: trio.touched.setdefault(self))

    def _send(self, messages: list[tuple[BrokerId, Any]]) -> None:
        for to, it in messages:
            self._trio.soon.append(lambda to=to, it=it: self._trio.brokers[to].hear(self.id, it))  # type: ignore[misc]

    def _pass_on_notices(self) -> None:
        for partition, event in self.call(None, "notices"):
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


def _empty_calls_ns(count: int) -> int:
    """What it takes to call nothing so often."""
    made = [((lambda *_: None), ())] * count
    began_ns = time.thread_time_ns()
    for call, arguments in made:
        call(*arguments)
    return time.thread_time_ns() - began_ns


class Measured:
    """What a number of commits cost."""

    def __init__(self, trio: Trio, commits: int, write: Callable[[int], None]) -> None:
        steps, messages, before = trio.steps, trio.messages, len(trio.calls)
        for index in range(commits):
            write(index)
        self.steps = trio.steps - steps
        self.messages = trio.messages - messages
        again, measured = Trio(len(trio.partitions)), trio.calls[before:]
        again.replay(trio.calls[:before])
        self.us = (again.replay(measured) - _empty_calls_ns(len(measured))) / 1000


def in_turn(active: int, commits: int, between_ms: int) -> Measured:
    """Commits in turn over so many partitions, and so long between them."""
    trio = Trio(active)
    trio.elect()

    def write(index: int) -> None:
        trio.write(trio.partitions[index % active])
        trio.run_for(between_ms)

    for index in range(active):
        write(index)
    return Measured(trio, commits, write)


def one_tick(partitions: int, ticks: int, between_ms: int) -> Measured:
    """Commits of all partitions at once."""
    trio = Trio(partitions)
    trio.elect()

    def write(_: int) -> None:
        for partition in trio.partitions:
            trio.write(partition)
        trio.run_for(between_ms)

    return Measured(trio, ticks, write)


def dict_operation_us() -> float:
    """The limit: one lookup and one store in a dict, in a loop."""
    table, count = dict.fromkeys(range(1000), 0), 200_000
    began_ns = time.thread_time_ns()
    for index in range(count):
        table[index % 1000] = table[(index + 1) % 1000] + 1
    return (time.thread_time_ns() - began_ns) / count / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer commits and repeats")
    commits, repeats = (100, 2) if parser.parse_args().quick else (400, 5)
    kinds: dict[str, tuple[int, Callable[[], Measured]]] = {
        "isolated": (commits, lambda: in_turn(1, commits, KNOWN_MS)),
        "isolated, and quiesced again": (commits, lambda: in_turn(1, commits, REST_MS)),
        "one after the other": (commits, lambda: in_turn(1, commits, 0)),
        "over 10 partitions in turn": (commits, lambda: in_turn(10, commits, 0)),
        "over 200 partitions in turn": (commits, lambda: in_turn(200, commits, 0)),
        "100 partitions in one tick": (100 * (commits // 20), lambda: one_tick(100, commits // 20, KNOWN_MS)),
        "100 in one tick, tick after tick": (100 * (commits // 20), lambda: one_tick(100, commits // 20, 0)),
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
