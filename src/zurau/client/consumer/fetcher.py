"""Reads raw batches: one fetch per broker is always on its way, so the broker works while the caller decodes.

The position of a partition moves when an answer arrives. An answer that is no longer wanted, because the caller went
elsewhere in between, is told by its offset and dropped. A partition that was refused for a passing reason
is asked for again with fresh metadata; one that stays refused past the time-out raises. So does one that is damaged.

An error is raised only by a `poll` that has nothing to return: what arrived with it, of the same partition or of
others, was returned before. The position stays at the offset that failed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.cluster.connection import Connection, readable
from zurau.client.consumer.fetch_session import BEGIN_ANEW, FetchSession, Wanted
from zurau.client.consumer.near_replicas import NearReplicas
from zurau.client.errors import BrokerRefused, ClientError, CorruptRecords, UnknownTopic, error_code, may_pass
from zurau.client.offsets import READ_UNCOMMITTED, end_offsets, start_offsets
from zurau.client.retry import LEADER_DELAY_S, SUSPICION_S, Backoff, Deadline
from zurau.errors import CorruptData
from zurau.ids import NO_TOPIC_ID, BrokerId, Offset, TopicId, TopicPartition
from zurau.ports import Buffer
from zurau.records.batch import HEADER_BYTES, BatchHeader, parse_header
from zurau.settings import INT64_MAX, MIB
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from zurau.wire.kafka.messages.fetch import AbortedTransaction, PartitionData

NO_SESSION = 0
#: What to do at an offset that the log does not hold.
GO_TO_START, GO_TO_END, FAIL = "earliest", "latest", "error"


@dataclass(frozen=True, slots=True)
class FetchSettings:
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 32 * MIB
    partition_max_bytes: int = 4 * MIB
    #: READ_COMMITTED leaves out records of transactions that were aborted or are still open.
    isolation: int = READ_UNCOMMITTED
    on_out_of_range: str = FAIL
    #: How long a topic that nobody knows is waited for; None: as long as for anything else that may pass.
    unknown_topic_patience_s: float | None = None
    #: Where the consumer is (`client.rack`): followers in the same rack are read from, if there are any in step.
    rack: str = ""


class Fetched(NamedTuple):
    """Whole batches of one partition, each with its header; the first may begin before `offset`."""

    partition: TopicPartition
    offset: Offset
    batches: list[tuple[BatchHeader, memoryview]]
    high_watermark: Offset
    aborted: list[AbortedTransaction]


@dataclass(slots=True)
class InFlight:
    """A fetch on its way, and what it asked for."""

    session: FetchSession
    asked: dict[TopicPartition, Wanted]
    deadline: Deadline
    suspicion: Deadline

    @property
    def connection(self) -> Connection:
        return self.session.connection


class Fetcher:
    def __init__(self, cluster: Cluster, settings: FetchSettings | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or FetchSettings()
        self._positions: dict[TopicPartition, Offset] = {}
        self._until: dict[TopicPartition, Offset] = {}
        #: One with each broker, on a connection of its own.
        self._sessions: dict[BrokerId, FetchSession] = {}
        self._in_flight: dict[BrokerId, InFlight] = {}
        #: Since when partitions have been refused, and since when because nobody knows their topic.
        self._troubled_since_s: dict[TopicPartition, float] = {}
        self._unknown_since_s: dict[TopicPartition, float] = {}
        #: What the next poll raises. Such a partition is not asked for until then.
        self._failures: dict[TopicPartition, ClientError] = {}
        self._near = NearReplicas(time.monotonic)
        self._backoff = Backoff(LEADER_DELAY_S)
        self._resume_s = 0.0
        self._patience_s = cluster.timeout_s + self._settings.max_wait_ms / 1000

    @property
    def positions(self) -> dict[TopicPartition, Offset]:
        """The offset that is read next in each partition."""
        return dict(self._positions)

    @property
    def read_from(self) -> list[BrokerId]:
        """The brokers whose answers are awaited."""
        return sorted(self._in_flight)

    def assign(
        self, positions: Mapping[TopicPartition, Offset], *, until: Mapping[TopicPartition, Offset] | None = None
    ) -> None:
        """Read these partitions from these offsets, and no others; nothing is asked for at or after `until`."""
        self._positions = dict(positions)
        self._until = dict(until or {})
        self._failures.clear()
        self._troubled_since_s.clear()
        self._unknown_since_s.clear()

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        assert partition in self._positions, "only assigned partitions have a position"
        self._positions[partition] = offset
        self._failures.pop(partition, None)

    def fail(self, partition: TopicPartition, offset: Offset, error: ClientError) -> None:
        """What was fetched cannot be used from `offset` on: the next poll raises this, unless somebody seeks."""
        self.seek(partition, offset)
        self._failures[partition] = error

    def drop(self, partition: TopicPartition) -> None:
        del self._positions[partition]
        self._failures.pop(partition, None)

    def poll(self, timeout_s: float) -> list[Fetched]:
        """What has arrived, waiting up to `timeout_s` for the first answer."""
        deadline = Deadline(timeout_s)
        while True:
            self._ask()
            if self._failures:
                raise self._failures.pop(next(iter(self._failures)))
            waiting = [request.connection for request in self._in_flight.values()]
            if not waiting:
                time.sleep(min(deadline.remaining_s, max(0.0, self._resume_s - time.monotonic())))
            ready = readable(waiting, self._next_look_s(deadline)) if waiting else []
            fetched = [
                one
                for broker, request in list(self._in_flight.items())
                if request.connection in ready or request.deadline.passed
                for one in self._take(broker)
            ]
            self._look_for_other_leaders()
            if fetched or (deadline.passed and not self._failures):
                self._ask()
                return fetched

    def _next_look_s(self, deadline: Deadline) -> float:
        return min(deadline.remaining_s, *(each.suspicion.remaining_s for each in self._in_flight.values()))

    def _look_for_other_leaders(self) -> None:
        """Whoever takes too long may hang: leave it if others say that it leads no more."""
        for broker, request in list(self._in_flight.items()):
            if not request.suspicion.passed:
                continue
            request.suspicion = Deadline(SUSPICION_S / 2)
            with suppress(ClientError):
                self._near.forget(request.asked)
                self._cluster.refresh({each.topic for each in request.asked}, but=request.connection.address)
                if any(self._cluster.leader_of(each) != broker for each in request.asked):
                    del self._in_flight[broker]
                    request.connection.close()

    def close(self) -> None:
        for session in self._sessions.values():
            session.connection.close()
        self._in_flight.clear()

    def _ask(self) -> None:
        """Send a fetch to every broker that is read from and owes no answer."""
        if time.monotonic() < self._resume_s:
            return
        by_broker: dict[BrokerId, list[TopicPartition]] = {}
        for partition, position in self._positions.items():
            if position >= self._until.get(partition, INT64_MAX) or partition in self._failures:
                continue
            try:
                broker = self._near.find(partition)
                by_broker.setdefault(self._cluster.leader_of(partition) if broker is None else broker, []).append(
                    partition
                )
            except ClientError as error:
                self._trouble([partition], error)
        for broker, partitions in by_broker.items():
            if broker not in self._in_flight:
                self._ask_broker(broker, partitions)

    def _ask_broker(self, broker: BrokerId, partitions: list[TopicPartition]) -> None:
        try:
            session = self._sessions.get(broker)
            if session is None or not session.connection.is_open:
                session = FetchSession(self._cluster.dial(broker), self._settings.partition_max_bytes)
                self._sessions[broker] = session
            asked = {
                partition: Wanted(self._cluster.topic(partition.topic).topic_id, self._positions[partition])
                for partition in partitions
            }
            session.connection.send(self._request(session, asked))
        except ClientError as error:
            self._trouble(partitions, error)
            return
        self._in_flight[broker] = InFlight(
            session,
            asked,
            Deadline(self._patience_s),
            Deadline(self._settings.max_wait_ms / 1000 + SUSPICION_S),
        )

    def _request(self, session: FetchSession, asked: Mapping[TopicPartition, Wanted]) -> FetchRequest:
        topics, forgotten = session.next_fetch(asked)
        return FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=self._settings.isolation,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
            rack_id=self._settings.rack,
        )

    def _take(self, broker: BrokerId) -> list[Fetched]:
        request = self._in_flight.pop(broker)
        try:
            answer = request.connection.receive(FetchResponse, request.deadline.remaining_s)
        except ClientError as error:
            self._trouble(request.asked, error)
            return []
        if answer.error_code in BEGIN_ANEW:
            request.session.answered(NO_SESSION)
            return []
        request.session.answered(answer.session_id)
        if answer.error_code:
            self._trouble(request.asked, BrokerRefused(error_code(answer.error_code), "reading"))
        fetched = []
        for topic in answer.responses:
            name = (
                topic.topic if topic.topic_id == NO_TOPIC_ID else request.session.topic_names[TopicId(topic.topic_id)]
            )
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                asked = request.asked.get(partition)
                if asked is not None and self._positions.get(partition) == asked.offset:
                    fetched += self._take_partition(partition, data)
        return fetched

    def _take_partition(self, partition: TopicPartition, data: PartitionData) -> list[Fetched]:
        if data.preferred_read_replica >= 0:
            self._near.name(partition, BrokerId(data.preferred_read_replica))
        elif data.error_code and self._near.forget([partition]):
            # The leader knows better: a follower may not have everything yet.
            self._resume_s = time.monotonic() + self._backoff.next_delay_s()
            return []
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._settings.on_out_of_range != FAIL:
            find = start_offsets if self._settings.on_out_of_range == GO_TO_START else end_offsets
            self._positions |= find(self._cluster, [partition])
            return []
        if data.error_code == ErrorCode.CORRUPT_MESSAGE:
            where = f"{partition} at offset {self._positions[partition]}"
            self._failures[partition] = CorruptRecords.at(where, "the broker cannot read it, it is damaged")
            return []
        if data.error_code:
            what = f"reading {partition} from offset {self._positions[partition]}"
            self._trouble([partition], BrokerRefused(error_code(data.error_code), what))
            return []
        self._troubled_since_s.pop(partition, None)
        self._unknown_since_s.pop(partition, None)
        self._backoff = Backoff(LEADER_DELAY_S)
        offset = self._positions[partition]
        batches, fault = _split(data.records or b"")
        if fault is not None and not batches:
            self._failures[partition] = CorruptRecords.at(f"{partition} at offset {offset}", fault)
            return []
        if batches:
            self._positions[partition] = max(offset, batches[-1][0].next_offset)
        return [Fetched(partition, offset, batches, data.high_watermark, data.aborted_transactions or [])]

    def _trouble(self, partitions: Collection[TopicPartition], error: ClientError) -> None:
        """Put up with it for a while, or have it raised."""
        now_s = time.monotonic()
        self._near.forget(partitions)
        since_s, patience_s = self._troubled_since_s, self._cluster.timeout_s
        if isinstance(error, UnknownTopic) and self._settings.unknown_topic_patience_s is not None:
            since_s, patience_s = self._unknown_since_s, self._settings.unknown_topic_patience_s
        for partition in partitions:
            if not may_pass(error) or now_s - since_s.setdefault(partition, now_s) >= patience_s:
                self._failures[partition] = error
            self._cluster.forget([partition.topic])
        self._resume_s = now_s + self._backoff.next_delay_s()


def _split(data: Buffer) -> tuple[list[tuple[BatchHeader, memoryview]], CorruptData | None]:
    """The whole batches of an answer, and why there are no more, unless it just ends, perhaps within a batch."""
    view = memoryview(data)
    batches: list[tuple[BatchHeader, memoryview]] = []
    position = 0
    while position + HEADER_BYTES <= len(view):
        try:
            header = parse_header(view, position)
        except CorruptData as fault:
            return batches, fault
        end = position + header.length
        if end > len(view):
            break
        batches.append((header, view[position:end]))
        position = end
    return batches, None
