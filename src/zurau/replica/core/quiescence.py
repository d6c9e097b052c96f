"""Replicas at rest: what silence tells a role.

A follower that has everything and a leader that has nothing new need not tell each other so. The stream between their
brokers (`session.py`) is the sign of life of all partitions together; a replica hears when that begins to stand for a
fetch or an answer, and when it ends and how long it was true. In between it has no deadline, and costs nothing.
"""

from __future__ import annotations

from zurau.replica.core.events import FollowerQuiesced, LeaderQuiesced, Unquiesced
from zurau.replica.core.follower import Follower
from zurau.replica.core.serving import Serving

Silence = FollowerQuiesced | LeaderQuiesced | Unquiesced


def note_quiescence(role: object, event: Silence) -> None:
    match role, event:
        case Serving(), FollowerQuiesced(fetch):
            role.quiesce(fetch)
        case Follower(), LeaderQuiesced(answer):
            role.quiesce(answer)
        case ((Serving() | Follower()), Unquiesced(replica, at_ms)):
            role.unquiesced(replica, at_ms)
