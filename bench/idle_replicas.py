"""What idle partitions cost the replica core: `python bench/idle_replicas.py`.

Two brokers share partitions that nobody writes to; each leads half of them and follows the other half. Nothing but the
cores runs, in virtual time: the real network and clock would add what they add for one message, whatever is in it.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable, Sequence
from random import Random

from measure import Spread, show
from zurau.ids import BrokerId, TopicId
from zurau.replica.effects import Announce, ReadAndSend, Send
from zurau.replica.events import BrokerRegistered, Event, PartitionChanged, Received, TimePassed
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.in_sync_replica import InSyncReplica
from zurau.replica.log_view import LogView
from zurau.replica.partition_state import PartitionState
from zurau.replica.session import Answer, Question
from zurau.replica.settings import NEVER_MS, ReplicaSettings
from zurau.replica.streams import Streams
from zurau.simulation.world import SeededRandomness

SETTINGS = ReplicaSettings(waits_for_flush=False)
TRAVEL_MS = 1
SETTLE_MS = 3000
BUDGET_PERCENT = 2


class Pair:
    """Both brokers, and what happens when."""

    def __init__(self, partitions: int) -> None:
        self.now_ms = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.brokers = {number: Broker(self, BrokerId(number)) for number in (1, 2)}
        names = tuple(ReplicaId(broker.id, "a") for broker in self.brokers.values())
        for index in range(partitions):
            state = PartitionState(names[index % 2], 1, names, 1)
            for name in names:
                self.brokers[name.broker].place(PartitionId(TopicId(bytes(16)), index), name, state)

    def at(self, at_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (at_ms, self._count, act))

    def run_for(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while self._agenda and self._agenda[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._agenda)
            act()
            for broker in self.brokers.values():
                broker.pump()
        self.now_ms = until_ms


class Broker:
    def __init__(self, pair: Pair, broker: BrokerId) -> None:
        self.id = broker
        self._pair = pair
        self._streams = Streams(SETTINGS, SeededRandomness(broker))
        self._replicas: dict[PartitionId, InSyncReplica] = {}
        self._wakes: dict[PartitionId | None, int] = {}

    def place(self, partition: PartitionId, name: ReplicaId, state: PartitionState) -> None:
        chance = SeededRandomness(Random(str((partition, name))).getrandbits(40))
        self._replicas[partition] = InSyncReplica(
            name, log=LogView(), high_watermark=0, settings=SETTINGS, randomness=chance
        )
        self.tell(partition, BrokerRegistered(1))
        self._pair.at(0, lambda: self.tell(partition, PartitionChanged(state, 1)))

    def tell(self, partition: PartitionId, event: Event) -> None:
        replica = self._replicas[partition]
        for effect in replica.step(event, self._pair.now_ms):
            if isinstance(effect, Send | ReadAndSend):
                self._streams.send(effect.to, partition, effect.message)
            elif isinstance(effect, Announce):
                self._streams.turned(partition, effect.role, effect.epoch)
        self._wake(partition, replica.deadline_ms, lambda: self.tell(partition, TimePassed()))

    def hear(self, sender: BrokerId, it: Question | Answer) -> None:
        said = self._streams.heard(sender, it, self._pair.now_ms)
        self._send(self._streams.replies())
        self._pass_on_notices()
        for partition, message in said:
            self.tell(partition, Received(message))

    def pump(self) -> None:
        self._pass_on_notices()
        self._send(self._streams.due(self._pair.now_ms))
        self._pass_on_notices()
        self._wake(None, self._streams.deadline_ms or NEVER_MS, lambda: None)

    def _send(self, messages: Sequence[tuple[BrokerId, Question | Answer]]) -> None:
        for to, it in messages:
            self._pair.at(self._pair.now_ms + TRAVEL_MS, lambda to=to, it=it: self._pair.brokers[to].hear(self.id, it))  # type: ignore[misc]

    def _pass_on_notices(self) -> None:
        for partition, event in self._streams.notices():
            self.tell(partition, event)

    def _wake(self, whom: PartitionId | None, at_ms: int, act: Callable[[], None]) -> None:
        if at_ms < NEVER_MS and self._wakes.get(whom) != at_ms:
            self._wakes[whom] = at_ms
            self._pair.at(at_ms, lambda: act() if self._wakes.get(whom) == at_ms else None)


def percent_of_a_core(partitions: int, idle_s: int) -> float:
    pair = Pair(partitions)
    pair.run_for(SETTLE_MS)
    began_s = time.process_time()
    pair.run_for(idle_s * 1000)
    return (time.process_time() - began_s) / idle_s / 2 * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 idle seconds instead of 60, and fewer repeats")
    idle_s, repeats = (10, 2) if parser.parse_args().quick else (60, 5)
    counts = (2, 100, 1000, 10_000)
    found: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(repeats):
        for count in counts:
            found[count].append(percent_of_a_core(count, idle_s))
    spreads = {count: Spread(values) for count, values in found.items()}
    show(
        "Idle partitions, two brokers",
        ["% of a core, best", "median", "2 partitions = 1"],
        {
            f"{count:,} partitions": [spread.best, spread.median, f"{spread.best / spreads[2].best:.1f}x"]
            for count, spread in spreads.items()
        },
        f"For each broker. Budget: {BUDGET_PERCENT} % for 1,000 partitions.",
    )


if __name__ == "__main__":
    main()
