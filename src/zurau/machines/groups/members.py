"""One member of a group: what it told us about itself, and what it is waiting for.

What a member says about its subscription is opaque to us, one blob for each assignment protocol that it speaks. Only
for Kafka's own consumers (protocol type "consumer") we look inside, to know which topics are in use and whether a
member that was restarted may simply go on.
"""

from __future__ import annotations

from collections.abc import Container
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from zurau.errors import ProtocolViolation
from zurau.machines.machine import RequestId
from zurau.settings import KIB
from zurau.wire.kafka.codec import decode, peek_version
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from zurau.machines.groups.commands import JoinGroup

CONSUMER_PROTOCOL_TYPE = "consumer"
#: In front of a subscription stands its version, an int16.
VERSION_BYTES = 2
OWNED_PARTITIONS_SINCE = 1
#: And then the number of its topics.
COUNT = slice(2, 6)
#: Of what one member says, while everybody else waits: some milliseconds. Clients with thousands of topics say more,
#: and share out anew when they restart.
DECODED_BYTES_MAX = 128 * KIB


class Protocol(NamedTuple):
    """A way to assign partitions that a member speaks, with its subscription in that protocol's words."""

    name: str
    metadata: bytes


class Member(msgspec.Struct):
    member_id: str
    #: A name that outlives restarts of the process (KIP-345); None for a dynamic member.
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    #: In order of preference.
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""

    # Volatile from here on: a successor starts with these defaults.
    #: The join that waits at the barrier. Invariant: at most one of the two request_ids is set.
    join_request_id: RequestId | None = None
    sync_request_id: RequestId | None = None
    #: It has not learnt its first generation yet, so it cannot send heartbeats.
    is_new: bool = False
    #: It has asked for its assignment in the current generation.
    has_synced: bool = True

    @property
    def is_waiting(self) -> bool:
        return self.join_request_id is not None or self.sync_request_id is not None

    def metadata_for(self, protocol: str) -> bytes:
        return next((offered.metadata for offered in self.protocols if offered.name == protocol), b"")

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(offered.name for offered in self.protocols)

    def vote(self, candidates: Container[str]) -> str:
        """The candidate that it likes best."""
        return next(offered.name for offered in self.protocols if offered.name in candidates)


def said_by(member: Member | JoinGroup, member_id: str) -> int:
    """The bytes of what a member has said of itself: names as well, each of which may have 32 KB."""
    names = (member_id, member.instance_id, member.client_id, member.client_host)
    offered = sum(getsizeof(offered.name) + len(offered.metadata) for offered in member.protocols)
    return sum(map(getsizeof, names)) + offered


def mentions(metadata: bytes, topic: str) -> bool:
    """Whether a consumer's subscription has this topic in it, perhaps only as one that it owned.

    Also when it does not look like a subscription. It may have a million topics, so it is searched and not decoded.
    """
    if len(metadata) < COUNT.stop or not 0 <= int.from_bytes(metadata[COUNT], signed=True) <= len(metadata):
        return True
    name = topic.encode()
    return len(name).to_bytes(2) + name in metadata


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics in a consumer's subscription; None when it does not look like one, or is too large to be looked at.

    Every version begins with what version 0 has, and the topics are all that is needed here.
    """
    if len(metadata) > DECODED_BYTES_MAX:
        return None
    try:
        subscription, _ = decode(ConsumerProtocolSubscription, 0, metadata, VERSION_BYTES)
    except ProtocolViolation:
        return None
    return frozenset(subscription.topics)


def means_the_same(protocol_type: str, old: bytes, new: bytes) -> bool:
    """Whether two subscriptions ask for the same.

    A consumer also writes down what it owned, which is lost in a restart and is no reason to share out anew: of its
    subscription the topics count.
    """
    if old == new:
        return True
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return False
    topics = subscribed_topics(old)
    return topics is not None and topics == subscribed_topics(new)


def has_more_to_give_up(metadata: bytes, assignment: bytes) -> bool:
    """Whether a cooperative consumer owned more when it joined than it was given then.

    It is to join once more, without the rest, which nobody owns until it does (KIP-429). One that says more than is
    looked at here may have.
    """
    if len(metadata) + len(assignment) > DECODED_BYTES_MAX:
        return True
    try:
        if peek_version(metadata) < OWNED_PARTITIONS_SINCE:
            return False
        subscription, _ = decode(ConsumerProtocolSubscription, OWNED_PARTITIONS_SINCE, metadata, VERSION_BYTES)
        given, _ = decode(ConsumerProtocolAssignment, 0, assignment, VERSION_BYTES)
    except ProtocolViolation:
        return False
    owned = {(each.topic, index) for each in subscription.owned_partitions for index in each.partitions}
    return not owned <= {(each.topic, index) for each in given.assigned_partitions for index in each.partitions}
