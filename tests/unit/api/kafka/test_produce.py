"""Produce, asked in real frames of a whole broker on an invented disk."""

from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.errors import ProtocolViolation
from zurau.log.settings import LogSettings
from zurau.partition.flushing import UNAWAITED_FLUSH_MS
from zurau.records.batch import parse_header, seal
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient, records_in
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SLOW_MS = 100


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.fixture
def client(broker) -> SimulatedClient:
    client = SimulatedClient(broker)
    client.create_topic("t")
    return client


@pytest.fixture
def slow_flush(broker):
    broker.broker.world.flusher.delay_ms = SLOW_MS


@pytest.mark.parametrize("version", APIS[0].versions)
def test_every_version_gets_offsets_without_a_gap(client, version):
    client.produce("t", client.batch(b"a", b"b"), version=version)
    answer = client.produce("t", client.batch(b"c"), version=version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 2)
    assert client.read("t") == [b"a", b"b", b"c"]


@pytest.mark.usefixtures("slow_flush")
def test_with_acks_all_the_answer_waits_for_the_disk(client, broker):
    answer = client.produce_later("t", client.batch(b"a"))
    broker.clock.advance(SLOW_MS - 1)
    assert not answer.is_done
    broker.clock.advance(1)
    assert answer.result().responses[0].partition_responses[0].base_offset == 0


@pytest.mark.usefixtures("slow_flush")
def test_with_acks_one_the_answer_waits_for_nothing(client):
    assert client.produce_later("t", client.batch(b"a"), acks=1).is_done


def test_with_acks_zero_there_is_no_answer(client, broker):
    assert client.produce("t", client.batch(b"a"), acks=0) is None
    broker.clock.advance(2 * UNAWAITED_FLUSH_MS)
    assert client.read("t") == [b"a"]


def test_a_batch_for_which_nobody_waits_is_flushed_a_little_later(client, broker):
    client.produce("t", client.batch(b"a"), acks=1)
    broker.clock.advance(UNAWAITED_FLUSH_MS - 1)
    assert client.read("t") == []
    broker.clock.advance(UNAWAITED_FLUSH_MS)
    assert client.read("t") == [b"a"]


def test_a_consumer_that_waits_for_a_batch_has_it_flushed_at_once(client, broker):
    client.produce("t", client.batch(b"a"), acks=1)
    began_ms = broker.clock.now_ms()
    assert records_in(client.fetch("t", max_wait_ms=1000, min_bytes=1).records)
    assert broker.clock.now_ms() - began_ms < UNAWAITED_FLUSH_MS


def test_with_acks_zero_an_error_ends_the_connection(client):
    with pytest.raises(ProtocolViolation, match="nowhere-0 is refused and acks=0"):
        client.produce("nowhere", client.batch(b"a"), acks=0)


@pytest.mark.usefixtures("slow_flush")
def test_a_flush_that_takes_longer_than_the_client_waits_is_a_timeout_and_the_batch_is_there_later(client, broker):
    answer = client.produce("t", client.batch(b"a"), timeout_ms=10)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "may still be" in answer.error_message
    assert client.read("t") == []
    broker.clock.advance(SLOW_MS)
    assert client.read("t") == [b"a"]


@pytest.mark.usefixtures("slow_flush")
def test_one_slow_partition_does_not_take_the_answer_of_another(client, broker):
    client.create_topic("u", {"flush": "os"})
    data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=client.batch(b"a"))])
        for name in ("t", "u")
    ]
    response = broker.tell(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10, topic_data=data), 9)
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]


def test_a_repeated_batch_of_an_idempotent_producer_gets_its_first_offset(client):
    facts = {"producer_id": 7, "producer_epoch": 0}
    client.produce("t", client.batch(b"a", base_sequence=0, **facts))
    client.produce("t", client.batch(b"b", base_sequence=1, **facts))
    assert client.produce("t", client.batch(b"a", base_sequence=0, **facts)).base_offset == 0
    assert client.read("t") == [b"a", b"b"]


@pytest.mark.usefixtures("slow_flush")
def test_a_repeated_batch_is_not_acknowledged_before_its_first_copy_is_safe(client, broker):
    batch = client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    client.produce_later("t", batch)
    repeated = client.produce_later("t", batch)
    assert not repeated.is_done
    broker.clock.advance(SLOW_MS)
    assert repeated.result().responses[0].partition_responses[0].base_offset == 0


def test_a_batch_that_does_not_follow_is_refused(client):
    facts = {"producer_id": 7, "producer_epoch": 0}
    client.produce("t", client.batch(b"a", base_sequence=0, **facts))
    answer = client.produce("t", client.batch(b"c", base_sequence=2, **facts))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert client.read("t") == [b"a"]


def test_an_older_epoch_of_a_producer_is_fenced(client):
    client.produce("t", client.batch(b"a", producer_id=7, producer_epoch=1, base_sequence=0))
    answer = client.produce("t", client.batch(b"b", producer_id=7, producer_epoch=0, base_sequence=0))
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_broker_can_set_the_time(client, broker):
    client.create_topic("timed", {"message.timestamp.type": "LogAppendTime"})
    batch = bytes(build_batch([NewRecord(None, b"a", timestamp=5)]))
    answer = client.produce("timed", batch)
    assert answer.log_append_time_ms == broker.clock.now_ms() - 1  # the flush took a millisecond
    (record,) = records_in(client.fetch("timed").records)
    assert record.timestamp == answer.log_append_time_ms


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_for_clients_that_say_they_know_it(client, version, code):
    batch = client.batch(b"a" * 500, compression=Compression.ZSTD)
    assert client.produce("t", batch, version=version).error_code == code


@pytest.mark.parametrize(("acks", "code"), [(-1, ErrorCode.NOT_ENOUGH_REPLICAS), (1, ErrorCode.NONE)])
def test_acks_all_needs_as_many_replicas_as_the_topic_asks_for(client, acks, code):
    client.create_topic("copies", {"min.insync.replicas": "2"})
    assert client.produce("copies", client.batch(b"a"), acks=acks).error_code == code


def test_a_compacted_topic_names_the_records_without_a_key(client):
    client.create_topic("compacted", {"cleanup.policy": "compact"})
    records = [NewRecord(key, b"v", timestamp=client.broker.clock.now_ms()) for key in (b"k", None, b"l", None)]
    answer = client.produce("compacted", bytes(build_batch(records)))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert "needs a key" in answer.error_message


@pytest.mark.parametrize("sent", list(Compression))
def test_compression_type_packs_batches_anew(client, sent):
    client.create_topic("packed", {"compression.type": "lz4"})
    client.produce("packed", client.batch(b"x" * 300, compression=sent))
    batches = client.fetch("packed").records
    assert parse_header(batches).compression == Compression.LZ4
    assert records_in(batches)[0].value == b"x" * 300


def test_a_batch_that_cannot_be_unpacked_to_be_packed_anew_is_refused(client):
    client.create_topic("packed", {"compression.type": "gzip"})
    garbage = bytearray(client.batch(b"x" * 300))
    garbage[22] |= Compression.ZSTD
    seal(garbage)
    assert client.produce("packed", bytes(garbage)).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(client, codec):
    batch = bytearray(client.batch(b"x"))
    batch[22] |= codec
    seal(batch)
    assert client.produce("t", bytes(batch)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_batch_of_another_version_is_refused_though_the_checksum_does_not_cover_it(client):
    batch = bytearray(client.batch(b"x"))
    batch[16] = 1
    assert client.produce("t", bytes(batch)).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__cluster_metadata"])
def test_the_brokers_own_topics_are_refused(client, topic):
    assert client.produce(topic, client.batch(b"a")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_batch_over_the_topics_limit_is_refused(client):
    client.create_topic("small", {"max.message.bytes": "100"})
    answer = client.produce("small", client.batch(b"x" * 100))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes=100" in answer.error_message


@pytest.mark.parametrize(("index", "topic"), [(1, "t"), (-1, "t"), (0, "nowhere")])
def test_what_is_not_there_is_said_so(client, index, topic):
    answer = client.produce(topic, client.batch(b"a"), index=index)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_timestamps_too_far_in_the_future_are_refused(client, broker):
    batch = build_batch([NewRecord(None, b"a", timestamp=broker.clock.now_ms() + 2 * 3_600_000)])
    assert client.produce("t", bytes(batch)).error_code == ErrorCode.INVALID_TIMESTAMP


def test_transactional_batches_are_refused(client):
    facts = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    assert client.produce("t", client.batch(b"a", **facts)).error_code == ErrorCode.INVALID_TXN_STATE


# Batches that take long to examine


@pytest.fixture
def slow_workers(broker):
    broker.broker.world.workers.delay_ms = SLOW_MS


def large(client, value: bytes = b"a", **facts) -> bytes:
    """A small batch that unpacks to a megabyte."""
    return client.batch(value + bytes(1_000_000), compression=Compression.ZSTD, **facts)


def first_bytes(client) -> list[bytes]:
    return [value[:1] for value in client.read("t")]


@pytest.mark.usefixtures("slow_workers")
@pytest.mark.parametrize("acks", [1, -1])
def test_what_takes_long_to_examine_is_answered_when_it_is_written(client, broker, acks):
    answer = client.produce_later("t", large(client), acks=acks)
    broker.clock.advance(SLOW_MS - 1)
    assert not answer.is_done
    assert broker.wait(answer).responses[0].partition_responses[0].base_offset == 0


@pytest.mark.usefixtures("slow_workers")
def test_what_comes_behind_it_is_answered_behind_it_on_any_connection(client, broker):
    facts = {"producer_id": 7, "producer_epoch": 0}
    first = client.produce_later("t", large(client, b"a", base_sequence=0, **facts), acks=1)
    second = client.produce_later("t", client.batch(b"b", base_sequence=1, **facts), acks=1)
    assert not second.is_done
    for offset, answer in enumerate((first, second)):
        assert broker.wait(answer).responses[0].partition_responses[0].base_offset == offset
    broker.clock.advance(2 * UNAWAITED_FLUSH_MS)
    assert first_bytes(client) == [b"a", b"b"]


@pytest.mark.usefixtures("slow_workers")
def test_other_partitions_do_not_wait_for_it(client):
    client.create_topic("u")
    client.produce_later("t", large(client))
    assert client.produce_later("u", client.batch(b"b"), acks=1).is_done


@pytest.mark.usefixtures("slow_workers")
def test_with_acks_zero_a_refusal_that_comes_late_ends_the_connection_too(client, broker):
    batch = bytearray(large(client))
    batch[-1] ^= 1
    answer = client.produce_later("t", bytes(batch), acks=0)
    assert not answer.is_done
    with pytest.raises(ProtocolViolation, match="t-0 is refused and acks=0"):
        broker.wait(answer)


@pytest.mark.usefixtures("slow_workers")
def test_a_topic_that_is_deleted_meanwhile_ends_it(client, broker):
    answer = client.produce_later("t", large(client))
    assert client.delete_topic("t") == ErrorCode.NONE
    code = broker.wait(answer).responses[0].partition_responses[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.usefixtures("slow_workers")
def test_a_broker_that_stops_meanwhile_ends_it(client, broker):
    answer = client.produce_later("t", large(client))
    broker.stop()
    code = answer.result().responses[0].partition_responses[0].error_code
    assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
