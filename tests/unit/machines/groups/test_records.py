"""What a successor knows after reading the log, and that the log is in Kafka's format."""

from __future__ import annotations

import pytest

from zurau.errors import ProtocolViolation
from zurau.ids import TopicId, TopicPartition
from zurau.machines.groups.commands import Acknowledged, NewOffset
from zurau.machines.groups.machine import GroupMachine
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.machine import StateRecord
from zurau.wire.kafka.codec import decode_versioned
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey


def test_members_go_on_after_a_restart_as_if_nothing_had_happened(stage):
    stage.form("a", "b")
    stage.restart()
    assert stage.heartbeat("a") == Acknowledged()
    assert stage.outcome(stage.sync("b")).assignment == b"b"
    assert stage.state == "Stable"


def test_members_have_a_whole_session_after_a_restart(stage):
    stage.form("a")
    stage.advance(9_000)
    stage.restart()
    stage.advance(9_999)
    assert stage.heartbeat("a") == Acknowledged()


def test_members_who_do_not_come_back_after_a_restart_are_removed(stage):
    stage.form("a")
    stage.restart()
    stage.advance(10_000)
    assert stage.state == "Empty"


def test_a_restart_between_the_barriers_falls_back_to_the_last_agreement(stage):
    stage.form("a")
    stage.join("b")
    stage.join("a")
    assert stage.generation == 2
    stage.restart()
    assert (stage.state, stage.generation) == ("Stable", 1)
    assert stage.heartbeat("b", generation=2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_description_is_the_same_after_a_restart(stage):
    stage.form("a", "b", instance_id=None)
    before = stage.describe()
    stage.restart()
    assert stage.describe() == before


def test_offsets_survive_a_restart(stage):
    stage.commit("orders", 5)
    stage.restart()
    assert stage.committed() == {"orders": 5}


def test_an_empty_group_goes_on_counting_generations_after_a_restart(stage):
    stage.form("a")
    stage.leave("a")
    stage.restart()
    assert stage.outcome(stage.join("b")).generation == 3


def test_an_agreement_is_written_as_kafka_writes_it(stage):
    stage.form("a")
    key, raw = stage.log[-1]
    assert decode_versioned(GroupMetadataKey, key).group == "readers"
    value = decode_versioned(GroupMetadataValue, raw)
    assert (value.generation, value.protocol, value.leader, value.protocol_type) == (1, "range", "a", "consumer")
    assert (value.members[0].assignment, value.members[0].session_timeout) == (b"a", 10_000)
    assert raw[:2] == b"\x00\x03"


def test_an_offset_is_written_as_kafka_writes_it(stage):
    stage.commit("orders", 5)
    key = decode_versioned(OffsetCommitKey, stage.log[-1].key)
    assert (key.group, key.topic, key.partition) == ("readers", "orders", 0)
    assert stage.log[-1].value == (b"\x00\x03" + (5).to_bytes(8) + b"\xff" * 4 + b"\x00\x00" + stage.now_ms.to_bytes(8))


def test_an_offset_in_a_topic_with_an_id_is_written_as_kafka_writes_it(stage):
    stage.commit("", 0, offsets={TopicPartition("orders", 0): NewOffset(5, topic_id=TopicId(bytes(range(16))))})
    value = (5).to_bytes(8) + b"\xff" * 4 + b"\x01" + stage.now_ms.to_bytes(8)
    assert stage.log[-1].value == b"\x00\x04" + value + b"\x01\x00\x10" + bytes(range(16))


def test_nothing_is_written_before_there_is_an_agreement(stage):
    stage.join("a")
    stage.heartbeat("a")
    assert stage.log == []


def test_records_of_other_kinds_are_passed_over():
    machine = GroupMachine(GroupSettings())
    machine.apply(StateRecord(b"\x00\x03from a newer protocol", b"?"), 0)
    machine.apply(StateRecord(None, b"?"), 1)
    assert not machine.groups


def test_a_record_that_cannot_be_read_is_not_passed_over():
    with pytest.raises(ProtocolViolation):
        GroupMachine(GroupSettings()).apply(StateRecord(b"\x00\x02\x00\x01g", b"\x00\x63"), 0)


def test_removing_what_is_not_there_changes_nothing(stage):
    stage.commit("orders", 5)
    stage.form("a")
    machine = GroupMachine(GroupSettings())
    for offset, record in enumerate(stage.log):
        machine.apply(StateRecord(record.key, None), offset)
    assert not machine.groups
