"""A producer's batch, from the log of the broker that leads to its acknowledgement."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from zurau.broker.broker import Broker
from zurau.broker.waiting import with_timeout
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.controller.names import is_internal
from zurau.partition.admission import read_header
from zurau.partition.partition import Appended, Partition
from zurau.pending import Pending, done
from zurau.wire.kafka.error_codes import ErrorCode

_DONE = done(None)


class Written(msgspec.Struct):
    """A batch in the log, and when it may be acknowledged."""

    partition: Partition
    appended: Appended
    acknowledged: Pending[None]


def written(partition: Partition, appended: Appended, *, acks_all: bool) -> Written:
    return Written(partition, appended, partition.wait_replicated(appended.next_offset) if acks_all else _DONE)


def require_acknowledged(one: Written, timeout_ms: int) -> None:
    """Raises `Refused` if it was not, after so long."""
    if not one.acknowledged.is_done:
        one.partition.stop_waiting(one.appended.next_offset, one.acknowledged)
        late = f"written, but not committed within {timeout_ms} ms; it may still be"
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, late)
    try:
        if one.acknowledged.error is not None:
            one.acknowledged.result()
    except Refused as refused:
        if refused.code == ErrorCode.KAFKA_STORAGE_ERROR:
            # To producers that would mean "not stored", and some would send it again as a new batch.
            raise _may_still_be(refused) from refused
        raise


async def append_here(
    name: TopicPartition, batch: memoryview, timeout_ms: int, client: Hashable, broker: Broker
) -> Appended:
    """Returns when it is committed. What is refused with NOT_LEADER_OR_FOLLOWER was not written."""
    if is_internal(name.topic):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name.topic} is written by the brokers alone")
    partition = broker.partition(name.topic, name.partition)
    partition.require_in_sync_replicas()
    appended = partition.append_plain(batch, client) or partition.append(batch, read_header(batch), client)
    if isinstance(appended, Pending):
        appended = await appended
    one = written(partition, appended, acks_all=True)
    await with_timeout(timeout_ms, one.acknowledged, broker.clock)
    try:
        require_acknowledged(one, timeout_ms)
    except Refused as refused:
        if refused.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:  # not any more, and the next one may have it
            raise _may_still_be(refused) from refused
        raise
    return appended


def _may_still_be(refused: Refused) -> Refused:
    return Refused(ErrorCode.REQUEST_TIMED_OUT, f"written, but not committed, and may still be: {refused.message}")
