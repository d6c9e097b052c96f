"""What groups write to their log, in the format of Kafka's own `__consumer_offsets`, and how it is read back.

The key tells the kind: versions 0 and 1 are an offset (group, topic, partition), version 2 is a group. Other kinds
belong to group protocols that we do not speak and are passed over. A record without a value removes its key.

A group's record holds the whole agreement. Only the subscription in the protocol that was chosen is in it, so a
member that was read back speaks that protocol alone until it joins again.
"""

from __future__ import annotations

from collections.abc import Mapping

from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition
from zurau.machines.groups.commands import CommittedOffset
from zurau.machines.groups.group import Group, GroupEvent
from zurau.machines.groups.members import Member, Protocol
from zurau.machines.groups.memory import offset_bytes
from zurau.machines.machine import StateRecord
from zurau.wire.kafka.codec import decode_versioned, encode_versioned, peek_version
from zurau.wire.kafka.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

#: A key, and the value that it has from here on; None removes it.
GroupFact = tuple[OffsetCommitKey, OffsetCommitValue | None] | tuple[GroupMetadataKey, GroupMetadataValue | None]

_OFFSET_KEY_VERSIONS = (0, 1)
_GROUP_KEY_VERSION = 2
_GROUP_VALUE_VERSION = 3
_OFFSET_VALUE_VERSION = 3
#: The first version that can say which topic it was.
_TOPIC_ID_OFFSET_VALUE_VERSION = 4
#: The only version that can say when an offset expires.
_EXPIRING_OFFSET_VALUE_VERSION = 1
_NO_TIMESTAMP = -1


def agreement_record(group: Group, assignments: Mapping[str, bytes], now_ms: int) -> StateRecord:
    """The current generation with what each member owns in it."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader_id,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_for(group.protocol),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return StateRecord(_group_key(group.group_id), encode_versioned(value, _GROUP_VALUE_VERSION))


def emptied_record(group: Group, now_ms: int) -> StateRecord:
    """The next generation, which has no members."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation + 1,
        protocol=None,
        leader=None,
        current_state_timestamp=now_ms,
        members=[],
    )
    return StateRecord(_group_key(group.group_id), encode_versioned(value, _GROUP_VALUE_VERSION))


def removed_record(group_id: str) -> StateRecord:
    return StateRecord(_group_key(group_id), None)


def offset_record(group_id: str, partition: TopicPartition, committed: CommittedOffset) -> StateRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_ms,
        expire_timestamp=_NO_TIMESTAMP if committed.expires_ms is None else committed.expires_ms,
        topic_id=committed.topic_id,
    )
    version = _OFFSET_VALUE_VERSION if committed.topic_id == NO_TOPIC_ID else _TOPIC_ID_OFFSET_VALUE_VERSION
    if committed.expires_ms is not None:
        version = _EXPIRING_OFFSET_VALUE_VERSION
    return StateRecord(_offset_key(group_id, partition), encode_versioned(value, version))


def offset_removed_record(group_id: str, partition: TopicPartition) -> StateRecord:
    return StateRecord(_offset_key(group_id, partition), None)


def _group_key(group_id: str) -> bytes:
    return encode_versioned(GroupMetadataKey(group=group_id), _GROUP_KEY_VERSION)


def _offset_key(group_id: str, partition: TopicPartition) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    return encode_versioned(key, _OFFSET_KEY_VERSIONS[-1])


def decode_record(record: StateRecord) -> GroupFact | None:
    """What a record says, or None if it is of a kind that is passed over."""
    if record.key is None:
        return None
    kind, raw = peek_version(record.key), record.value
    if kind in _OFFSET_KEY_VERSIONS:
        committed = None if raw is None else decode_versioned(OffsetCommitValue, raw)
        return decode_versioned(OffsetCommitKey, record.key), committed
    if kind == _GROUP_KEY_VERSION:
        agreed = None if raw is None else decode_versioned(GroupMetadataValue, raw)
        return decode_versioned(GroupMetadataKey, record.key), agreed
    return None


def apply_record(groups: dict[str, Group], record: StateRecord) -> None:
    """Change the groups by one record of their log."""
    match decode_record(record):
        case OffsetCommitKey() as key, (OffsetCommitValue() | None) as committed:
            _apply_offset(groups, key, committed)
        case GroupMetadataKey() as key, (GroupMetadataValue() | None) as agreed:
            _apply_group(groups, key.group, agreed)


def _apply_offset(groups: dict[str, Group], key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    partition = TopicPartition(key.topic, key.partition)
    group = groups.get(key.group)
    if value is not None:
        if group is None:
            group = groups[key.group] = Group(key.group)
        before, committed = (
            group.offsets.get(partition),
            CommittedOffset(
                offset=value.offset,
                leader_epoch=value.leader_epoch,
                metadata=value.metadata,
                committed_ms=value.commit_timestamp,
                expires_ms=None if value.expire_timestamp == _NO_TIMESTAMP else value.expire_timestamp,
                topic_id=TopicId(value.topic_id),
            ),
        )
        group.offsets[partition] = committed
        group.offset_bytes += offset_bytes(committed) - (offset_bytes(before) if before is not None else 0)
    elif group is not None and (removed := group.offsets.pop(partition, None)) is not None:
        group.offset_bytes -= offset_bytes(removed)


def _apply_group(groups: dict[str, Group], group_id: str, value: GroupMetadataValue | None) -> None:
    if value is not None:
        group = groups.get(group_id)
        if group is None:
            group = groups[group_id] = Group(group_id)
        _adopt(group, value)
    elif group_id in groups:
        groups.pop(group_id).move(GroupEvent.REMOVED)


def _adopt(group: Group, value: GroupMetadataValue) -> None:
    """Take the agreement over. Members that are here already stay who they are: they may be waiting."""
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol or ""
    group.state_since_ms = None if value.current_state_timestamp == _NO_TIMESTAMP else value.current_state_timestamp
    known = group.take_members()
    for agreed in value.members:
        member = known.get(agreed.member_id) or _member(agreed, group.protocol)
        member.assignment = agreed.assignment
        group.add(member)
    group.leader_id = value.leader or ""
    group.move(GroupEvent.ASSIGNED if value.members else GroupEvent.EMPTIED)


def _member(agreed: MemberMetadata, protocol: str) -> Member:
    return Member(
        member_id=agreed.member_id,
        instance_id=agreed.group_instance_id,
        client_id=agreed.client_id,
        client_host=agreed.client_host,
        session_timeout_ms=agreed.session_timeout,
        # Version 0 knew no rebalance timeout: it was the session timeout.
        rebalance_timeout_ms=agreed.rebalance_timeout if agreed.rebalance_timeout >= 0 else agreed.session_timeout,
        protocols=(Protocol(protocol, agreed.subscription),),
    )
