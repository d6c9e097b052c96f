"""Topics read as streams, by Spark itself."""

from __future__ import annotations

import json
import socket

import pytest

from zurau.client.cluster import Cluster
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Broker

pytestmark = pytest.mark.xdist_group("spark")

OFTEN = {"processingTime": "50 milliseconds"}


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def test_an_available_now_run_reads_everything_once_in_batches_of_the_size_asked_for(stream, new_topic, produce):
    topic = new_topic(2)
    produce(topic, *numbers(20), partition=0)
    produce(topic, *numbers(10, start=20), partition=1)
    running = stream(topic, maxOffsetsPerTrigger="12")
    assert sorted(running.finish(), key=int) == numbers(30)
    assert [len(batch) for batch in running.batches] == [12, 12, 6]


def test_a_query_goes_on_from_its_checkpoint(stream, new_topic, produce):
    topic = new_topic()
    produce(topic, *numbers(5))
    assert stream(topic).finish() == numbers(5)
    produce(topic, *numbers(5, start=5))
    assert stream(topic).finish() == numbers(5, start=5)


def test_a_batch_that_was_planned_but_not_done_is_read_again(stream, new_topic, produce, tmp_path):
    topic = new_topic()
    produce(topic, *numbers(5))
    assert stream(topic).finish() == numbers(5)
    # As a crash would leave it: the last batch is in the log of plans and not in that of deeds.
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
    assert stream(topic).finish() == numbers(5)


def test_offsets_in_the_checkpoint_are_written_as_the_kafka_connector_writes_them(stream, new_topic, produce, tmp_path):
    topic = new_topic(2)
    produce(topic, b"a", partition=1)
    stream(topic).finish()
    written = (tmp_path / "checkpoint" / "offsets" / "0").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(written) == {topic: {"0": 0, "1": 1}}


def test_partitions_that_are_added_while_a_query_runs_are_read(stream, new_topic, produce, admin):
    topic = new_topic()
    running = stream(topic, trigger=OFTEN)
    produce(topic, b"0")
    assert running.wait_for(1) == [b"0"]
    admin.add_partitions(topic, 3)
    produce(topic, b"1", partition=2)
    assert running.wait_for(2) == [b"0", b"1"]


def test_a_query_outlives_a_restart_of_its_broker(stream, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with Cluster(address) as cluster:
        with Broker(dir=str(tmp_path / "data"), kafka=address), Producer(cluster) as producer:
            for value in numbers(5):
                producer.send("t", value)
            producer.flush()
            running = stream("t", trigger=OFTEN, bootstrap=address)
            assert running.wait_for(5) == numbers(5)
        with Broker(dir=str(tmp_path / "data"), kafka=address), Producer(cluster) as producer:
            for value in numbers(5, start=5):
                producer.send("t", value)
            producer.flush()
            assert running.wait_for(10) == numbers(10)
            running.query.stop()


def test_a_topic_that_is_deleted_stops_the_query(stream, new_topic, produce, admin):
    topic = new_topic()
    produce(topic, b"0")
    running = stream(topic, trigger=OFTEN)
    running.wait_for(1)
    admin.delete_topic(topic)
    with pytest.raises(Exception, match=f"{topic}-0 is gone.*failOnDataLoss"):
        running.finish()


def test_a_query_goes_on_without_a_deleted_topic_when_that_is_allowed(stream, new_topic, produce, admin, unique):
    word = unique("family")
    doomed, kept = new_topic(word=word), new_topic(word=word)
    produce(doomed, b"0")
    running = stream("", trigger=OFTEN, subscribePattern=f"{word}.*", failOnDataLoss="false")
    running.wait_for(1)
    admin.delete_topic(doomed)
    produce(kept, b"1")
    assert running.wait_for(2) == [b"0", b"1"]


@pytest.mark.parametrize("fails", [True, False])
def test_data_that_expired_before_it_was_read_is_a_loss(stream, new_topic, produce, admin, fails):
    topic = new_topic()
    produce(topic, b"0")
    assert stream(topic).finish() == [b"0"]
    produce(topic, b"1", b"2")
    admin.delete_records({TopicPartition(topic, 0): 2})
    running = stream(topic, failOnDataLoss=str(fails).lower())
    if fails:
        with pytest.raises(Exception, match=f"{topic}-0, offsets 1 to 1"):
            running.finish()
    else:
        assert running.finish() == [b"2"]


def test_progress_tells_how_far_the_query_is_and_how_far_the_topic(stream, new_topic, produce):
    topic = new_topic()
    produce(topic, *numbers(3))
    running = stream(topic, maxOffsetsPerTrigger="2")
    running.finish()
    source = running.query.recentProgress[0]["sources"][0]
    offsets = [json.loads(source[name]) for name in ("endOffset", "latestOffset")]
    assert offsets == [{topic: {"0": 2}}, {topic: {"0": 3}}]
