"""Reading a partition that a disk has damaged: what is good arrives, then the error says where and what to do."""

from __future__ import annotations

import time

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import ClientError, CorruptRecords
from zurau.client.groups.admin import GroupAdmin
from zurau.client.groups.consumer import GroupConsumer
from zurau.client.groups.membership import GroupSettings
from zurau.client.offsets import offsets_at_time
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.records.batch import iter_batches, seal
from zurau.records.compression import Compression
from zurau.testing import Broker

SEGMENT = "00000000000000000000.log"
DAMAGED, WHOLE = TopicPartition("t", 0), TopicPartition("t", 1)
BATCHES, RECORDS = 4, 5
#: What to flip in the batch with the offsets 10 to 14.
PAYLOAD, MAGIC = -2, 16
#: The byte of a batch's attributes that names its codec.
ATTRIBUTES = 22
QUICK = GroupSettings(heartbeat_interval_s=0.05)


@pytest.fixture
def broker(tmp_path):
    with Broker(dir=str(tmp_path / "data"), initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def cluster(broker):
    """A topic whose two partitions hold offsets 0 to 19 each, in batches of five."""
    with Cluster(broker.bootstrap, timeout_s=60) as cluster:
        Admin(cluster).create_topic(NewTopic("t", partition_count=2, settings={"retention.ms": "-1"}))
        for first in range(0, BATCHES * RECORDS, RECORDS):
            with Producer(cluster) as producer:
                for number in range(first, first + RECORDS):
                    for partition in (DAMAGED, WHOLE):
                        producer.send("t", b"%d" % number, partition=partition.partition, timestamp_ms=1000 * number)
        yield cluster


def flip(broker, place):
    """Change one byte of the batch with the offsets 10 to 14."""
    file = broker.directory / str(DAMAGED) / SEGMENT
    content = bytearray(file.read_bytes())
    start = 0
    for header, _ in iter_batches(bytes(content)):
        if header.base_offset == 10:
            content[start + (place if place >= 0 else header.length + place)] ^= 1
        start += header.length
    with file.open("r+b") as opened:  # the broker has this very file open
        opened.write(content)


def read_until_error(consumer, wanted=DAMAGED):
    """The offsets that arrived of a partition, and the error after them."""
    offsets: list[int] = []
    deadline_s = time.monotonic() + 30
    try:
        while time.monotonic() < deadline_s:
            for partition, records, _ in consumer.poll():
                offsets += [record.offset for record in records if partition == wanted]
    except ClientError as error:
        return offsets, error
    raise AssertionError("no error came")


@pytest.mark.parametrize("place", [PAYLOAD, MAGIC])
def test_good_records_arrive_before_the_error_at_a_damaged_batch(broker, cluster, place):
    flip(broker, place)
    with Consumer(cluster) as consumer:
        consumer.assign({DAMAGED: 3})
        offsets, error = read_until_error(consumer)
        assert offsets == list(range(3, 10))
        assert isinstance(error, CorruptRecords)
        assert "t-0 at offset 10: " in str(error)
        assert "`zurau log check DIR`" in str(error)
        assert "`zurau log repair DIR`" in str(error)
        assert consumer.positions == {DAMAGED: 10}


@pytest.mark.parametrize("place", [PAYLOAD, MAGIC])
def test_the_error_comes_again_until_the_reader_goes_on_behind_the_damage(broker, cluster, place):
    flip(broker, place)
    with Consumer(cluster) as consumer:
        consumer.assign({DAMAGED: 10})
        for _ in range(2):
            assert read_until_error(consumer)[0] == []
        consumer.seek(DAMAGED, 15)
        while not (chunks := [records for _, records, _ in consumer.poll() if records]):
            pass
        assert [record.offset for record in chunks[0]] == [15, 16, 17, 18, 19]


@pytest.mark.parametrize("place", [PAYLOAD, MAGIC])
def test_damage_takes_no_records_from_another_partition(broker, cluster, place):
    flip(broker, place)
    with Consumer(cluster) as consumer:
        consumer.assign({WHOLE: 0, DAMAGED: 10})
        offsets: list[int] = []
        while consumer.positions[WHOLE] < 20 or len(offsets) < 20:
            try:
                chunks = consumer.poll()
            except CorruptRecords:
                continue
            offsets += [record.offset for partition, records, _ in chunks if partition == WHOLE for record in records]
        assert offsets == list(range(20))


def test_the_offset_behind_a_wrong_checksum_is_named(broker, cluster):
    flip(broker, PAYLOAD)
    with Consumer(cluster) as consumer:
        consumer.assign({DAMAGED: 12})
        assert "read on from offset 15" in str(read_until_error(consumer)[1])


@pytest.mark.parametrize("place", [PAYLOAD, MAGIC])
def test_a_group_commits_up_to_the_damage_and_goes_on_there(broker, cluster, place):
    flip(broker, place)
    with GroupConsumer(cluster, "g", ["t"], settings=QUICK) as member:
        assert read_until_error(member)[0] == list(range(10))
    assert GroupAdmin(cluster).offsets("g")[DAMAGED] == 10
    with GroupConsumer(cluster, "g", ["t"], settings=QUICK) as next_member:
        assert read_until_error(next_member)[0] == []


def test_a_search_by_time_that_meets_what_cannot_be_unpacked_fails_at_once_and_says_what_to_do(broker, cluster):
    """Packed wrongly by whoever wrote it, with a checksum that is right: trying again does not help."""
    file = broker.directory / str(DAMAGED) / SEGMENT
    content = bytearray(file.read_bytes())
    start = 0
    for header, _ in iter_batches(bytes(content)):
        if header.base_offset == 10:
            batch = content[start : start + header.length]
            batch[ATTRIBUTES] |= Compression.GZIP
            seal(batch)
            content[start : start + header.length] = batch
        start += header.length
    with file.open("r+b") as opened:
        opened.write(content)
    with pytest.raises(CorruptRecords, match=r"t-0: .* search .*`zurau log check DIR`"):
        offsets_at_time(cluster, [DAMAGED], 10_000)
