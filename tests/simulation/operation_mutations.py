"""Bugs planted in what operators and groups use, in clusters of whole brokers. See mutations.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planted import in_operated

from zurau.broker.placement import Placement
from zurau.broker.voter_changes import VoterChanges
from zurau.machines.controller import controller as controller_module
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import BrokerRegistrationChanged
from zurau.machines.controller.sessions import BrokerSessions
from zurau.machines.groups import rebalance as rebalance_module
from zurau.machines.groups.group import Group
from zurau.machines.groups.step import Step


def _nothing(*_: Any) -> None:
    pass


def move_nothing_away(*_: Any) -> list[Any]:
    return []


def give_everybody_the_same(group: Group, assignments: Mapping[str, bytes], step: Step) -> None:
    largest = max(assignments.values(), key=len, default=b"")
    _open_sync_barrier(group, dict.fromkeys(assignments, largest), step)


def fence_and_let_it_lead(image: ClusterImage, sessions: BrokerSessions, now_ms: int) -> list[Any]:
    return [each for each in _fence_silent(image, sessions, now_ms) if isinstance(each, BrokerRegistrationChanged)]


_fence_silent = controller_module.fence_silent
_open_sync_barrier = rebalance_module._open_sync_barrier

OPERATION_MUTATIONS = (
    in_operated("a move never ends", "quorum", 40, (VoterChanges, "_finish", _nothing)),
    in_operated("what is moved away stays", "quorum", 100, (Placement, "remove_moved", move_nothing_away), near=50),
    in_operated(
        "members are given the same", "quorum", 30, (rebalance_module, "_open_sync_barrier", give_everybody_the_same)
    ),
    in_operated("who is fenced leads on", "isr", 40, (controller_module, "fence_silent", fence_and_let_it_lead)),
)
