"""What a broker does by itself as time passes."""

from __future__ import annotations

from zurau.broker.health import Kind
from zurau.broker.settings import BrokerSettings
from zurau.errors import DiskFault
from zurau.ids import TopicPartition
from zurau.log import checkpoint
from zurau.log.compaction import CompactionJob
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.partition import Partition
from zurau.partition.producer_memory import PRODUCER_BYTES
from zurau.ports import File
from zurau.records.batch import iter_batches, parse_header
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import Record, iter_records
from zurau.settings import DAY_MS, HOUR_MS, MIB, MINUTE_MS
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


def broker_with_topic(settings: BrokerSettings | None = None, **configs: str) -> tuple[SimulatedBroker, Partition]:
    broker = SimulatedBroker(1, LogSettings(segment_bytes=1000), settings)
    topic = CreatableTopic(
        name="t",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
    )
    created = broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    assert created.topics[0].error_code == 0
    return broker, broker.broker.partition("t", 0)


def append(broker: SimulatedBroker, partition: Partition, key: bytes, value: bytes | None, **facts: int) -> None:
    record = NewRecord(key=key, value=value, timestamp=broker.clock.now_ms())
    batch = memoryview(build_batch([record], **facts))
    partition.append(batch, parse_header(batch))
    broker.clock.advance(10)


def everything_in(partition: Partition) -> list[Record]:
    log = partition.log
    offset, records = log.start_offset, []
    while batches := log.read(offset, 1 << 20, log.end_offset, may_block=True):
        for header, batch in iter_batches(batches):
            records += iter_records(batch)
            offset = header.next_offset
    return records


def test_a_topic_that_nobody_writes_to_any_more_expires_without_a_flush_on_the_loop(monkeypatch):
    broker, partition = broker_with_topic(retention_ms=str(HOUR_MS))
    for _ in range(50):
        append(broker, partition, b"k", b"x" * 100)
    monkeypatch.setattr(Log, "_keep_start_safe", None)

    broker.clock.advance(2 * HOUR_MS)

    assert partition.log.start_offset == partition.log.end_offset == 50


def test_old_segments_go_though_there_is_no_room_to_write_down_the_start(monkeypatch):
    broker, partition = broker_with_topic(retention_ms=str(HOUR_MS))
    for _ in range(50):
        append(broker, partition, b"k", b"x" * 100)
    replace_file = broker.disk.replace_file

    def is_full(path: str, content: bytes) -> None:
        if path.endswith(checkpoint.FILE_NAME):
            raise DiskFault("no space left on device")
        replace_file(path, content)

    monkeypatch.setattr(broker.disk, "replace_file", is_full)
    broker.clock.advance(2 * HOUR_MS)

    assert 0 < partition.log.start_offset < partition.log.end_offset == 50


def test_old_segments_go_when_their_time_is_over():
    broker, partition = broker_with_topic(retention_ms=str(HOUR_MS))
    for _ in range(50):
        append(broker, partition, b"k", b"x" * 100)

    broker.clock.advance(2 * HOUR_MS)

    assert partition.log.start_offset == partition.log.end_offset == 50
    assert [name for name in broker.disk.list_directory("t-0") if name.endswith(".deleted")] == []


def test_the_oldest_segments_go_when_there_is_too_much():
    broker, partition = broker_with_topic(retention_bytes="2000")
    for _ in range(50):
        append(broker, partition, b"k", b"x" * 100)

    broker.clock.advance(10 * MINUTE_MS)

    assert 0 < partition.log.start_offset < 50
    assert partition.log.size_bytes < 4000


def test_a_compacted_topic_keeps_the_last_value_of_each_key():
    broker, partition = broker_with_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for number in range(60):
        append(broker, partition, b"key-%d" % (number % 3), b"%d" % number * 20)

    broker.clock.advance(MINUTE_MS)

    records = everything_in(partition)
    assert len(records) < 20
    last = {record.key: record.value for record in records}
    assert last == {b"key-0": b"57" * 20, b"key-1": b"58" * 20, b"key-2": b"59" * 20}


def test_a_compacted_topic_serves_the_same_after_a_crash():
    broker, partition = broker_with_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for number in range(60):
        append(broker, partition, b"key-%d" % (number % 3), b"%d" % number * 20)
    broker.clock.advance(MINUTE_MS)
    before = everything_in(partition)

    broker.lose_power()
    broker.start()

    assert everything_in(broker.broker.partitions[TopicPartition("t", 0)]) == before


def test_a_silent_producer_is_forgotten_after_a_day():
    broker, partition = broker_with_topic()
    append(broker, partition, b"k", b"v", producer_id=7, producer_epoch=0, base_sequence=0)
    assert len(partition.producers) == 1

    broker.clock.advance(DAY_MS + HOUR_MS)

    assert len(partition.producers) == 0


# What fails


def two_compacted_topics() -> tuple[SimulatedBroker, Partition, Partition]:
    """The disk does not let the first one, in the order of rounds, be compacted."""
    broker, first = broker_with_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    configs = [CreatableTopicConfig(name="cleanup.policy", value="compact")]
    configs += [CreatableTopicConfig(name="min.cleanable.dirty.ratio", value="0.01")]
    topic = CreatableTopic(name="u", num_partitions=1, replication_factor=1, configs=configs)
    broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
    second = broker.broker.partition("u", 0)
    for number in range(60):
        append(broker, first, b"key-%d" % (number % 3), b"%d" % number * 20)
        append(broker, second, b"key-%d" % (number % 3), b"%d" % number * 20)
    really_open = broker.disk.open

    def refuse(path: str, *, create: bool = True) -> File:
        if path.startswith("t-0/") and path.endswith(".cleaned"):
            raise DiskFault(f"cannot open {path}: the disk reports an error")
        return really_open(path, create=create)

    broker.disk.open = refuse
    return broker, first, second


def test_one_topic_that_cannot_be_compacted_does_not_starve_the_others(caplog):
    broker, first, second = two_compacted_topics()
    broker.clock.advance(MINUTE_MS)
    assert len(everything_in(second)) < 20
    assert first.log.compacted_offset == 0
    assert caplog.text.count("compaction of t-0 failed") == 1


def test_work_that_fails_again_and_again_rests_for_longer_and_is_told():
    broker, _, _ = two_compacted_topics()
    broker.clock.advance(HOUR_MS)
    (trouble,) = broker.broker.troubles
    assert (trouble.job, trouble.partition) == ("compaction", TopicPartition("t", 0))
    assert 4 <= trouble.count <= 10, "every 15 seconds would be 240 times"
    assert Kind.UPKEEP_FAILS in [problem.kind for problem in broker.broker.health.problems()]


def test_a_trouble_is_over_when_the_work_succeeds():
    broker, first, _ = two_compacted_topics()
    broker.clock.advance(MINUTE_MS)
    del broker.disk.open
    broker.clock.advance(HOUR_MS)
    assert list(broker.broker.troubles) == []
    assert len(everything_in(first)) < 20


def test_a_defect_in_a_job_is_logged_and_counted_and_ends_nothing(caplog, monkeypatch):
    broker, partition = broker_with_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for number in range(60):
        append(broker, partition, b"key-%d" % (number % 3), b"%d" % number * 20)

    def overflow(_job) -> None:
        raise OverflowError("a timestamp too far")

    with monkeypatch.context() as patch:
        patch.setattr(CompactionJob, "run", overflow)
        broker.clock.advance(MINUTE_MS)
    assert "OverflowError('a timestamp too far')" in caplog.text
    assert broker.broker.troubles.failure_count >= 1
    broker.clock.advance(HOUR_MS)
    assert len(everything_in(partition)) < 20


def test_files_that_cannot_be_removed_are_told_of(caplog):
    broker, partition = broker_with_topic(retention_ms=str(HOUR_MS))
    for _ in range(50):
        append(broker, partition, b"k", b"x" * 100)

    def refuse(path: str) -> None:
        if path.endswith(".deleted"):
            raise DiskFault(f"cannot remove {path}: the disk reports an error")

    broker.disk.remove = refuse
    broker.clock.advance(2 * HOUR_MS)
    assert "removal of files of t-0 failed" in caplog.text


def test_producers_take_no_more_memory_than_the_broker_is_told():
    broker, partition = broker_with_topic(BrokerSettings(producers_memory_bytes_max=MIB))
    most = MIB // PRODUCER_BYTES
    for producer_id in range(most + 1):
        append(broker, partition, b"k", b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    assert most * 0.9 < len(partition.producers) <= most
    assert most in partition.producers
    broker.stop()
    broker.start()
    assert most * 0.9 < len(broker.broker.partition("t", 0).producers) <= most
