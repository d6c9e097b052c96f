"""Where replicas go.

Brokers stand in a circle in which neighbours are in different racks, as far as there are any. The leader of partition
`i` is the broker `i` steps from a starting point that differs from topic to topic, so leaders are spread within a topic
and over topics. Its followers come next in the circle, shifted by one more each time the leaders have gone round, so
the partitions of a broker that stops are taken over by all the others rather than by its neighbour; brokers in racks
that have no replica yet go first. Starting point and shifts come from the topic id and the index alone: partitions that
are added later continue the same pattern, while the same brokers are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest

from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.image import BrokerImage, PartitionImage
from zurau.wire.kafka.error_codes import ErrorCode

#: A rack's name; a broker that names none is a rack of its own.
Rack = str | BrokerId
Brokers = Mapping[BrokerId, BrokerImage]


def place(
    brokers: Brokers,
    topic_id: TopicId,
    indexes: range,
    replication_factor: int,
    leaving: Collection[BrokerId] = (),
) -> tuple[PartitionImage, ...]:
    """Replicas for the partitions `indexes` of a topic, on brokers that are there to take them, and stay."""
    active = [broker for broker in brokers.values() if broker.is_active and broker.broker_id not in leaving]
    _check_replication_factor(replication_factor, len(active), len(brokers))
    racks = {broker.broker_id: broker.rack or broker.broker_id for broker in active}
    circle = _circle(racks)
    start = int.from_bytes(topic_id[:4], "big") % len(circle)
    return tuple(
        _partition(brokers, index, _replicas(circle, racks, start + index, replication_factor)) for index in indexes
    )


def _circle(racks: Mapping[BrokerId, Rack]) -> list[BrokerId]:
    """The first broker of each rack, then the second of each."""
    by_rack: dict[Rack, list[BrokerId]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    return [broker for broker in chain.from_iterable(zip_longest(*by_rack.values())) if broker is not None]


def _replicas(
    circle: Sequence[BrokerId], racks: Mapping[BrokerId, Rack], step: int, replication_factor: int
) -> list[BrokerId]:
    rounds, leader = divmod(step, len(circle))
    others = [circle[(leader + away) % len(circle)] for away in range(1, len(circle))]
    shift = rounds % len(others) if others else 0
    candidates = [*others[shift:], *others[:shift]]
    chosen = [circle[leader]]
    while len(chosen) < replication_factor:
        used = {racks[broker] for broker in chosen}
        following = next((each for each in candidates if racks[each] not in used), candidates[0])
        candidates.remove(following)
        chosen.append(following)
    return chosen


def placed_by_hand(
    brokers: Brokers, assignments: Mapping[int, Sequence[int]], first_index: int, replication_factor: int
) -> tuple[PartitionImage, ...]:
    """The replicas that a client chose, checked: whole, known brokers, and as many for each partition."""
    expected = range(first_index, first_index + len(assignments))
    if sorted(assignments) != list(expected):
        raise _bad_assignment(f"partitions must be numbered {expected.start} to {expected.stop - 1} without gaps")
    for index in expected:
        _check_replicas(index, assignments[index], sorted(brokers), replication_factor)
        if not any(brokers[BrokerId(broker)].is_active for broker in assignments[index]):
            raise _bad_assignment(f"of the brokers {list(assignments[index])} for partition {index} none is there")
    return tuple(_partition(brokers, index, map(BrokerId, assignments[index])) for index in expected)


def _partition(brokers: Brokers, index: int, replicas: Iterable[BrokerId]) -> PartitionImage:
    replicas = tuple(replicas)
    return PartitionImage(index, replicas, tuple(brokers[broker].directory_name for broker in replicas))


def _check_replicas(index: int, replicas: Sequence[int], known: Sequence[int], replication_factor: int) -> None:
    if len(set(replicas)) != len(replicas):
        raise _bad_assignment(f"partition {index} has a broker twice: {list(replicas)}")
    if unknown := [broker for broker in replicas if broker not in known]:
        raise _bad_assignment(f"partition {index} is for brokers {unknown}, but there are only {list(known)}")
    if not replicas or len(replicas) != replication_factor:
        raise _bad_assignment(f"partition {index} has {len(replicas)} replicas where {replication_factor} are needed")


def _check_replication_factor(replication_factor: int, active_count: int, broker_count: int) -> None:
    if replication_factor < 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is too small; use 1 or more, or -1 for the default",
        )
    if replication_factor > active_count:
        stopped = f", of which {broker_count - active_count} are not there" if active_count < broker_count else ""
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs {replication_factor} brokers and this cluster has "
            f"{broker_count}{stopped}; use {active_count} or less",
        )


def _bad_assignment(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
