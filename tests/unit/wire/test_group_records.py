"""The records of consumer groups, byte for byte as Kafka writes them."""

from __future__ import annotations

import pytest

from zurau.wire.kafka.codec import decode_versioned, encode_versioned
from zurau.wire.kafka.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=7)
MEMBER = MemberMetadata(
    member_id="m-1",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=10,
    session_timeout=20,
    subscription=b"s",
    assignment=b"a",
)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=3,
    protocol="range",
    leader="m-1",
    current_state_timestamp=9,
    members=[MEMBER],
)


def packed(*parts: str) -> bytes:
    return bytes.fromhex("".join(parts).replace(" ", ""))


def test_an_offset_key_names_group_topic_and_partition():
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    assert encode_versioned(key, 1) == packed("0001", "0001 67", "0001 74", "00000001")


def test_a_group_key_is_version_two():
    assert encode_versioned(GroupMetadataKey(group="g"), 2) == packed("0002", "0001 67")


def test_an_offset_value_of_version_three_has_the_leader_epoch():
    expected = packed("0003", "0000000000000005", "00000002", "0001 6d", "0000000000000007")
    assert encode_versioned(OFFSET, 3) == expected


def test_an_offset_value_of_version_one_has_an_expiry():
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7, expire_timestamp=8)
    expected = packed("0001", "0000000000000005", "0001 6d", "0000000000000007", "0000000000000008")
    assert encode_versioned(value, 1) == expected


def test_a_group_value_of_version_three_holds_its_members():
    expected = packed(
        "0003", "0008 636f6e73756d6572", "00000003", "0005 72616e6765", "0003 6d2d31", "0000000000000009", "00000001"
    ) + packed("0003 6d2d31", "0001 69", "0001 63", "0002 2f68", "0000000a", "00000014", "00000001 73", "00000001 61")
    assert encode_versioned(GROUP, 3) == expected


@pytest.mark.parametrize("version", [3, 4])
def test_values_survive_a_round_trip(version):
    assert decode_versioned(OffsetCommitValue, encode_versioned(OFFSET, version)) == OFFSET
    assert decode_versioned(GroupMetadataValue, encode_versioned(GROUP, version)) == GROUP


def test_an_empty_group_has_neither_protocol_nor_leader():
    empty = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader=None, members=[])
    assert decode_versioned(GroupMetadataValue, encode_versioned(empty, 3)) == empty
