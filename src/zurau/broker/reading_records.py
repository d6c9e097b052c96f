"""Records read one by one, for front ends whose clients do not take batches apart themselves.

A few bytes may unpack to many megabytes, and the disk may be slow: both are done in a worker, in a fair queue.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial

from zurau.broker.broker import Broker
from zurau.broker.waiting import with_timeout
from zurau.errors import DiskFault, OffsetOutOfRange, Refused
from zurau.ids import Offset, TopicPartition
from zurau.machines.machine import Value
from zurau.partition.partition import Partition, refusal
from zurau.records.batch import iter_batches
from zurau.records.record import Record, iter_records
from zurau.wire.kafka.error_codes import ErrorCode

#: Asked for: wherever the log begins.
NO_OFFSET = -1


class ReadRecord(Value):
    offset: Offset
    timestamp: int
    key: bytes | None
    value: bytes | None


class RecordsRead(Value):
    records: tuple[ReadRecord, ...]
    #: Where to read on. Compaction and the brokers' own marks leave gaps.
    next_offset: Offset
    #: The end of what is committed.
    high_watermark: Offset


class Wanted(Value):
    """From where, and how much; a first record is read though it be larger."""

    offset: Offset
    max_records: int
    max_bytes: int
    #: How long to wait for a first record.
    wait_ms: int


async def read_records_here(name: TopicPartition, wanted: Wanted, client: Hashable, broker: Broker) -> RecordsRead:
    """Of a partition that this broker leads. Raises `Refused`."""
    partition = broker.partition(name.topic, name.partition)
    partition.require_established()
    offset = partition.log.start_offset if wanted.offset == NO_OFFSET else wanted.offset
    _require_in_range(offset, partition)
    if offset >= partition.readable_upto(committed_only=True) and wanted.wait_ms > 0:
        more = partition.wait_readable(offset + 1)
        try:
            await with_timeout(wanted.wait_ms, more, broker.clock)
        finally:
            partition.stop_waiting(offset + 1, more)
        partition.require_established()
    upto = partition.readable_upto(committed_only=True)
    if offset >= upto:
        return RecordsRead((), offset, partition.high_watermark)
    reading = broker.placement.unpacking.run(client, partial(_read, partition, offset, upto, wanted))
    try:
        records, next_offset = await reading
    except DiskFault as fault:
        raise refusal(fault) from fault
    except OffsetOutOfRange:  # retention was quicker
        raise _out_of_range(offset, partition) from None
    finally:
        reading.resolve(((), offset))  # if its client has left it need not begin
    return RecordsRead(records, next_offset, partition.high_watermark)


def _require_in_range(offset: Offset, partition: Partition) -> None:
    if not partition.log.start_offset <= offset <= partition.high_watermark:
        raise _out_of_range(offset, partition)


def _out_of_range(offset: Offset, partition: Partition) -> Refused:
    log_start, end = partition.log.start_offset, partition.high_watermark
    return Refused(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"{partition.name} can be read from offset {log_start} to {end}, not from {offset}",
    )


def _read(
    partition: Partition, offset: Offset, upto: Offset, wanted: Wanted, limit_bytes: int
) -> tuple[tuple[ReadRecord, ...], Offset]:
    """In a worker."""
    data = partition.read(offset, wanted.max_bytes, upto, may_block=True)
    found: list[ReadRecord] = []
    size, next_offset = 0, offset
    for record, next_offset_then in _records(data, offset, limit_bytes):
        if record is not None:
            size += len(record.key or b"") + len(record.value or b"")
            if found and (size > wanted.max_bytes or len(found) == wanted.max_records):
                break
            found.append(ReadRecord(record.offset, record.timestamp, record.key, record.value))
        next_offset = next_offset_then
    return tuple(found), next_offset


def _records(data: bytes, offset: Offset, limit_bytes: int) -> Iterator[tuple[Record | None, Offset]]:
    """From `offset` on, each with where to read on after it; None at the end of each batch."""
    for header, batch in iter_batches(data):
        if not header.is_control:  # what brokers write for themselves
            for record in iter_records(batch, limit_bytes):
                if record.offset >= offset:
                    yield record, record.offset + 1
        yield None, max(offset, header.next_offset)
