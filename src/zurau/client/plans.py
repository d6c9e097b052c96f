"""Where replicas should be: plans that nobody has to carry out to look at them.

A plan gives each partition that is to change its new brokers, the preferred leader first. Loads are counts of replicas:
a cluster knows sizes too, but what is large today need not be tomorrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from zurau.client.cluster.metadata import BrokerInfo, TopicInfo
from zurau.ids import BrokerId, TopicPartition

Brokers = Mapping[BrokerId, BrokerInfo]
Assignment = dict[TopicPartition, tuple[BrokerId, ...]]


def assignment_of(topics: Iterable[TopicInfo]) -> Assignment:
    return {TopicPartition(topic.name, each.index): each.replicas for topic in topics for each in topic.partitions}


def without(now: Assignment, gone: BrokerId, brokers: Brokers) -> Assignment:
    """What one broker has goes to others; each partition keeps its number of replicas. Raises `ValueError` where there
    is nobody left to take one."""
    load = _load(now, brokers)
    plan = {}
    for name, replicas in now.items():
        if gone in replicas:
            rest = [each for each in replicas if each != gone]
            taker = _next(rest, load, brokers, besides={gone})
            if taker is None:
                raise ValueError(
                    f"{name} has {len(replicas)} replicas, and without broker {gone} there are too few brokers for "
                    "them; lower its replication factor first (`zurau topic alter --replication-factor`)"
                )
            load[taker] += 1
            plan[name] = tuple(taker if each == gone else each for each in replicas)
    return plan


def with_factor(now: Assignment, factor: int, brokers: Brokers, everything: Assignment | None = None) -> Assignment:
    """More replicas on the brokers that have the fewest of `everything`, or fewer: the last ones go. Raises
    `ValueError`."""
    load = _load(everything or now, brokers)
    plan = {}
    for name, replicas in now.items():
        wanted = list(replicas[:factor])
        while len(wanted) < factor:
            taker = _next(wanted, load, brokers)
            if taker is None:
                raise ValueError(f"{factor} replicas need {factor} brokers, and there are {len(brokers)}")
            load[taker] += 1
            wanted.append(taker)
        if tuple(wanted) != replicas:
            plan[name] = tuple(wanted)
    return plan


def balanced(now: Assignment, brokers: Brokers) -> Assignment:
    """As even as it gets with few moves: replicas first, then who of them is preferred as leader."""
    after = dict(now)
    load = _load(after, brokers)
    for name in sorted(after):
        _even_out(name, after, load, brokers)
    led = Counter(replicas[0] for replicas in after.values())
    while sum(_even_out_leaders(name, after, led, brokers) for name in sorted(after)):
        pass
    return {name: replicas for name, replicas in after.items() if replicas != now[name]}


def _even_out(name: TopicPartition, after: Assignment, load: Counter[BrokerId], brokers: Brokers) -> None:
    """Move a replica from the fullest of its brokers to the emptiest of all, if that makes them more even."""
    replicas = after[name]
    fullest = max(replicas, key=lambda each: (each not in brokers, load[each], each))
    rest = [each for each in replicas if each != fullest]
    taker = _next(rest, load, brokers, besides={fullest})
    if taker is not None and (fullest not in brokers or load[fullest] - load[taker] > 1):
        load[fullest] -= 1
        load[taker] += 1
        after[name] = tuple(taker if each == fullest else each for each in replicas)


def _even_out_leaders(name: TopicPartition, after: Assignment, led: Counter[BrokerId], brokers: Brokers) -> bool:
    """Prefer another of its replicas, if that makes brokers more even. Returns whether it did."""
    replicas = after[name]
    there = [each for each in replicas if each in brokers]
    leader = min(there, key=lambda each: (led[each], each), default=replicas[0])
    if led[replicas[0]] - led[leader] <= 1 and replicas[0] in brokers:
        return False
    led[replicas[0]] -= 1
    led[leader] += 1
    after[name] = (leader, *(each for each in replicas if each != leader))
    return replicas[0] != leader


def _next(
    taken: Iterable[BrokerId], load: Counter[BrokerId], brokers: Brokers, besides: Iterable[BrokerId] = ()
) -> BrokerId | None:
    """Who should have one more replica: in a rack that has none yet if there is one, then whoever has the fewest."""
    taken, besides = set(taken), set(besides)
    racks = {brokers[each].rack for each in taken if each in brokers and brokers[each].rack is not None}
    free = [each for each in brokers if each not in taken and each not in besides]
    return min(free, key=lambda each: (brokers[each].rack in racks, load[each], each), default=None)


def _load(now: Assignment, brokers: Brokers) -> Counter[BrokerId]:
    load = Counter(dict.fromkeys(brokers, 0))
    load.update(each for replicas in now.values() for each in replicas)
    return load
