"""What travels in a fetch session."""

from __future__ import annotations

import msgspec

from zurau.replica.core.events import FetchProgressed, FollowerQuiesced, LeaderQuiesced, Unquiesced
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetch, Fetched, FetchRefused, HighWatermark, Message

#: What answers a fetch.
ANSWERS = frozenset({Fetched, FetchRefused, HighWatermark})

Addressed = tuple[PartitionId, Message]
Notice = tuple[PartitionId, LeaderQuiesced | FollowerQuiesced | Unquiesced | FetchProgressed]


class SessionRequest(msgspec.Struct, gc=False):
    #: The client's id of the session.
    session: int
    number: int
    messages: tuple[Addressed, ...] = ()
    #: Partitions that ask no more.
    closed: tuple[PartitionId, ...] = ()
    #: The server's id of the session; not known in the first request.
    server_session: int | None = None


class SessionResponse(msgspec.Struct, gc=False):
    session: int
    number: int
    messages: tuple[Addressed, ...] = ()
    #: Partitions that are not answered any more, until they ask anew.
    closed: tuple[PartitionId, ...] = ()
    #: The session is not known here, or this was not its next request: begin another.
    is_unknown: bool = False
    server_session: int | None = None


def has_news(response: Message, asked: Fetch) -> bool:
    """Whether an answer says more than that the leader is alive."""
    return (
        type(response) is not Fetched
        or bool(response.batches or response.marks)
        or response.high_watermark > asked.high_watermark
        or response.log_start > asked.log_start
        or response.diverging is not None
        or response.snapshot is not None
    )
