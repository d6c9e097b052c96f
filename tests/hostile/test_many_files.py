"""Very many partitions, segments and topics at once: others are served, and a stop is in good order."""

from __future__ import annotations

import time

from attack import PRODUCE_VERSION, WAIT_ALLOWED_S, produce_request, some_batch, wait_until

from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 1000
SEGMENTS = 500


def wide_produce(topic: str) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=some_batch()) for index in range(PARTITIONS)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return ProduceRequest(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=topics)


def test_a_produce_to_very_many_partitions_holds_up_nobody_and_a_stop_right_after_it_keeps_it(
    broker, connect, watch, record_property
):
    attacker = connect(broker)
    attacker.create_topic("wide", PARTITIONS)
    bystander = watch(broker)
    written = attacker.ask(wide_produce("wide"), PRODUCE_VERSION).responses[0].partition_responses
    assert {each.error_code for each in written} == {ErrorCode.NONE}
    assert bystander.finish() < WAIT_ALLOWED_S
    began = time.monotonic()
    broker.stop()
    record_property("stop, s", round(time.monotonic() - began, 2))
    broker.start()
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
    ends = connect(broker).ask(ListOffsetsRequest(topics=[ListOffsetsTopic("wide", wanted)]), 7)
    assert {each.offset for each in ends.topics[0].partitions} == {1}
    assert "torn" not in broker.log.read_text()


def test_very_many_small_segments_come_and_go_and_nobody_else_notices(start_broker, connect, watch):
    broker = start_broker(log_retention_check_interval_ms=100)
    attacker = connect(broker)
    attacker.create_topic("small", segment_ms="1", retention_ms="3600000")
    bystander = watch(broker)
    first_ms = int(time.time() * 1000) - 86_400_000
    batches = [build_batch([NewRecord(None, b"v", timestamp=first_ms + 10 * number)]) for number in range(SEGMENTS)]
    sent = [attacker.send(produce_request("small", batch, acks=1), PRODUCE_VERSION) for batch in batches]
    codes = {attacker.receive(header).responses[0].partition_responses[0].error_code for header in sent}
    assert codes == {ErrorCode.NONE}
    directory = broker.directory / "data" / "small-0"
    wait_until(lambda: len(list(directory.iterdir())) < 10, "all segments expire", patience_s=60)
    assert attacker.produce("small", some_batch()).base_offset == SEGMENTS
    assert bystander.finish() < WAIT_ALLOWED_S


def test_very_many_topics_are_deleted_in_one_request_and_nobody_else_notices(broker, connect, watch):
    attacker = connect(broker)
    names = [f"t{number}" for number in range(200)]
    for name in names:
        attacker.create_topic(name)
    bystander = watch(broker)
    deleted = attacker.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=30_000), 4)
    assert {each.error_code for each in deleted.responses} == {ErrorCode.NONE}
    data = broker.directory / "data"
    wait_until(lambda: not [path for path in data.iterdir() if path.name.startswith("t")], "they are gone")
    assert bystander.finish() < WAIT_ALLOWED_S
