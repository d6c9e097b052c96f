"""Reading records."""

from __future__ import annotations

import pytest

from zurau.client.admin import Admin
from zurau.client.consumer import GO_TO_END, GO_TO_START, Consumer, Fetched, FetchSettings, decode
from zurau.client.errors import BrokerRefused, CorruptRecords
from zurau.client.offsets import end_offsets, list_offsets, offsets_at_time
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.records.batch import parse_header
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import Record
from zurau.wire.kafka.messages.fetch import AbortedTransaction

HERE = TopicPartition("t", 0)


@pytest.fixture
def numbers(cluster, topic):
    """Partition 0 holds the numbers from 0 to 9, one a second, in batches of five."""
    with Producer(cluster) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1000 * number)
            if number == 4:
                producer.flush()
    return TopicPartition(topic, 0)


def poll_values(consumer):
    """The values of the next answer that has any."""
    for _ in range(100):
        values = [int(record.value) for _, records, _ in consumer.poll() for record in records]
        if values:
            return values
    raise AssertionError("nothing arrived")


def test_reading_begins_at_the_offset_even_inside_a_batch(cluster, numbers):
    with Consumer(cluster) as consumer:
        consumer.assign({numbers: 7})
        assert poll_values(consumer) == [7, 8, 9]
        assert consumer.positions == {numbers: 10}


def test_reading_begins_at_a_moment(cluster, numbers):
    assert offsets_at_time(cluster, [numbers], 2500) == {numbers: 3}
    assert offsets_at_time(cluster, [numbers], 10**12) == {numbers: 10}
    assert list_offsets(cluster, {numbers: 3000})[numbers] == (3, 3000)


def test_new_records_are_waited_for(cluster, numbers):
    with Consumer(cluster) as consumer, Producer(cluster) as producer:
        consumer.assign({numbers: 10})
        assert consumer.poll(0) == []
        producer.send(numbers.topic, b"10", partition=0)
        producer.flush()
        assert poll_values(consumer) == [10]


def test_going_back_reads_again(cluster, numbers):
    with Consumer(cluster) as consumer:
        consumer.assign({numbers: 0})
        assert poll_values(consumer)[0] == 0
        consumer.seek(numbers, 8)
        assert poll_values(consumer) == [8, 9]


def test_iterating_gives_partitions_and_records(cluster, numbers):
    with Consumer(cluster) as consumer:
        consumer.assign({numbers: 5})
        partition, record = next(iter(consumer))
    assert (partition, record.offset, record.value) == (numbers, 5, b"5")


def test_several_partitions_are_read_together(cluster, topic):
    with Producer(cluster) as producer:
        for index in range(3):
            producer.send(topic, b"%d" % index, partition=index)
    found = set()
    with Consumer(cluster) as consumer:
        consumer.assign(dict.fromkeys(cluster.partitions_of(topic), 0))
        while len(found) < 3:
            found.update(poll_values(consumer))
    assert found == {0, 1, 2}


def test_a_dropped_partition_is_not_read_on(cluster, numbers):
    with Consumer(cluster) as consumer:
        consumer.assign({numbers: 0})
        consumer.drop(numbers)
        assert consumer.poll(0) == []
        assert consumer.positions == {}


def test_an_offset_outside_the_log_is_an_error_with_advice(cluster, numbers):
    with Consumer(cluster) as consumer:
        consumer.assign({numbers: 99})
        with pytest.raises(BrokerRefused, match=r"offset 99.*`zurau topic describe`"):
            consumer.poll()


def test_an_offset_outside_the_log_can_move_to_the_start(cluster, numbers):
    Admin(cluster).delete_records({numbers: 3})
    with Consumer(cluster, FetchSettings(on_out_of_range=GO_TO_START)) as consumer:
        consumer.assign({numbers: 0})
        assert poll_values(consumer) == [3, 4, 5, 6, 7, 8, 9]


def test_an_offset_outside_the_log_can_move_to_the_end(cluster, numbers):
    with Consumer(cluster, FetchSettings(on_out_of_range=GO_TO_END)) as consumer:
        consumer.assign({numbers: 99})
        while consumer.positions == {numbers: 99}:
            consumer.poll()
        assert consumer.positions == {numbers: 10}


def test_a_topic_made_anew_is_read_under_its_new_id(cluster, numbers):
    admin = Admin(cluster)
    with Consumer(cluster, FetchSettings(on_out_of_range=GO_TO_START)) as consumer:
        consumer.assign({numbers: 0})
        poll_values(consumer)
        admin.delete_topic(numbers.topic)
        with Producer(cluster) as producer:
            producer.send(numbers.topic, b"77", partition=0)
        consumer.assign({numbers: 0})
        assert poll_values(consumer) == [77]


def decoded(*batches: bytearray, offset: int = 0, aborted: list[AbortedTransaction] | None = None) -> list[Record]:
    split = [(parse_header(batch), memoryview(batch)) for batch in batches]
    fetched = Fetched(HERE, offset, split, 100, aborted or [])
    return [record for _, records in decode(fetched) for record in records]


def batch_of(value: bytes, base_offset: int, **options) -> bytearray:
    return build_batch([NewRecord(key=None, value=value, timestamp=1)], base_offset=base_offset, **options)


def marker(kind: int, base_offset: int, producer_id: int) -> bytearray:
    key = (0).to_bytes(2, "big") + kind.to_bytes(2, "big")
    record = NewRecord(key=key, value=b"\0\0\0\0\0\0", timestamp=1)
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def test_a_wrong_checksum_is_reported_with_its_offset():
    batch = batch_of(b"value", 5)
    batch[-2] ^= 1
    with pytest.raises(CorruptRecords, match=r"t-0 at offset 5: the checksum does not fit.*read on from offset 6"):
        decoded(batch, offset=5)


def test_markers_are_not_handed_out():
    records = decoded(batch_of(b"a", 0), marker(1, 1, producer_id=9), batch_of(b"b", 2))
    assert [record.offset for record in records] == [0, 2]


def test_records_of_an_aborted_transaction_are_left_out():
    numbers = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    batches = [
        batch_of(b"aborted", 0, **numbers),
        batch_of(b"other", 1),
        marker(0, 2, producer_id=9),
        batch_of(b"committed", 3, **numbers),
        marker(1, 4, producer_id=9),
    ]
    aborted = [AbortedTransaction(producer_id=9, first_offset=0)]
    assert [record.value for record in decoded(*batches, aborted=aborted)] == [b"other", b"committed"]


def test_the_end_is_one_past_the_last_record(cluster, numbers):
    assert end_offsets(cluster, [numbers]) == {numbers: 10}
