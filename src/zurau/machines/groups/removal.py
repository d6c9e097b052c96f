"""How groups and their offsets end: by an operator, with their topic, or because nobody needed them for long.

Offsets expire (KIP-211) when for the retention time
- the group has been empty, and nothing was committed to it from outside, or
- a group that never had members has not committed to that partition, or
- a stable group of consumers has neither subscribed to the topic nor committed to that partition.

An empty group without offsets is removed too. All this is looked for now and then, not timed offset by offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from zurau.ids import NO_TOPIC_ID, TopicPartition
from zurau.machines.groups.commands import (
    Acknowledged,
    CommittedOffset,
    DeleteGroup,
    DeleteOffsets,
    ForgetTopics,
    OffsetsDeleted,
    Unfinished,
)
from zurau.machines.groups.group import Group, GroupState
from zurau.machines.groups.members import CONSUMER_PROTOCOL_TYPE
from zurau.machines.groups.records import offset_removed_record, removed_record
from zurau.machines.groups.step import Step
from zurau.machines.machine import RequestId
from zurau.wire.kafka.error_codes import ErrorCode

Groups = Mapping[str, Group]

#: In one decision, which is carried out while all others wait.
RECORDS_MAX = 1000


def delete_offsets(groups: Groups, command: DeleteOffsets, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    if group is None:
        step.refuse(request_id, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}")
        return
    if group.members and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        step.refuse(request_id, ErrorCode.NON_EMPTY_GROUP, "whether its members use the topics cannot be seen")
        return
    in_use = group.in_use({partition.topic for partition in command.partitions})
    codes = {}
    for partition in command.partitions:
        is_in_use = partition.topic in in_use
        codes[partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_in_use else ErrorCode.NONE
        if not is_in_use and partition in group.offsets:
            step.records.append(offset_removed_record(group.group_id, partition))
    step.answer(request_id, OffsetsDeleted(codes))


def forget_topics(groups: Groups, command: ForgetTopics, request_id: RequestId, step: Step) -> None:
    names = {name for name, _ in command.topics}
    for group in groups.values():
        for partition, committed in group.offsets.items():
            if partition.topic in names and _is_of(partition.topic, committed, command):
                if len(step.records) == RECORDS_MAX:
                    step.answer(request_id, Unfinished(min(step.now_ms, command.committed_upto_ms)))
                    return
                step.records.append(offset_removed_record(group.group_id, partition))
    step.answer(request_id, Acknowledged())


def _is_of(topic: str, committed: CommittedOffset, command: ForgetTopics) -> bool:
    if committed.topic_id == NO_TOPIC_ID:
        return committed.committed_ms <= command.committed_upto_ms
    return (topic, committed.topic_id) in command.topics


def delete_group(groups: Groups, command: DeleteGroup, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    if group is None:
        step.refuse(request_id, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}")
    elif group.state is not GroupState.EMPTY:
        step.refuse(request_id, ErrorCode.NON_EMPTY_GROUP, f"group {command.group_id!r} has members")
    else:
        partitions = islice(group.offsets, RECORDS_MAX)
        step.records.extend(offset_removed_record(group.group_id, partition) for partition in partitions)
        if len(group.offsets) > RECORDS_MAX:
            step.answer(request_id, Unfinished(step.now_ms))
            return
        step.records.append(removed_record(group.group_id))
        step.answer(request_id, Acknowledged())


def sweep(groups: Groups, step: Step) -> bool:
    """Remove what has expired. False when there is more than one decision may write."""
    for group in groups.values():
        room = RECORDS_MAX - len(step.records)
        if room <= 0:
            return False
        expired = _expired(group, step.now_ms, step.settings.offsets_retention_ms)[:room]
        step.records.extend(offset_removed_record(group.group_id, partition) for partition in expired)
        is_bare = len(expired) == len(group.offsets) and not group.pending_ids
        if is_bare and group.state is GroupState.EMPTY:
            step.records.append(removed_record(group.group_id))
    return len(step.records) < RECORDS_MAX


def _expired(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    if group.state not in (GroupState.EMPTY, GroupState.STABLE):
        return []
    emptied_ms = (group.state_since_ms or 0) if group.state is GroupState.EMPTY else 0
    expired = [
        partition
        for partition, committed in group.offsets.items()
        if now_ms >= _expires_ms(committed, max(committed.committed_ms, emptied_ms), retention_ms)
    ]
    in_use = group.in_use({partition.topic for partition in expired})
    return [partition for partition in expired if partition.topic not in in_use]


def _expires_ms(committed: CommittedOffset, last_use_ms: int, retention_ms: int) -> int:
    return last_use_ms + retention_ms if committed.expires_ms is None else committed.expires_ms
