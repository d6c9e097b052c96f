"""Offsets by what they stand for: the end, the beginning, a moment."""

from __future__ import annotations

from collections.abc import Callable

from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.partition.partition import Partition, refusal

#: An offset, and the timestamp of the record there.
Found = tuple[Offset, int]


async def latest_offset(partition: Partition, *, committed_only: bool) -> Offset:
    """One past the last record that can be read."""
    if partition.fault is None:
        # So that a producer that was acknowledged without a flush (acks=1) finds its own records counted.
        await partition.wait_readable(partition.log.end_offset)
    return partition.readable_upto(committed_only=committed_only)


async def offset_at_time(
    timestamp: int, partition: Partition, caller: Caller, broker: Broker, *, committed_only: bool
) -> Found | None:
    """The first record at or after a moment."""
    upto = partition.readable_upto(committed_only=committed_only)
    log = partition.log
    return await _search(lambda limit_bytes: log.find_by_timestamp(timestamp, upto, limit_bytes), caller, broker)


async def offset_of_max_timestamp(
    partition: Partition, caller: Caller, broker: Broker, *, committed_only: bool
) -> Found | None:
    """The record with the largest timestamp."""
    upto = partition.readable_upto(committed_only=committed_only)
    log = partition.log
    return await _search(lambda limit_bytes: log.find_max_timestamp(upto, limit_bytes), caller, broker)


async def _search(search: Callable[[int], Found | None], caller: Caller, broker: Broker) -> Found | None:
    """Search in a worker: what is unpacked for it may be large."""
    searching = broker.placement.unpacking.run(caller.connection, search)
    try:
        return await searching
    except DiskFault as fault:
        raise refusal(fault) from fault
    finally:
        searching.resolve(None)  # if its client has left it need not begin
