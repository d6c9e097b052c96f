"""RemoveRaftVoter (key 81), version 0: let a broker vote on the metadata no more."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, i16, i32, string, uuid


class RemoveRaftVoterRequest(Request["RemoveRaftVoterResponse"]):
    api_key: ClassVar = 81
    flexible_since: ClassVar = 0

    cluster_id: string | None
    voter_id: i32
    voter_directory_id: uuid


class RemoveRaftVoterResponse(Message):
    api_key: ClassVar = 81
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
