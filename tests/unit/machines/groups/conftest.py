"""A group machine on an invented log, and terse clients for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups.commands import (
    CommitOffsets,
    DescribeGroup,
    FetchOffsets,
    GroupCommand,
    GroupDescription,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Leaver,
    NewOffset,
    SyncGroup,
)
from zurau.machines.groups.machine import GroupMachine
from zurau.machines.groups.members import Protocol
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.machine import RequestId
from zurau.simulation.machine_stage import MachineStage
from zurau.wire.kafka.codec import encode_versioned
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolSubscription

GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 30_000


def subscription(*topics: str, version: int = 0) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), version)


class GroupStage(MachineStage[GroupCommand]):
    """Members are called by the id that they join with; the group is always the same one."""

    def __init__(self, settings: GroupSettings) -> None:
        super().__init__(lambda: GroupMachine(settings))

    def join_command(self, candidate_id: str, **changes: Any) -> JoinGroup:
        command = JoinGroup(
            group_id=GROUP,
            member_id="",
            candidate_id=candidate_id,
            instance_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(Protocol("range", subscription("orders")),),
            needs_known_id=False,
        )
        return replace(command, **changes)

    def join(self, member_id: str, **changes: Any) -> RequestId:
        """As a new member who gets this id, or as the member who has it."""
        group = self.machine.groups.get(GROUP)
        if group is not None and member_id in (*group.members, *group.pending_ids):
            changes.setdefault("member_id", member_id)
        return self.ask(self.join_command(member_id, **changes))

    def sync(self, member_id: str, assignments: Mapping[str, bytes] | None = None, **changes: Any) -> RequestId:
        generation = changes.pop("generation", None) or self.generation
        command = SyncGroup(GROUP, generation, member_id, None, None, None, assignments or {})
        return self.ask(replace(command, **changes))

    def form(self, *member_ids: str, **changes: Any) -> None:
        """A stable group of these; the first one leads, and each owns a share that is called like it."""
        self.join(member_ids[0], **changes)
        for member_id in member_ids[1:]:
            self.join(member_id, **changes)
        for member_id in member_ids:
            self.join(member_id, **changes)
        for member_id in member_ids:
            self.sync(member_id, {each: each.encode() for each in member_ids})
        assert self.state == "Stable"
        self.answers.clear()

    def heartbeat(self, member_id: str, generation: int | None = None, **changes: Any) -> Any:
        generation = self.generation if generation is None else generation
        return self.outcome(self.ask(replace(Heartbeat(GROUP, generation, member_id), **changes)))

    def leave(self, *leavers: Leaver | str) -> Any:
        named = tuple(leaver if isinstance(leaver, Leaver) else Leaver(leaver) for leaver in leavers)
        return self.outcome(self.ask(LeaveGroup(GROUP, named)))

    def commit(self, topic: str, offset: int, member_id: str = "", generation: int = -1, **changes: Any) -> Any:
        offsets = {TopicPartition(topic, 0): NewOffset(offset)}
        command = CommitOffsets(GROUP, generation, member_id, None, offsets)
        return self.outcome(self.ask(replace(command, **changes)))

    def committed(self) -> dict[str, int]:
        fetched = self.outcome(self.ask(FetchOffsets(GROUP)))
        return {name.topic: committed.offset for name, committed in fetched.offsets.items()}

    def describe(self) -> GroupDescription:
        return self.outcome(self.ask(DescribeGroup(GROUP)))

    @property
    def state(self) -> str:
        return self.machine.groups[GROUP].state.value

    @property
    def generation(self) -> int:
        return self.machine.groups[GROUP].generation

    def outcome(self, request_id: RequestId) -> Any:
        """The reply, the code if it is a refusal, or None while there is none."""
        reply = self.answers.pop(request_id, None)
        return ErrorCode(reply.code) if isinstance(reply, Refused) else reply


@pytest.fixture
def stage_with() -> Callable[..., GroupStage]:
    """Makes a stage with some settings; unless told otherwise, an empty group does not wait for more members."""

    def make(**changes: Any) -> GroupStage:
        return GroupStage(GroupSettings(**{"initial_rebalance_delay_ms": 0, **changes}))

    return make


@pytest.fixture
def stage(stage_with: Callable[..., GroupStage]) -> GroupStage:
    return stage_with()
