"""Replicas at rest: what silence tells a role.

A follower that has everything and a leader that has nothing new need not tell each other so. The stream between their
brokers (`session.py`) is the sign of life of all partitions together; a replica hears when that begins to stand for a
fetch or an answer, and when it ends and how long it was true. In between it has no deadline, and costs nothing.
"""

from __future__ import annotations

from zurau.replica.events import AnswerStands, FetchStands, StoodUntil
from zurau.replica.follower import Follower
from zurau.replica.serving import Serving

Silence = FetchStands | AnswerStands | StoodUntil


def note_silence(role: object, event: Silence) -> None:
    match role, event:
        case Serving(), FetchStands(fetch):
            role.stand(fetch)
        case Follower(), AnswerStands(answer):
            role.stand(answer)
        case ((Serving() | Follower()), StoodUntil(replica, at_ms)):
            role.stood_until(replica, at_ms)
