"""What a query goes through: a broker that is killed with -9, partitions that are added, a disk that is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from broker_process import ZurauBroker
from checkpoints import wait_for_mid_batch

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer

pytestmark = pytest.mark.xdist_group("spark")


class Load(threading.Thread):
    """Numbers, one after the other, until told to stop: a query that reads them always has work."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._address = bootstrap
        self._topic = topic
        self._enough = threading.Event()
        self.count = 0

    def run(self) -> None:
        with Cluster(self._address) as cluster, Producer(cluster) as producer:
            while not self._enough.wait(0.01):
                for _ in range(5):
                    producer.send(self._topic, b"%d" % self.count)
                    self.count += 1
                producer.poll()

    def finish(self) -> int:
        """How many there are, all of them acknowledged."""
        self._enough.set()
        self.join()
        return self.count


def lake_values(spark, lake: Path) -> list[int]:
    return sorted(int(row.value) for row in spark.read.parquet(str(lake)).select("value").collect())


def into_lake(spark, bootstrap: str, topic: str, directory: Path, **trigger: object):
    """A query that writes a topic to Parquet files, in small batches."""
    reader = spark.readStream.format("zurau").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    frame = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "5000").load()
    writer = frame.selectExpr("string(value) AS value").writeStream.format("parquet")
    writer = writer.option("path", str(directory / "lake")).option("checkpointLocation", str(directory / "checkpoint"))
    return writer.trigger(**trigger or {"availableNow": True}).start()


def test_a_stream_carries_on_when_its_broker_is_killed_in_mid_batch_and_partitions_are_added(spark, tmp_path):
    with ZurauBroker(tmp_path / "broker") as broker:
        with Cluster(broker.bootstrap) as cluster:
            Admin(cluster).create_topic(NewTopic("t", 1))
        load = Load(broker.bootstrap, "t")
        load.start()
        query = into_lake(spark, broker.bootstrap, "t", tmp_path, processingTime="10 milliseconds")
        for kill in (1, 2, 3):
            wait_for_mid_batch(tmp_path / "checkpoint")
            broker.kill()
            broker.start()
            with Cluster(broker.bootstrap) as cluster:
                Admin(cluster).add_partitions("t", kill + 1)
        count = load.finish()
        query.processAllAvailable()
        query.stop()
    assert lake_values(spark, tmp_path / "lake") == list(range(count))


@contextmanager
def small_disk(directory: Path, size: str) -> Iterator[None]:
    """A file system of that size, mounted at `directory`."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small file system to fill up can be mounted only by root")
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(directory)], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield
    finally:
        # The session is still there, and may hold a file open for a moment.
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_full_disk_stops_the_query_and_nothing_is_lost_or_doubled_when_there_is_room_again(
    spark, broker, new_topic, produce, tmp_path
):
    topic = new_topic(2)
    disk = tmp_path / "disk"
    with small_disk(disk, "4m"):
        produce(topic, *(b"%d" % number for number in range(1000)))
        assert into_lake(spark, broker.bootstrap, topic, disk).awaitTermination(60)
        produce(topic, *(b"%d" % number for number in range(1000, 2000)))
        (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free))
        with pytest.raises(Exception, match="No space left on device"):
            into_lake(spark, broker.bootstrap, topic, disk).awaitTermination(60)
        (disk / "filler").unlink()
        assert into_lake(spark, broker.bootstrap, topic, disk).awaitTermination(60)
        assert lake_values(spark, disk / "lake") == list(range(2000))
