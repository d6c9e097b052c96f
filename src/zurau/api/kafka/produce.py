"""Produce: append a batch to each of some partitions.

acks=0 gets no answer at all, acks=1 one as soon as the leader has written, acks=all one when the batches are committed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from zurau.api.kafka.call import LONG, Call
from zurau.api.kafka.leader_hints import MISLED, LeaderHints
from zurau.broker.appending import Written, require_acknowledged, written
from zurau.broker.waiting import with_timeout
from zurau.errors import ProtocolViolation, Refused
from zurau.ids import TopicPartition
from zurau.machines.controller.names import is_internal
from zurau.partition.admission import InvalidRecords, read_header
from zurau.partition.partition import Appended, Partition
from zurau.pending import Pending, all_of, start
from zurau.records.compression import Compression
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

ACKS_ALL = -1
#: Files of new partitions that are made on the loop for one request; more are not, so many at a time.
MADE_ON_LOOP = 4
MADE_AT_A_TIME = 50
#: The first version whose clients know zstd (KIP-110).
ZSTD_SINCE = 7

#: What became of a batch, if it is known yet.
Outcome = Written | Refused | Pending[Any]
#: Of one topic, by partition.
Outcomes = tuple[str, list[tuple[int, Outcome]]]


async def handle(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    later: list[Pending[Outcome]] = []
    outcomes = await _append_all(request, call, later)
    # What is written need not stay in memory while the flush is waited for: the next frame is received in its place.
    request.topic_data.clear()
    if later:
        await all_of(later)
        outcomes = [(topic, [(index, _known(each)) for index, each in partitions]) for topic, partitions in outcomes]
    if request.acks == 0:
        _require_success(outcomes)
        return None
    if request.acks == ACKS_ALL:
        written = [outcome for _, partitions in outcomes for _, outcome in partitions if isinstance(outcome, Written)]
        waiting = [each.acknowledged for each in written if not each.acknowledged.is_done]
        if waiting:
            all_safe = waiting[0] if len(waiting) == 1 else all_of(waiting)
            await with_timeout(request.timeout_ms, all_safe, call.broker.clock)
    hints = LeaderHints(call)
    responses = await _answer_all(outcomes, request.timeout_ms, call, hints)
    endpoints = hints.endpoints()
    if not endpoints:
        return ProduceResponse(responses=responses)
    return ProduceResponse(responses=responses, node_endpoints=[NodeEndpoint(**each._asdict()) for each in endpoints])


async def _append_all(request: ProduceRequest, call: Call, later: list[Pending[Outcome]]) -> list[Outcomes]:
    """In turns, and no other produce of this client comes in between."""
    turns, files_are_made = call.turns, False
    try:
        outcomes: list[Outcomes] = []
        for topic in request.topic_data:
            written: list[tuple[int, Outcome]] = []
            outcomes.append((topic.name, written))
            refused = _refused_for_all(topic.name, request.acks)
            for data in topic.partition_data:
                if (written or len(outcomes) > 1) and turns.is_over():
                    call.connection.is_appending = True
                    await turns.next()
                outcome = refused or _append(topic.name, data, request.acks, call, later, to_new=files_are_made)
                if outcome is None:
                    call.connection.is_appending = files_are_made = True
                    await _make_files(request, call)
                    outcome = _append(topic.name, data, request.acks, call, later, to_new=True)
                    assert outcome is not None
                written.append((data.index, outcome))
        return outcomes
    finally:
        call.connection.is_appending = False


async def _make_files(request: ProduceRequest, call: Call) -> None:
    """Those of partitions that were never written to, if there are many: the system may take its time for each."""
    partitions = call.broker.partitions
    named = ((topic.name, data.index) for topic in request.topic_data for data in topic.partition_data)
    logs = [partitions[TopicPartition(*name)].log for name in named if name in partitions]
    work = [make for log in logs if (make := log.first_file()) is not None]
    if len(work) <= MADE_ON_LOOP:
        return
    for first in range(0, len(work), MADE_AT_A_TIME):  # others have work for the background too
        await call.broker.world.background.run(partial(_do_all, work[first : first + MADE_AT_A_TIME]))


def _do_all(work: list[Callable[[], None]]) -> None:
    for each in work:
        each()


async def _answer_all(
    outcomes: list[Outcomes], timeout_ms: int, call: Call, hints: LeaderHints
) -> list[TopicProduceResponse]:
    """In turns. Written out, because most produces are for one partition, and `in_turns` costs as much as the rest."""
    topics, turns = [], call.turns
    for topic, partitions in outcomes:
        answers: list[PartitionProduceResponse] = []
        for index, outcome in partitions:
            if answers and turns.is_over():
                await turns.next()
            answer = _answer(index, outcome, timeout_ms)
            if answer.error_code in MISLED and (hint := hints.find(topic, index)) is not None:
                answer = replace(answer, current_leader=LeaderIdAndEpoch(**hint._asdict()))
            answers.append(answer)
        topics.append(TopicProduceResponse(name=topic, partition_responses=answers))
        call.takes_long = call.takes_long or len(answers) > LONG
    return topics


def _require_success(outcomes: list[Outcomes]) -> None:
    """A client that wants no answers learns of an error as with Kafka: by a closed connection, and looks anew."""
    for topic, partitions in outcomes:
        for index, outcome in partitions:
            if isinstance(outcome, Refused):
                raise ProtocolViolation(f"a batch for {topic}-{index} is refused and acks=0: {outcome}")


def _refused_for_all(topic: str, acks: int) -> Refused | None:
    """Why no batch for this topic is taken."""
    if acks not in (ACKS_ALL, 0, 1):
        return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {acks}")
    if is_internal(topic):
        return Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by the brokers alone")
    return None


def _append(
    topic: str, data: PartitionProduceData, acks: int, call: Call, later: list[Pending[Outcome]], *, to_new: bool
) -> Outcome | None:
    """What became of a batch. For one that takes long to examine, which is added to `later`, a place to be filled.

    None if it is the first of its partition, and not `to_new`: then nothing is done.
    """
    try:
        partition = call.broker.partition(topic, data.index)
        if not (to_new or partition.log.end_offset):
            return None
        if acks == ACKS_ALL:
            partition.require_in_sync_replicas()
        batch = data.records
        if not isinstance(batch, memoryview) or not batch:
            raise Refused(ErrorCode.INVALID_RECORD, "there are no records for this partition in the request")
        appended = partition.append_plain(batch, call.connection) or _append_closely(partition, batch, call)
    except Refused as refused:
        return refused
    if isinstance(appended, Pending):
        later.append(start(_append_later(partition, appended, acks)))
        return later[-1]
    return written(partition, appended, acks_all=acks == ACKS_ALL)


def _append_closely(partition: Partition, batch: memoryview, call: Call) -> Appended | Pending[Appended]:
    header = read_header(batch)
    if call.version < ZSTD_SINCE and header.compression == Compression.ZSTD:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {ZSTD_SINCE} or later")
    return partition.append(batch, header, call.connection)


async def _append_later(partition: Partition, examined: Pending[Appended], acks: int) -> Outcome:
    try:
        return written(partition, await examined, acks_all=acks == ACKS_ALL)
    except Refused as refused:
        return refused


def _known(outcome: Outcome) -> Outcome:
    return outcome.result() if isinstance(outcome, Pending) else outcome


def _answer(index: int, outcome: Outcome, timeout_ms: int) -> PartitionProduceResponse:
    assert not isinstance(outcome, Pending), "it was waited for"
    if isinstance(outcome, Refused):
        return _refusal(index, outcome)
    appended, partition = outcome.appended, outcome.partition
    try:
        require_acknowledged(outcome, timeout_ms)
    except Refused as refused:
        return _refusal(index, refused)
    return PartitionProduceResponse(
        index=index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start_offset,
    )


def _refusal(index: int, refused: Refused) -> PartitionProduceResponse:
    places = refused.places if isinstance(refused, InvalidRecords) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=refused.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=refused.message) for place in places
        ],
        error_message=refused.message,
    )
