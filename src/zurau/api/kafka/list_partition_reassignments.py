"""ListPartitionReassignments: nothing is ever on its way from one broker to another here."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle(
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 - whichever are asked for
    call: Call,  # noqa: ARG001
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse()
