"""Settings that only make sense while running: what operators do to brokers and topics for a while.

They are not a log's, so nothing is laid over them: a broker or a topic has what was set on it, or the default.
"""

from __future__ import annotations

from dataclasses import dataclass

from zurau.settings import INT64_MAX, setting

DRAIN = "zurau.drain"
#: A drained broker leads nothing that another could lead; one that is to go gets no new replicas and no vote either.
NOT_DRAINED, LEADERS, EVERYTHING = "none", "leaders", "everything"
METADATA_VOTE = "zurau.metadata.vote"
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
#: For a topic: all of its replicas.
ALL_REPLICAS = "*"


@dataclass(frozen=True, slots=True)
class DynamicBrokerSettings:
    drain: str = setting(
        NOT_DRAINED,
        DRAIN,
        choices=(NOT_DRAINED, LEADERS, EVERYTHING),
        doc="leaders: this broker leads nothing that another could lead, until this is taken back. everything: it is "
        "to go, and gets no new replicas and no vote either. See `zurau cluster drain` and `decommission`.",
    )
    metadata_vote: bool = setting(
        True,
        METADATA_VOTE,
        doc="Whether this broker may vote on the metadata; `kafka-metadata-quorum remove-controller` sets it to false.",
    )
    leader_rate: int = setting(
        INT64_MAX,
        LEADER_RATE,
        at_least=1,
        at_most=INT64_MAX,
        doc="Bytes a second that this broker sends to the throttled replicas that follow it.",
    )
    follower_rate: int = setting(
        INT64_MAX,
        FOLLOWER_RATE,
        at_least=1,
        at_most=INT64_MAX,
        doc="Bytes a second that the throttled replicas of this broker take from their leaders.",
    )
    log_dirs_rate: int = setting(
        INT64_MAX,
        "replica.alter.log.dirs.io.max.bytes.per.second",
        at_least=1,
        at_most=INT64_MAX,
        doc="Accepted for compatibility: a broker has one directory, so nothing moves between two.",
    )


@dataclass(frozen=True, slots=True)
class DynamicTopicSettings:
    leader_replicas: tuple[str, ...] = setting(
        (),
        LEADER_REPLICAS,
        doc="Replicas that are sent to at leader.replication.throttled.rate: partition:broker, or *.",
    )
    follower_replicas: tuple[str, ...] = setting(
        (),
        FOLLOWER_REPLICAS,
        doc="Replicas that take at follower.replication.throttled.rate: partition:broker, or *.",
    )
