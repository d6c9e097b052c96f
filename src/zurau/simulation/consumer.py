"""A consumer of a group as a model: what it believes, what it says next, and how it takes what it hears.

It does what the clients do, and no more: joins, shares out if it leads, heartbeats, commits what it owns, and begins
anew when it is told that it is nobody. An eager consumer gives everything up before it joins again, a cooperative one
keeps what it has (KIP-429).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol

from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups import members
from zurau.machines.groups.commands import (
    CommitOffsets,
    GroupCommand,
    Heartbeat,
    Joined,
    JoinGroup,
    MemberIdRequired,
    NewOffset,
    Synced,
    SyncGroup,
)
from zurau.machines.machine import RequestId
from zurau.wire.kafka.codec import decode_versioned, encode_versioned
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from zurau.wire.kafka.messages.consumer_protocol import TopicPartition as Owned

GROUP, TOPIC = "readers", "orders"
PARTITIONS = range(6)


class Surroundings(Protocol):
    """What a consumer needs of the world it is in."""

    is_cooperative: bool
    needs_known_id: bool
    session_timeout_ms: int

    def chance(self, probability: float) -> bool: ...

    def fresh_id(self, name: str) -> str: ...

    def next_offset(self) -> int: ...

    def send(self, consumer: Consumer, command: GroupCommand, then: Callable[[Any], None]) -> RequestId: ...


class Phase(Enum):
    DEAD = auto()
    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    WORKING = auto()


class Consumer:
    """A client process as a model: what it believes, and what it says next."""

    def __init__(self, world: Surroundings, name: str, instance_id: str | None) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.phase = Phase.OUT
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        #: The question whose answer it waits for; answers to older ones go to a closed connection.
        self.request_id: RequestId | None = None
        self.roll: Joined | None = None

    def act(self) -> None:
        """Say the next thing, or nothing while an answer is due."""
        if self.request_id is None:
            {Phase.OUT: self.join, Phase.SYNCING: self.sync, Phase.WORKING: self.work}[self.phase]()

    def work(self) -> None:
        if self.owned and self.world.chance(0.4):
            self.commit()
        else:
            self.ask(Heartbeat(GROUP, self.generation, self.member_id, self.instance_id), self.on_acknowledged)

    def join(self) -> None:
        self.phase = Phase.JOINING
        if not self.world.is_cooperative:
            self.owned.clear()
        owned = [Owned(topic=TOPIC, partitions=sorted(self.owned))] if self.owned else []
        subscription = ConsumerProtocolSubscription(topics=[TOPIC], owned_partitions=owned)
        command = JoinGroup(
            group_id=GROUP,
            member_id=self.member_id,
            candidate_id=self.world.fresh_id(self.name),
            instance_id=self.instance_id,
            client_id=self.name,
            client_host="/here",
            session_timeout_ms=self.world.session_timeout_ms,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=(members.Protocol("simulated", encode_versioned(subscription, 1)),),
            needs_known_id=self.world.needs_known_id,
        )
        self.ask(command, self.on_joined)

    def sync(self) -> None:
        assert self.roll is not None
        leads = self.roll.leader_id == self.member_id and not self.roll.skip_assignment
        shares = share_out(self.roll, self.world.is_cooperative) if leads else {}
        command = SyncGroup(GROUP, self.generation, self.member_id, self.instance_id, None, None, shares)
        self.ask(command, self.on_synced)

    def commit(self) -> None:
        offset = self.world.next_offset()
        offsets = {TopicPartition(TOPIC, index): NewOffset(offset) for index in sorted(self.owned)}
        command = CommitOffsets(GROUP, self.generation, self.member_id, self.instance_id, offsets)
        self.ask(command, self.on_acknowledged)

    def ask(self, command: GroupCommand, then: Callable[[Any], None]) -> None:
        self.request_id = self.world.send(self, command, then)

    def on_joined(self, reply: Any) -> None:
        if isinstance(reply, MemberIdRequired):
            self.member_id = reply.member_id
            self.phase = Phase.OUT
        elif isinstance(reply, Joined):
            self.member_id, self.generation, self.roll = reply.member_id, reply.generation, reply
            self.phase = Phase.SYNCING
        else:
            self.on_refused(reply)

    def on_synced(self, reply: Any) -> None:
        if not isinstance(reply, Synced):
            self.on_refused(reply)
            return
        given = set(partitions_of(reply.assignment))
        lost, self.owned = self.owned - given, given
        # What a cooperative consumer loses goes to its new owner only when it has joined without it (KIP-429).
        self.phase = Phase.OUT if lost and self.world.is_cooperative else Phase.WORKING

    def on_acknowledged(self, reply: Any) -> None:
        if isinstance(reply, Refused):
            self.on_refused(reply)

    def on_refused(self, refused: Refused) -> None:
        self.phase = Phase.OUT
        if refused.code is ErrorCode.FENCED_INSTANCE_ID:
            self.phase = Phase.DEAD
        elif refused.code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if refused.code is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.owned.clear()

    def reconnect(self) -> None:
        """The connection broke: whatever was asked is asked again."""
        self.request_id = None
        if self.phase is Phase.JOINING:
            self.phase = Phase.OUT


def share_out(joined: Joined, is_cooperative: bool) -> dict[str, bytes]:
    """The leader's work: everybody keeps what it has up to a fair share, and the rest is dealt.

    A cooperative leader does not deal what an owner has still to give up.
    """
    names = [member.member_id for member in joined.members]
    shares: dict[str, list[int]] = {name: [] for name in names}
    fair = -(-len(PARTITIONS) // len(names))
    dealt: set[int] = set()
    held: set[int] = set()
    for member in joined.members:
        subscription = decode_versioned(ConsumerProtocolSubscription, member.metadata)
        owned = [index for topic in subscription.owned_partitions for index in topic.partitions]
        shares[member.member_id] = [index for index in owned if index not in dealt][:fair]
        dealt |= set(shares[member.member_id])
        held |= set(owned)
    for index in PARTITIONS:
        if index not in dealt and not (is_cooperative and index in held):
            min(shares.values(), key=len).append(index)
    return {name: assignment_of(sorted(share)) for name, share in shares.items()}


def assignment_of(partitions: list[int]) -> bytes:
    assigned = [Owned(topic=TOPIC, partitions=partitions)] if partitions else []
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), 1)


def partitions_of(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    assigned = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    return [index for topic in assigned for index in topic.partitions]
