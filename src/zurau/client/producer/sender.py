"""Carries closed batches to the leaders of their partitions, and comes back for those that did not arrive.

One request per broker is on its way at a time, with one batch for each of its partitions, so records of a partition
keep their order through every retry. A batch refused for a passing reason goes back to the head of its queue,
and metadata is asked for again; one that was refused for good, or is too old, is given up on, and that is raised to
whoever sends or flushes next.

Every partition has its own trouble: while one waits for its next leader the others go on. A broker that takes long to
answer may hang, so others are asked whether somebody else leads by now.

An idempotent producer numbers its batches, so a retry whose first try did arrive is stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from zurau.client.cluster.cluster import Cluster
from zurau.client.cluster.connection import Connection, readable
from zurau.client.errors import (
    BrokerRefused,
    ClientError,
    ConnectionLost,
    ProduceFailed,
    TimedOut,
    error_code,
    may_pass,
)
from zurau.client.producer.accumulator import Accumulator, OutgoingBatch
from zurau.client.producer.sequences import UNNUMBERED, Sequences
from zurau.client.retry import LEADER_DELAY_S, SUSPICION_S, Backoff, Deadline
from zurau.ids import BrokerId, Offset, TopicPartition
from zurau.ports import Buffer
from zurau.records.compression import Compression
from zurau.settings import KIB, MIB
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

#: Called with a partition, the offset of the first record (-1: nobody was asked), and how many records there are.
OnDelivered = Callable[[TopicPartition, Offset, int], None]

ACKS_ALL = -1
#: Together in one request, at most.
REQUEST_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    #: -1: all in-sync replicas, 1: the leader, 0: nobody.
    acks: int = ACKS_ALL
    compression: Compression = Compression.NONE
    batch_bytes: int = 256 * KIB
    linger_s: float = 0.05
    #: Store each record once even if it had to be sent again. Needs acks=-1, and is ignored otherwise.
    idempotent: bool = True
    #: How long one batch is tried for.
    delivery_timeout_s: float = 60.0
    #: `send` waits while more than this is not acknowledged.
    buffer_bytes: int = 64 * MIB
    may_create_topics: bool = True


@dataclass(slots=True)
class InFlight:
    """One request on its way."""

    connection: Connection
    batches: list[OutgoingBatch]
    sent_s: float
    suspicion: Deadline


class Sender:
    def __init__(
        self, cluster: Cluster, batches: Accumulator, settings: ProducerSettings, on_delivered: OnDelivered
    ) -> None:
        self._on_delivered = on_delivered
        self._cluster = cluster
        self._batches = batches
        self._settings = settings
        self._sequences = Sequences(cluster) if settings.idempotent and settings.acks == ACKS_ALL else None
        self._connections: dict[BrokerId, Connection] = {}
        self._in_flight: dict[BrokerId, InFlight] = {}
        #: Partitions that were refused: when to try them again, and how long to wait after that.
        self._resume_s: dict[TopicPartition, float] = {}
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._failure: ProduceFailed | None = None

    @property
    def in_flight(self) -> set[TopicPartition]:
        """Partitions with a batch on its way."""
        return {batch.partition for request in self._in_flight.values() for batch in request.batches}

    def work(self, wait_s: float, wake: int | None = None) -> None:
        """One round: send what can go, then take in answers, waiting up to `wait_s` for the first, or for something to
        read at the descriptor `wake`."""
        self._send_ready()
        wait_s = min(wait_s, self._next_try_s())
        if not self._in_flight and wake is None:
            time.sleep(wait_s)
            return
        ready = readable([request.connection for request in self._in_flight.values()], wait_s, wake)
        for broker, request in list(self._in_flight.items()):
            if request.connection in ready:
                del self._in_flight[broker]
                self._handle_response(request)
            elif time.monotonic() - request.sent_s > self._cluster.timeout_s:
                del self._in_flight[broker]
                request.connection.close()
                self._return_batches(request, TimedOut(f"{request.connection.address} did not acknowledge in time"))
            elif request.suspicion.passed and self._has_other_leader(broker, request):
                del self._in_flight[broker]
                request.connection.close()
                self._return_batches(request, ConnectionLost(f"{request.connection.address} is not waited for"))

    def _next_try_s(self) -> float:
        """When something is to be done besides reading answers."""
        now_s = time.monotonic()
        resumes = (resume_s - now_s for resume_s in self._resume_s.values() if resume_s > now_s)
        suspicions = (request.suspicion.remaining_s for request in self._in_flight.values())
        return min((*resumes, *suspicions), default=float("inf") if self._in_flight else 0.0)

    def _has_other_leader(self, broker: BrokerId, request: InFlight) -> bool:
        """Whether somebody else says that this broker, which does not answer, leads no more."""
        request.suspicion = Deadline(SUSPICION_S / 2)
        try:
            self._cluster.refresh({batch.partition.topic for batch in request.batches}, but=request.connection.address)
            return any(self._cluster.leader_of(batch.partition) != broker for batch in request.batches)
        except ClientError:
            return False

    def raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _send_ready(self) -> None:
        """Send to every leader that owes no answer."""
        in_flight = self.in_flight
        ready: dict[BrokerId, list[OutgoingBatch]] = {}
        now_s = time.monotonic()
        for batch in self._batches.next_batches():
            if batch.partition in in_flight or self._resume_s.get(batch.partition, 0.0) > now_s:
                continue
            try:
                leader = self._cluster.leader_of(batch.partition)
            except ClientError as error:
                self._not_delivered(batch, error)
                continue
            if leader not in self._in_flight:
                ready.setdefault(leader, []).append(batch)
        for leader, batches in ready.items():
            self._send(leader, batches)

    def _send(self, leader: BrokerId, batches: list[OutgoingBatch]) -> None:
        try:
            chosen = self._as_many_as_fit(batches)
            connection = self._connection_to(leader)
            connection.send(self._request(chosen), answered=self._settings.acks != 0)
        except ClientError as error:
            for batch in batches:
                self._not_delivered(batch, error)
            return
        for batch in chosen:
            self._batches.take(batch)
            if self._settings.acks == 0:
                self._delivered(batch, -1)
        if self._settings.acks != 0:
            self._in_flight[leader] = InFlight(connection, chosen, time.monotonic(), Deadline(SUSPICION_S))

    def _handle_response(self, request: InFlight) -> None:
        try:
            answer = request.connection.receive(ProduceResponse)
        except ClientError as error:
            self._return_batches(request, error)
            return
        awaited = {batch.partition: batch for batch in request.batches}
        for topic in answer.responses:
            for outcome in topic.partition_responses:
                batch = awaited[TopicPartition(topic.name, outcome.index)]
                if outcome.error_code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
                    self._delivered(batch, outcome.base_offset)
                    continue
                self._batches.put_back(batch)
                code = error_code(outcome.error_code)
                self._not_delivered(batch, BrokerRefused(code, f"writing to {batch.partition}", outcome.error_message))

    def _return_batches(self, request: InFlight, error: ClientError) -> None:
        for batch in request.batches:
            self._batches.put_back(batch)
            self._not_delivered(batch, error)

    def _delivered(self, batch: OutgoingBatch, base_offset: Offset) -> None:
        batch.base_offset = base_offset
        self._batches.finished(batch)
        if self._backoffs:
            self._backoffs.pop(batch.partition, None)
            self._resume_s.pop(batch.partition, None)
        self._on_delivered(batch.partition, base_offset, batch.record_count)

    def _not_delivered(self, batch: OutgoingBatch, error: ClientError) -> None:
        """Keep a batch at the head of its queue for another try, or give up on it."""
        age_s = time.monotonic() - batch.created_s
        if may_pass(error) and age_s < self._settings.delivery_timeout_s:
            self._cluster.forget([batch.partition.topic])
            backoff = self._backoffs.setdefault(batch.partition, Backoff(LEADER_DELAY_S))
            self._resume_s[batch.partition] = time.monotonic() + backoff.next_delay_s()
            return
        self._batches.take(batch)
        self._batches.finished(batch)
        if self._sequences is not None:
            self._sequences.reset()
        tried = f" after {age_s:.0f} s of trying (are all brokers well? see `zurau cluster`)" if may_pass(error) else ""
        records = f"{batch.record_count} records were" if batch.record_count > 1 else "a record was"
        batch.error = self._failure = ProduceFailed(f"{records} not written{tried}: {error}")

    def _connection_to(self, leader: BrokerId) -> Connection:
        connection = self._connections.get(leader)
        if connection is None or not connection.is_open:
            connection = self._connections[leader] = self._cluster.dial(leader)
        return connection

    def _as_many_as_fit(self, batches: list[OutgoingBatch]) -> list[OutgoingBatch]:
        """At least one, and as many more as one request may hold."""
        chosen: list[OutgoingBatch] = []
        total_bytes = 0
        for batch in batches:
            total_bytes += len(self._encoded(batch))
            if chosen and total_bytes > REQUEST_BYTES:
                break
            chosen.append(batch)
        return chosen

    def _encoded(self, batch: OutgoingBatch) -> Buffer:
        if batch.encoded is None:
            numbered = UNNUMBERED
            if self._sequences is not None:
                numbered = self._sequences.next_for(batch.partition, batch.record_count)
            batch.encoded = batch.encode(self._settings.compression, numbered)
        return batch.encoded

    def _request(self, batches: list[OutgoingBatch]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            data = PartitionProduceData(index=batch.partition.partition, records=self._encoded(batch))
            topics.setdefault(batch.partition.topic, []).append(data)
        return ProduceRequest(
            transactional_id=None,
            acks=self._settings.acks,
            timeout_ms=int(self._cluster.timeout_s * 1000),
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
