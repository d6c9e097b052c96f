"""Bugs planted in what operators and groups use, in clusters of whole brokers. See mutations.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planted import in_a_quorum

from zurau.broker.placement import Placement
from zurau.broker.voter_changes import VoterChanges
from zurau.machines.groups import offsets as offsets_module
from zurau.machines.groups import rebalance as rebalance_module
from zurau.machines.groups.group import Group
from zurau.machines.groups.step import Step
from zurau.wire.kafka.error_codes import ErrorCode


def _nothing(*_: Any) -> None:
    pass


def move_nothing_away(*_: Any) -> list[Any]:
    return []


def take_any_commit(*_: Any) -> ErrorCode:
    return ErrorCode.NONE


def give_everybody_the_same(group: Group, assignments: Mapping[str, bytes], step: Step) -> None:
    largest = max(assignments.values(), key=len, default=b"")
    _open_sync_barrier(group, dict.fromkeys(assignments, largest), step)


_open_sync_barrier = rebalance_module._open_sync_barrier

OPERATION_MUTATIONS = (
    in_a_quorum("a move never ends", 40, (VoterChanges, "_finish", _nothing)),
    in_a_quorum("what is moved away stays", 60, (Placement, "remove_moved", move_nothing_away)),
    in_a_quorum("a commit of an older generation is taken", 60, (offsets_module, "_check_commit", take_any_commit)),
    in_a_quorum("members are given the same", 30, (rebalance_module, "_open_sync_barrier", give_everybody_the_same)),
)
