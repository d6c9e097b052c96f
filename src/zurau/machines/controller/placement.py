"""Where replicas go.

Brokers stand in a circle. The leader of partition `i` is the broker `i` steps from a starting point that differs
from topic to topic, so leaders are spread within a topic and over topics. Its followers come next in the circle,
shifted by one more each time the leaders have gone round, so the partitions of a broker that stops are taken over by
all the others rather than by its neighbour. Starting point and shifts come from the topic id and the index alone:
partitions that are added later continue the same pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.image import PartitionImage
from zurau.wire.kafka.error_codes import ErrorCode


def place(
    brokers: Iterable[BrokerId], topic_id: TopicId, indexes: range, replication_factor: int
) -> tuple[PartitionImage, ...]:
    """Replicas for the partitions `indexes` of a topic."""
    circle = sorted(brokers)
    _check_replication_factor(replication_factor, len(circle))
    start = int.from_bytes(topic_id[:4], "big") % len(circle)
    return tuple(PartitionImage(index, _replicas(circle, start + index, replication_factor)) for index in indexes)


def _replicas(circle: Sequence[BrokerId], step: int, replication_factor: int) -> tuple[BrokerId, ...]:
    rounds, leader = divmod(step, len(circle))
    others = [circle[(leader + away) % len(circle)] for away in range(1, len(circle))]
    followers = [others[(rounds + nth) % len(others)] for nth in range(replication_factor - 1)]
    return (circle[leader], *followers)


def placed_by_hand(
    brokers: Iterable[BrokerId], assignments: Mapping[int, Sequence[int]], first_index: int, replication_factor: int
) -> tuple[PartitionImage, ...]:
    """The replicas that a client chose, checked: whole, known brokers, and as many for each partition."""
    known = sorted(brokers)
    expected = range(first_index, first_index + len(assignments))
    if sorted(assignments) != list(expected):
        raise _bad_assignment(f"partitions must be numbered {expected.start} to {expected.stop - 1} without gaps")
    for index in expected:
        _check_replicas(index, assignments[index], known, replication_factor)
    return tuple(PartitionImage(index, tuple(map(BrokerId, assignments[index]))) for index in expected)


def _check_replicas(index: int, replicas: Sequence[int], known: Sequence[int], replication_factor: int) -> None:
    if len(set(replicas)) != len(replicas):
        raise _bad_assignment(f"partition {index} has a broker twice: {list(replicas)}")
    if unknown := [broker for broker in replicas if broker not in known]:
        raise _bad_assignment(f"partition {index} is for brokers {unknown}, but there are only {list(known)}")
    if not replicas or len(replicas) != replication_factor:
        raise _bad_assignment(f"partition {index} has {len(replicas)} replicas where {replication_factor} are needed")


def _check_replication_factor(replication_factor: int, broker_count: int) -> None:
    if replication_factor < 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is too small; use 1 or more, or -1 for the default",
        )
    if replication_factor > broker_count:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs {replication_factor} brokers and this cluster has "
            f"{broker_count}; use {broker_count} or less",
        )


def _bad_assignment(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
