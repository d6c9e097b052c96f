"""`Producer`, for asyncio: `send` hands a record over, and what it returns can be awaited until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from zurau.client.aio.carrier import Carrier, Outgoing, new_record
from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import ProduceFailed
from zurau.client.producer.accumulator import RECORD_OVERHEAD_BYTES
from zurau.client.producer.sender import ProducerSettings
from zurau.ids import Offset, TopicPartition


class RecordMetadata(NamedTuple):
    """Where a record is. The offset is -1 when nobody was asked to acknowledge it (acks=0)."""

    partition: TopicPartition
    offset: Offset


class AsyncProducer:
    """Use it in an `async with` block: leaving flushes. All its tasks belong to one loop.

    By default a batch does not wait for more records (`linger_s`): those of many tasks gather while an earlier batch of
    their partition is on its way.
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings | None = None) -> None:
        self._settings = settings or ProducerSettings(linger_s=0.0)
        self._cluster = cluster.sibling()
        self._carrier: Carrier | None = None
        self._is_closed = False
        self._unsettled: dict[Outgoing, asyncio.Future[RecordMetadata]] = {}
        self._unsettled_bytes = 0
        self._something_settled = asyncio.Event()
        self._ended = asyncio.Event()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hand over one record; waits only while too much is not acknowledged. The result can be awaited, and raises
        what went wrong. Cancelling it does not take the record back."""
        record = new_record(value, key, headers, timestamp_ms)
        size_bytes = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        while self._unsettled and self._unsettled_bytes + size_bytes > self._settings.buffer_bytes:
            await self._next_settled()
        if self._is_closed:
            raise ProduceFailed("the producer is closed")
        outgoing = Outgoing(topic, partition, record, size_bytes)
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        self._unsettled[outgoing] = future
        self._unsettled_bytes += size_bytes
        self._started().put(outgoing)
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Write one record, and return when it is acknowledged."""
        return await (
            await self.send(topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms)
        )

    async def flush(self) -> None:
        """Return when all that was handed over so far is acknowledged; raise if some of it cannot be."""
        awaited = set(self._unsettled)
        if self._carrier is not None:
            self._carrier.hurry()
        while not awaited.isdisjoint(self._unsettled):
            await self._next_settled()
        for outgoing in awaited:
            if outgoing.error is not None:
                raise outgoing.error

    async def close(self) -> None:
        try:
            await self.flush()
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Close without waiting for brokers; what was not acknowledged may or may not be in the log."""
        self._is_closed = True
        if self._carrier is not None:
            self._carrier.stop()
            await self._ended.wait()

    def _started(self) -> Carrier:
        if self._carrier is None:
            loop = asyncio.get_running_loop()

            def on_settled(settled: list[Outgoing]) -> None:
                with suppress(RuntimeError):  # the loop was closed first: nobody waits any more
                    loop.call_soon_threadsafe(self._settle, settled)

            def on_ended(error: BaseException) -> None:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._end, error)

            self._carrier = Carrier(self._cluster, self._settings, on_settled, on_ended)
            self._carrier.start()
        return self._carrier

    def _settle(self, settled: list[Outgoing]) -> None:
        for outgoing in settled:
            future = self._unsettled.pop(outgoing)
            self._unsettled_bytes -= outgoing.size_bytes
            if future.done():
                continue  # cancelled
            if outgoing.error is not None:
                future.set_exception(outgoing.error)
            else:
                assert outgoing.partition is not None
                place = TopicPartition(outgoing.topic, outgoing.partition)
                future.set_result(RecordMetadata(place, outgoing.offset))
        self._something_settled.set()

    def _end(self, error: BaseException) -> None:
        self._is_closed = True
        self._ended.set()
        for outgoing in self._unsettled:
            outgoing.error = error
        self._settle(list(self._unsettled))

    async def _next_settled(self) -> None:
        self._something_settled.clear()
        await self._something_settled.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self.abandon()
