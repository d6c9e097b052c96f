"""History and now, while everybody is killed with -9: the archive in mid-batch, compaction of its lake, the reader.

Retention takes from the topic what the lake has. Whoever reads both then must have every record once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from checkpoints import wait_for_mid_batch
from driver import wait_until
from drivers import PATIENCE_S, SMALL_JAVA, Driver, insist

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.engine.locate import locate
from pyspark_zurau.history.history import History
from pyspark_zurau.lake import compact as merging
from pyspark_zurau.options.read_options import parse_batch_options
from pyspark_zurau.options.values import Values
from pyspark_zurau.reading.batch import BatchReader
from zurau.client.admin import Admin
from zurau.client.producer import Producer

pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(1500)]

ROUNDS = int(os.environ.get("ZURAU_KILL_ROUNDS", "2"))
#: New records before each kill: several batches for everybody.
EACH = 200

READER = """
name = "reader"
checkpoint = "<<directory>>/reader"
[trigger]
every = "50 milliseconds"
[spark]
<<small java>>
[sources.records]
topics = ["<<topic>>"]
format = "raw"
options = { history = "<<directory>>/lake", maxOffsetsPerTrigger = 40 }
[steps.numbers]
sql = "SELECT partition, offset, int(string(value)) AS n FROM records"
[sinks.read]
from = "numbers"
kind = "parquet"
path = "<<directory>>/read"
"""


class World:
    """A topic, its archive and a reader of both."""

    def __init__(self, directory: Path, bootstrap: str, cluster, topic: str) -> None:
        self._bootstrap, self._cluster, self._topic = bootstrap, cluster, topic
        self._directory, self.lake, self.count = directory, directory / "lake", 0
        self.lake.mkdir()
        self._archive = self._write("archive", locate("archive").read_text(), "\n[spark]" + SMALL_JAVA)
        self._reader = self._write("reader", READER)

    def _write(self, name: str, text: str, more: str = "") -> Path:
        for word, meant in {"directory": self._directory, "topic": self._topic, "small java": SMALL_JAVA}.items():
            text = text.replace(f"<<{word}>>", str(meant))
        file = self._directory / f"{name}.toml"
        file.write_text(text + more)
        return file

    def produce(self) -> None:
        with Producer(self._cluster) as producer:
            for number in range(self.count, self.count + EACH):
                producer.send(self._topic, b"%d" % number, partition=number % 2)
        self.count += EACH

    def start_archive(self, *options: str) -> Driver:
        settings = {"topics": self._topic, "lake": self.lake, "checkpoint": self._directory / "archive"}
        settings |= {"batch": 40, "every": "50 milliseconds"}
        given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        return Driver(self._archive, self._bootstrap, *given, *options)

    def start_reader(self, *options: str) -> Driver:
        return Driver(self._reader, self._bootstrap, *options)

    def kill_archive_and_reader(self) -> None:
        archive, reader = self.start_archive(), self.start_reader()
        try:
            self.produce()
            wait_for_mid_batch(self._directory / "archive" / "lake", PATIENCE_S, archive.check_alive)
            archive.kill()
            self.kill_compaction()
            self.expire()
            self.produce()
            wait_for_mid_batch(self._directory / "reader" / "read", PATIENCE_S, reader.check_alive)
            reader.kill()
        finally:
            archive.end()
            reader.end()

    def kill_compaction(self) -> None:
        """As soon as it has written something."""
        process = subprocess.Popen([sys.executable, "-m", "zurau", "pipeline", "compact", str(self.lake)])

        def is_at_work() -> bool:
            return process.poll() is not None or any(self.lake.rglob(f"{merging.HIDDEN}*"))

        wait_until("compaction is at work", is_at_work, PATIENCE_S)
        process.kill()
        process.wait()

    def expire(self) -> None:
        """Retention takes all that is in the lake."""
        extents = History.at(str(self.lake)).extents({self._topic})
        Admin(self._cluster).delete_records({partition: end for partition, (_, end) in extents.items()})


def test_every_record_is_read_once_though_archive_compaction_and_reader_are_killed(
    broker, cluster, new_topic, tmp_path
):
    import pyarrow.parquet as pq

    topic = new_topic(2)
    world = World(tmp_path, broker.bootstrap, cluster, topic)
    for _ in range(ROUNDS):
        insist(world.kill_archive_and_reader)
    insist(lambda: world.start_archive("--once").finish())
    world.expire()
    world.produce()
    insist(lambda: world.start_reader("--once").finish())

    everything = [(number % 2, number // 2, number) for number in range(world.count)]
    rows = pq.read_table(tmp_path / "read").to_pylist()
    assert Counter((row["partition"], row["offset"], row["n"]) for row in rows) == Counter(everything)
    # The tasks of a batch query, run here: its session would be one more Java.
    where = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "history": str(world.lake)}
    reader = BatchReader(parse_batch_options(Values(where)), topic_schema(with_headers=False))
    found = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert Counter((row["partition"], row["offset"], int(row["value"])) for row in found) == Counter(everything)
