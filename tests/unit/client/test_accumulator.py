"""Gathering records into batches."""

from __future__ import annotations

from zurau.client.chance import chance
from zurau.client.producer.accumulator import Accumulator
from zurau.ids import TopicPartition
from zurau.records.builder import NewRecord
from zurau.records.partitioner import partition_for_key

ZERO = TopicPartition("t", 0)
NEVER_S = 1000.0


def record(value: bytes) -> NewRecord:
    return NewRecord(key=None, value=value)


def test_a_batch_is_due_when_it_is_full():
    batches = Accumulator(batch_bytes=100, linger_s=NEVER_S)
    _, is_due = batches.add(ZERO, record(b"x" * 10))
    assert not is_due
    _, is_due = batches.add(ZERO, record(b"x" * 90))
    assert is_due
    assert [len(batch.records) for batch in batches.next_batches()] == [2]


def test_a_batch_is_due_when_it_has_waited():
    batches = Accumulator(batch_bytes=100, linger_s=0)
    _, is_due = batches.add(ZERO, record(b"x"))
    batches.close_due()
    assert is_due
    assert [len(batch.records) for batch in batches.next_batches()] == [1]


def test_equal_keys_go_where_java_puts_them():
    batches = Accumulator(batch_bytes=100, linger_s=NEVER_S)
    assert batches.choose_partition("t", b"key", 7) == TopicPartition("t", partition_for_key(b"key", 7))


def test_records_without_a_key_begin_at_any_partition():
    begun = {
        Accumulator(batch_bytes=100, linger_s=NEVER_S).choose_partition("t", None, 3).partition for _ in range(100)
    }
    assert begun == {0, 1, 2}


def test_a_seed_decides_where_records_without_a_key_begin():
    begun = []
    for _ in range(2):
        chance.seed(7)
        begun.append(
            [
                Accumulator(batch_bytes=100, linger_s=NEVER_S).choose_partition("t", None, 100).partition
                for _ in range(5)
            ]
        )
    chance.seed()
    assert begun[0] == begun[1]


def test_records_without_a_key_stay_together_and_then_move_on():
    batches = Accumulator(batch_bytes=1000, linger_s=NEVER_S)
    chosen = []
    for _ in range(3):
        partition = batches.choose_partition("t", None, 2)
        batches.add(partition, record(b"x"))
        chosen.append(partition.partition)
        assert batches.choose_partition("t", None, 2) == partition
        batches.close_all()
    assert chosen in ([0, 1, 0], [1, 0, 1])


def test_a_returned_batch_goes_out_before_later_ones():
    batches = Accumulator(batch_bytes=1, linger_s=NEVER_S)
    for value in (b"first", b"second"):
        batches.add(ZERO, record(value))
    (first,) = batches.next_batches()
    batches.take(first)
    batches.put_back(first)
    assert next(batches.next_batches()) is first


def test_buffered_bytes_fall_when_a_batch_is_finished():
    batches = Accumulator(batch_bytes=1, linger_s=NEVER_S)
    batches.add(ZERO, record(b"x"))
    (batch,) = batches.next_batches()
    assert batches.buffered_bytes == batch.size_bytes > 0
    batches.take(batch)
    batches.finished(batch)
    assert batches.buffered_bytes == 0


def test_a_delivery_counts_from_the_offset_of_its_batch():
    batches = Accumulator(batch_bytes=1000, linger_s=NEVER_S)
    deliveries = [batches.add(ZERO, record(b"x"))[0] for _ in range(2)]
    batches.close_all()
    assert [delivery.offset for delivery in deliveries] == [None, None]
    next(batches.next_batches()).base_offset = 40
    assert [delivery.offset for delivery in deliveries] == [40, 41]
