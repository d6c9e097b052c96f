"""A cluster under load, and faults that are drawn from a seed, one after the other; then everything is read again.

After each fault every producer must be acknowledged in every partition again, and the group must have committed, before
the next one begins, so what a table says of a fault is that fault's doing. What is drawn is the same for the same seed:
which faults, whom they hit and how long they last. What the machine makes of it is not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from zurau.chaos import librdkafka
from zurau.chaos.downtime import longest_gap_s
from zurau.chaos.faults import FAULTS, Fault, Scene
from zurau.chaos.history import History, Violation
from zurau.chaos.load import GROUP_NAME, Client, GroupMember, OurProducer, Pace, Reader
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.errors import ClientError
from zurau.client.groups.offsets import fetch_offsets
from zurau.client.offsets import end_offsets
from zurau.ids import Offset, TopicPartition
from zurau.testing.cluster import Cluster

TOPIC = "chaos"
HOLD_S = (1.0, 4.0)
REST_S = (0.3, 1.0)
#: A fault is over when every producer is acknowledged everywhere; by then at the latest.
WHOLE_WITHIN_S = 90.0
LOOK_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Plan:
    minutes: float = 1.0
    seed: int = 0
    brokers: int = 3
    mode: str = "quorum"
    partitions: int = 6
    faults: tuple[Fault, ...] = FAULTS
    #: So many faults at most; None: as many as there is time for.
    injections_max: int | None = None
    producers: int = 2
    members: int = 2
    uses_librdkafka: bool = True
    pace: Pace = field(default_factory=Pace)
    hold_s: tuple[float, float] = HOLD_S

    @property
    def replication_factor(self) -> int:
        return min(3, self.brokers)

    def possible_faults(self) -> list[Fault]:
        return [fault for fault in self.faults if self.brokers >= fault.brokers_min]


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault, as it was seen."""

    fault: str
    brokers: tuple[int, ...]
    began_s: float
    ended_s: float
    #: The longest time without an acknowledgement, by kind of client, one for each client and partition that was hit.
    gaps_s: dict[str, list[float]]
    acknowledged: int
    duplicated: int


@dataclass(slots=True)
class Outcome:
    injections: list[Injection] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    #: When records were acknowledged that were not found in the end.
    lost_at_s: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        return not self.violations


class Experiment:
    """`tell` hears what happens, line by line."""

    def __init__(self, plan: Plan, cluster: Cluster, tell: Callable[[str], None] = lambda _: None) -> None:
        self._plan = plan
        self._cluster = cluster
        self._tell = tell
        self._random = Random(plan.seed)
        self._partitions = [TopicPartition(TOPIC, index) for index in range(plan.partitions)]
        self._scene = Scene(cluster, TOPIC, plan.partitions, self._random)
        self.history = History()
        self._producers: list[OurProducer | librdkafka.LibrdkafkaProducer] = []
        self._consumers: list[Client] = []
        self.outcome = Outcome(counts=self.history.counts)

    def run(self) -> Outcome:
        plan = self._plan
        settings = {"min_insync_replicas": "2"} if plan.replication_factor > 2 else {}
        self._cluster.create_topic(
            TOPIC, plan.partitions, plan.replication_factor, replication_mode=plan.mode, **settings
        )
        self._start_load()
        began_s = time.monotonic()
        try:
            if self._is_whole_after(began_s, "the start"):
                self._break_things(began_s + plan.minutes * 60)
        finally:
            self._stop_load()
        self.outcome.seconds = time.monotonic() - began_s
        self._verify()
        self.outcome.violations += self.history.violations
        return self.outcome

    def _start_load(self) -> None:
        plan, bootstrap = self._plan, self._cluster.bootstrap
        for number in range(plan.producers):
            self._producers.append(OurProducer(number, bootstrap, self._partitions, self.history, plan.pace))
        if plan.uses_librdkafka and librdkafka.is_installed():
            made = librdkafka.LibrdkafkaProducer(0, bootstrap, self._partitions, self.history, plan.pace)
            self._producers.append(made)
        self._consumers.append(Reader(0, bootstrap, self._partitions, self.history))
        for number in range(plan.members):
            self._consumers.append(GroupMember(number, bootstrap, TOPIC, self.history))
        for client in (*self._producers, *self._consumers):
            client.start()

    def _stop_load(self) -> None:
        clients: Sequence[Client] = [*self._producers, *self._consumers]
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join()
            if client.failure is not None:
                self._broken("NothingUnexpected", f"{client.name}: {client.failure!r}")

    # Faults

    def _break_things(self, until_s: float) -> None:
        possible = self._plan.possible_faults()
        deck: list[Fault] = []
        while time.monotonic() < until_s and len(self.outcome.injections) != self._plan.injections_max:
            if not deck:  # each as often as every other, in an order that is drawn
                deck = self._random.sample(possible, len(possible))
            if not self._inject(deck.pop()):
                return
            time.sleep(self._random.uniform(*REST_S))

    def _inject(self, fault: Fault) -> bool:
        """Whether everything was whole again afterwards."""
        led = self._leaders()
        before = Counter(self.history.counts)
        hold_s = self._random.uniform(*self._plan.hold_s)
        began_s = time.monotonic()
        breaking = fault.run(self._scene)
        brokers = next(breaking)
        time.sleep(hold_s)
        mending_s = time.monotonic()
        for _ in breaking:
            raise AssertionError("a fault breaks things once")
        is_whole = self._is_whole_after(max(mending_s, time.monotonic() - 0.5), fault.name)
        ended_s = time.monotonic()
        hit = [each for each in self._partitions if (led.get(each) in brokers) == fault.hits_led] or self._partitions
        gaps_s: dict[str, list[float]] = {}
        for producer in self._producers:
            for partition in hit:
                moments = [each.at_s for each in producer.acknowledgements[partition]]
                gaps_s.setdefault(producer.kind, []).append(longest_gap_s(moments, began_s, ended_s))
        now = self.history.counts
        self.outcome.injections.append(
            Injection(
                fault.name,
                tuple(sorted(brokers)),
                began_s,
                ended_s,
                gaps_s,
                now["acknowledged"] - before["acknowledged"],
                now["NoneTwice"] - before["NoneTwice"],
            )
        )
        worst = ", ".join(f"{kind} {max(gaps):.2f} s" for kind, gaps in gaps_s.items())
        who = ",".join(map(str, sorted(brokers)))
        self._tell(f"{fault.name} ({who}) for {hold_s:.1f} s; longest without writes: {worst}")
        return is_whole

    def _leaders(self) -> dict[TopicPartition, int]:
        with ClusterClient(self._cluster.bootstrap) as client:
            found: dict[TopicPartition, int] = {}

            def ask() -> None:
                client.refresh([TOPIC])
                found.update({each: client.leader_of(each) for each in self._partitions})

            client.retry(ask, topics=[TOPIC])
            return found

    def _is_whole_after(self, moment_s: float, what: str) -> bool:
        """Wait until every producer was acknowledged in every partition, and a commit of the group was confirmed."""
        deadline_s = time.monotonic() + WHOLE_WITHIN_S
        while True:
            missing = [
                f"{producer.name} in {partition}"
                for producer in self._producers
                for partition, seen in producer.acknowledgements.items()
                if not seen or seen[-1].at_s < moment_s
            ]
            members = [each for each in self._consumers if isinstance(each, GroupMember)]
            if members and not any(each.confirmed_s >= moment_s for each in members):
                missing.append(f"members of {GROUP_NAME}")
            if not missing:
                return True
            if time.monotonic() > deadline_s:
                seen = f"{WHOLE_WITHIN_S:g} s after {what} nothing is acknowledged to {', '.join(missing)}"
                self._broken("BecomesWhole", seen)
                return False
            time.sleep(LOOK_AGAIN_S)

    # The end

    def _verify(self) -> None:
        """Read everything with a client that knows nothing, and ask how far the group got."""
        known = self.history.known_commits(GROUP_NAME)
        try:
            with ClusterClient(self._cluster.bootstrap, timeout_s=WHOLE_WITHIN_S) as client:
                found = self._read_all(client)
                committed = fetch_offsets(client, GROUP_NAME, self._partitions)
        except ClientError as error:
            self._broken("BecomesWhole", f"not everything can be read at the end: {error}")
            return
        acknowledged_s = {
            (partition, each.offset): each.at_s
            for producer in self._producers
            for partition, seen in producer.acknowledgements.items()
            for each in seen
        }
        for partition, records in found.items():
            for offset in self.history.found_all(partition, records):
                self.outcome.lost_at_s.append(acknowledged_s.get((partition, offset), 0.0))
        found_offsets = {partition: committed.get(partition, -1) for partition in known}
        self.history.found_committed(GROUP_NAME, found_offsets, known)

    def _read_all(self, client: ClusterClient) -> dict[TopicPartition, dict[Offset, bytes]]:
        found: dict[TopicPartition, dict[Offset, bytes]] = {partition: {} for partition in self._partitions}
        ends = end_offsets(client, self._partitions)
        with Consumer(client) as consumer:
            consumer.assign(dict.fromkeys(self._partitions, 0))
            while any(consumer.positions[partition] < end for partition, end in ends.items()):
                for partition, records, _ in consumer.poll():
                    found[partition] |= {record.offset: bytes(record.value or b"") for record in records}
        return found

    def _broken(self, invariant: str, seen: str) -> None:
        self.outcome.violations.append(Violation(invariant, seen))


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Everything that was seen, for programs."""
    return {
        "seconds": round(outcome.seconds, 1),
        "counts": dict(outcome.counts),
        "violations": [str(violation) for violation in outcome.violations],
        "injections": [
            {
                "fault": each.fault,
                "brokers": each.brokers,
                "seconds": round(each.ended_s - each.began_s, 3),
                "acknowledged": each.acknowledged,
                "gaps_s": {kind: [round(gap, 3) for gap in gaps] for kind, gaps in each.gaps_s.items()},
            }
            for each in outcome.injections
        ],
    }
