"""FindCoordinator (key 10), versions 0 to 6: which broker looks after this group or transaction?

Up to version 3 one key is asked for and answered at the top level; from version 4 on, many.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, between, i8, i16, i32, since, string, until


class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    api_key: ClassVar = 10
    flexible_since: ClassVar = 3

    key: Annotated[string, until(3)] = ""
    #: 0: group, 1: transaction, 2: share group.
    key_type: Annotated[i8, since(1)] = 0
    coordinator_keys: Annotated[list[string], since(4)] = []


class Coordinator(Struct):
    key: string
    node_id: i32
    host: string
    port: i32
    error_code: i16 = 0
    error_message: string | None = None


class FindCoordinatorResponse(Message):
    api_key: ClassVar = 10
    flexible_since: ClassVar = 3

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: Annotated[i16, until(3)] = 0
    error_message: Annotated[string | None, between(1, 3)] = None
    node_id: Annotated[i32, until(3)] = -1
    host: Annotated[string, until(3)] = ""
    port: Annotated[i32, until(3)] = -1
    coordinators: Annotated[list[Coordinator], since(4)] = []
