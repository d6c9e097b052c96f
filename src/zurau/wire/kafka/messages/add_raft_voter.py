"""AddRaftVoter (key 80), version 0: let a broker vote on the metadata."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, string, u16, uuid


class Listener(Struct):
    name: string
    host: string
    port: u16


class AddRaftVoterRequest(Request["AddRaftVoterResponse"]):
    api_key: ClassVar = 80
    flexible_since: ClassVar = 0

    cluster_id: string | None
    timeout_ms: i32
    voter_id: i32
    voter_directory_id: uuid
    listeners: list[Listener]


class AddRaftVoterResponse(Message):
    api_key: ClassVar = 80
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
