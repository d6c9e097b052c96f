"""The roles of a replica and what leads from one to another, as a table.

A role's handlers return a cause, or nothing; this table says what becomes of the replica then. A pair that is not in
the table cannot happen. docs/replication.md shows the table as it stands here.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"


class Cause(StrEnum):
    HIGHER_EPOCH = "heard of a higher epoch"
    LEADER_FOUND = "heard who leads"
    LEADER_SILENT = "no answer from a leader for the fetch timeout"
    NAMED_SUCCESSOR = "named first by a leader that resigned"
    PRE_VOTES_WON = "a majority would vote"
    VOTES_WON = "a majority voted"
    ROUND_OVER = "no majority in time"
    QUORUM_LOST = "no majority moved on for the check-quorum time"
    RESIGNED = "handed over, shut down, or voted out"


TRANSITIONS: dict[tuple[Role, Cause], Role] = {
    (Role.FOLLOWER, Cause.HIGHER_EPOCH): Role.FOLLOWER,
    (Role.FOLLOWER, Cause.LEADER_FOUND): Role.FOLLOWER,
    (Role.FOLLOWER, Cause.LEADER_SILENT): Role.PROSPECTIVE,
    (Role.FOLLOWER, Cause.NAMED_SUCCESSOR): Role.CANDIDATE,
    (Role.PROSPECTIVE, Cause.HIGHER_EPOCH): Role.FOLLOWER,
    (Role.PROSPECTIVE, Cause.LEADER_FOUND): Role.FOLLOWER,
    (Role.PROSPECTIVE, Cause.PRE_VOTES_WON): Role.CANDIDATE,
    (Role.PROSPECTIVE, Cause.ROUND_OVER): Role.PROSPECTIVE,
    (Role.CANDIDATE, Cause.HIGHER_EPOCH): Role.FOLLOWER,
    (Role.CANDIDATE, Cause.LEADER_FOUND): Role.FOLLOWER,
    (Role.CANDIDATE, Cause.VOTES_WON): Role.LEADER,
    (Role.CANDIDATE, Cause.ROUND_OVER): Role.PROSPECTIVE,
    (Role.LEADER, Cause.HIGHER_EPOCH): Role.FOLLOWER,
    (Role.LEADER, Cause.QUORUM_LOST): Role.FOLLOWER,
    (Role.LEADER, Cause.RESIGNED): Role.FOLLOWER,
}
