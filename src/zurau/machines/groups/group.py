"""One consumer group: its members, the generation they agreed on, and the offsets they committed.

| state               | what it waits for                                      |
|---------------------|--------------------------------------------------------|
| Empty               | a first member; it may hold offsets                     |
| PreparingRebalance  | every member to join (the join barrier)                 |
| CompletingRebalance | the leader to hand in the assignment (the sync barrier) |
| Stable              | nothing: every member knows what it owns                |
| Dead                | nothing: the group has been removed                     |

Who is a member right now is volatile and runs ahead of the log, as does the generation between the two barriers.
The log has the last agreement: what a successor starts from. A group is stable, or empty, only when the log says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from enum import Enum, auto

from zurau.ids import TopicPartition
from zurau.machines.groups.commands import CommittedOffset, Joined, JoinedMember, JoinGroup
from zurau.machines.groups.members import CONSUMER_PROTOCOL_TYPE, Member, Protocol, mentions, said_by
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

#: Searched at once for topics in subscriptions, while everybody else waits: about a tenth of a second.
SEARCHED_BYTES_MAX = 64 * MIB


class GroupState(Enum):
    """The values are the names that Kafka's tools print."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    REBALANCE_BEGAN = auto()
    ALL_JOINED = auto()
    # The log said so: during a replay these come without the steps between them.
    ASSIGNED = auto()
    EMPTIED = auto()
    REMOVED = auto()


MOVES: dict[tuple[GroupState, GroupEvent], GroupState] = {
    (GroupState.EMPTY, GroupEvent.REBALANCE_BEGAN): GroupState.PREPARING,
    (GroupState.COMPLETING, GroupEvent.REBALANCE_BEGAN): GroupState.PREPARING,
    (GroupState.STABLE, GroupEvent.REBALANCE_BEGAN): GroupState.PREPARING,
    (GroupState.PREPARING, GroupEvent.ALL_JOINED): GroupState.COMPLETING,
    (GroupState.COMPLETING, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.STABLE, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.EMPTY, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.PREPARING, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.STABLE, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.EMPTY, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.EMPTY, GroupEvent.REMOVED): GroupState.DEAD,
    (GroupState.STABLE, GroupEvent.REMOVED): GroupState.DEAD,
}


class Group:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        #: When the log last said that it was stable or empty; None for a group that only ever held offsets.
        self.state_since_ms: int | None = None
        self.generation = 0
        #: Empty until a first member joined; kept when the last one has left.
        self.protocol_type = ""
        self.protocol = ""
        self.leader_id = ""
        self.members: dict[str, Member] = {}
        #: How many of them speak each protocol, and the bytes of all that they have said of themselves. Kept, because
        #: asking all of them with every join takes too long.
        self._speakers: Counter[str] = Counter()
        self.said_bytes = 0
        #: Static members: instance id to member id.
        self.instances: dict[str, str] = {}
        #: Ids handed out whose owners have not joined yet, the oldest first.
        self.pending_ids: dict[str, None] = {}
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        #: The memory of `offsets`, about.
        self.offset_bytes = 0
        #: While an empty group gathers its first members: the end of all patience. None otherwise.
        self.gathering_until_ms: int | None = None
        self.has_newcomers = False

    def move(self, event: GroupEvent) -> None:
        self.state = MOVES[self.state, event]

    def add(self, member: Member) -> None:
        if member.member_id in self.members:
            self._count_out(self.members[member.member_id])
        self.members[member.member_id] = member
        self._count_in(member)
        self.pending_ids.pop(member.member_id, None)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        if self.leader_id not in self.members:
            self.leader_id = member.member_id

    def drop(self, member: Member) -> None:
        del self.members[member.member_id]
        self._count_out(member)
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.member_id:
            del self.instances[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), "")

    def take_members(self) -> dict[str, Member]:
        """All of them, who then are none of this group's."""
        members, self.members, self.instances = self.members, {}, {}
        self._speakers.clear()
        self.said_bytes = 0
        return members

    def update(self, member: Member, command: JoinGroup) -> None:
        """The member says something else of itself."""
        self._count_out(member)
        member.client_id = command.client_id
        member.client_host = command.client_host
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = command.rebalance_timeout_ms
        member.protocols = command.protocols
        self._count_in(member)

    def _count_in(self, member: Member) -> None:
        self._speakers.update(member.protocol_names)
        self.said_bytes += said_by(member, member.member_id)

    def _count_out(self, member: Member) -> None:
        self.said_bytes -= said_by(member, member.member_id)
        for name in member.protocol_names:
            self._speakers[name] -= 1
            if not self._speakers[name]:
                del self._speakers[name]

    def replace_static(self, old: Member, member_id: str) -> Member:
        """The process behind an instance id was restarted: the same member, in the same place, under a new id."""
        member = Member(
            member_id=member_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
            has_synced=old.has_synced,
        )
        self._count_out(old)
        self._count_in(member)
        members = [member if known is old else known for known in self.members.values()]
        self.members = {known.member_id: known for known in members}
        assert old.instance_id is not None
        self.instances[old.instance_id] = member_id
        if self.leader_id == old.member_id:
            self.leader_id = member_id
        return member

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE when the caller is who it says it is."""
        if instance_id is not None:
            owner_id = self.instances.get(instance_id)
            if owner_id is not None and owner_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as its most patient member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return not self.pending_ids and all(member.join_request_id is not None for member in self.members.values())

    @property
    def all_synced(self) -> bool:
        return all(member.has_synced for member in self.members.values())

    def joining_count(self) -> int:
        return sum(member.join_request_id is not None for member in self.members.values())

    def can_agree(self, protocol_type: str, protocols: Collection[Protocol], besides: str) -> bool:
        """Whether somebody with these protocols and all members besides that one would have one in common."""
        known = self.members.get(besides)
        if known is not None and protocol_type == self.protocol_type and known.protocols == protocols:
            return True
        others = len(self.members) - (known is not None)
        if others and protocol_type != self.protocol_type:
            return False
        known_names = known.protocol_names if known is not None else ()
        return any(self._speakers[offered.name] - (offered.name in known_names) == others for offered in protocols)

    def choose_protocol(self) -> str:
        """By vote among the protocols that all speak; a tie goes to the one that the leader likes better."""
        everyone = list(self.members.values())
        leader = self.members[self.leader_id]
        candidates = [offered.name for offered in leader.protocols if self._speakers[offered.name] == len(everyone)]
        if len(candidates) == 1:
            return candidates[0]
        votes = Counter(member.vote(candidates) for member in everyone)
        return max(candidates, key=lambda candidate: (votes[candidate], -candidates.index(candidate)))

    def elect_leader(self) -> bool:
        """Keep the leader if it has joined again, else take the first who has. False if nobody has."""
        leader = self.members.get(self.leader_id)
        if leader is not None and leader.join_request_id is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_request_id is not None), None)
        if joined is not None:
            self.leader_id = joined.member_id
        return joined is not None

    def joined(self, member: Member) -> Joined:
        """The current generation as this member is told of it."""
        is_leader = member.member_id == self.leader_id
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader_id=self.leader_id,
            member_id=member.member_id,
            members=self.roll() if is_leader else (),
        )

    def roll(self) -> tuple[JoinedMember, ...]:
        """Everybody, with their metadata for the chosen protocol: what the leader needs."""
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata_for(self.protocol))
            for member in self.members.values()
        )

    def in_use(self, topics: Collection[str]) -> Collection[str]:
        """Those of the topics that its consumers read; all of them when that cannot be seen."""
        if self.members and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return topics
        subscriptions = {offered.metadata for member in self.members.values() for offered in member.protocols}
        if len(topics) * sum(map(len, subscriptions)) > SEARCHED_BYTES_MAX:
            return topics
        return {topic for topic in topics if any(mentions(metadata, topic) for metadata in subscriptions)}
