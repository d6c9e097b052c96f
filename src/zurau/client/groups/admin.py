"""Consumer groups from outside: who is in them, how far they got, and moving them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import BrokerRefused, check
from zurau.client.groups.assignment import PROTOCOL_TYPE, assigned_partitions
from zurau.client.groups.offsets import commit_offsets, fetch_offsets
from zurau.errors import ProtocolViolation
from zurau.ids import Offset, TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_groups import DeleteGroupsRequest
from zurau.wire.kafka.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from zurau.wire.kafka.messages.list_groups import ListGroupsRequest

DEAD = "Dead"


class GroupSummary(NamedTuple):
    name: str
    state: str
    #: "classic", "consumer" (KIP-848), or empty where the broker is too old to say.
    kind: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    name: str
    state: str
    assignor: str
    coordinator: int
    members: tuple[Member, ...]

    def owner_of(self, partition: TopicPartition) -> Member | None:
        return next((member for member in self.members if partition in member.partitions), None)


class GroupAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def list_groups(self) -> list[GroupSummary]:
        """The groups that all brokers together look after."""
        return sorted(self._cluster.retry(self._list_groups))

    def describe_group(self, group: str) -> GroupDescription:
        """A group and its members. Raises when there is neither a member nor an offset of that name."""
        description = self._cluster.retry(lambda: self._describe(group))
        if description.state == DEAD and not self.offsets(group):
            raise BrokerRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group!r}", "there is no such group")
        return description

    def offsets(self, group: str) -> dict[TopicPartition, Offset]:
        """The offset that the group reads next, in each partition where it committed one."""
        return fetch_offsets(self._cluster, group)

    def move(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Let the group go on from these offsets. Brokers refuse while it has members."""
        commit_offsets(self._cluster, group, offsets)

    def delete_group(self, group: str) -> None:
        def delete() -> None:
            request = DeleteGroupsRequest(groups_names=[group])
            for result in self._cluster.ask_coordinator(group, request).results:
                check(result.error_code, f"deleting group {group!r}")

        self._cluster.retry(delete)

    def _list_groups(self) -> list[GroupSummary]:
        self._cluster.refresh(())
        found = []
        for broker in list(self._cluster.metadata.brokers):
            answer = self._cluster.ask_broker(broker, ListGroupsRequest())
            check(answer.error_code, f"listing the groups of broker {broker}")
            found += [
                GroupSummary(group.group_id, group.group_state, group.group_type, group.protocol_type)
                for group in answer.groups
            ]
        return found

    def _describe(self, group: str) -> GroupDescription:
        coordinator = self._cluster.coordinator_of(group)
        answer = self._cluster.ask_broker(coordinator, DescribeGroupsRequest(groups=[group])).groups[0]
        if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return GroupDescription(group, DEAD, "", coordinator, ())
        check(answer.error_code, f"describing group {group!r}", answer.error_message)
        members = tuple(
            Member(member.member_id, member.client_id, member.client_host, _partitions(answer.protocol_type, member))
            for member in answer.members
        )
        return GroupDescription(group, answer.group_state, answer.protocol_data, coordinator, members)


def _partitions(protocol_type: str, member: DescribedGroupMember) -> tuple[TopicPartition, ...]:
    """A member's assignment, where it is a consumer's; other kinds of groups keep other things in those bytes."""
    if protocol_type != PROTOCOL_TYPE:
        return ()
    try:
        return tuple(assigned_partitions(member.member_assignment))
    except ProtocolViolation:
        return ()
