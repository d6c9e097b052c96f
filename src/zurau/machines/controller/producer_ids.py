"""Producer ids, given out in blocks so that a new producer does not cost a write to the metadata log.

What a broker did not use of its block when it stopped is lost; there are enough.
"""

from __future__ import annotations

from zurau.errors import Refused
from zurau.machines.controller.commands import AllocateProducerIds
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage
from zurau.machines.controller.records import ProducerIdsAllocated
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode


def allocate_producer_ids(image: ClusterImage, command: AllocateProducerIds) -> Decided:
    if command.count < 1:
        raise Refused(ErrorCode.INVALID_REQUEST, f"a block of producer ids has one id or more, not {command.count}")
    first, end = image.next_producer_id, image.next_producer_id + command.count
    if end > INT64_MAX:
        raise Refused(ErrorCode.INVALID_REQUEST, f"there are no {command.count} producer ids left")
    return Decided([ProducerIdsAllocated(next_producer_id=end)], (first, end))
