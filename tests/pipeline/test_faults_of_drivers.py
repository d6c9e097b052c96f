"""`zurau pipeline run` is killed with -9 in mid-batch, again and again, and goes on from its checkpoint each time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from checkpoints import wait_for_mid_batch

from zurau.client.producer import Producer

# Each start of a driver takes its time, in which the other tests go on.
pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(1500)]

KILLS = 5
#: New records before each start: several batches for every sink.
EACH = 300
COUNT = KILLS * EACH
PATIENCE_S = 240
SINKS = ("lake", "table", "topic")

PIPELINE = """
name = "doomed"
bootstrap = "{bootstrap}"
checkpoint = "{directory}/checkpoint"
[trigger]
available_now = true
[spark]
"driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"driver.memory" = "600m"
[sources.records]
topics = "{source}"
format = "raw"
options = {{ maxOffsetsPerTrigger = 100 }}
[steps.numbers]
sql = "SELECT int(string(value)) AS n FROM records"
[sinks.lake]
from = "numbers"
kind = "parquet"
path = "{directory}/lake"
[sinks.table]
from = "numbers"
kind = "postgres"
dsn = "{dsn}"
table = "numbers"
[sinks.topic]
from = "numbers"
kind = "topic"
topic = "{target}"
"""


#: What Spark says when a Python process takes longer than ten seconds to start, which is all that it gives it.
TOO_BUSY = "Python worker failed to connect back"


class Overloaded(Exception):
    """The driver has ended because the machine was too busy."""


class Driver:
    """`zurau pipeline run` with all that it starts, in a process group of its own."""

    def __init__(self, file: Path) -> None:
        self._log = file.with_suffix(".log")
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "zurau", "pipeline", "run", str(file), "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            said = self._log.read_text()[-4000:]
            assert TOO_BUSY in said, f"it has ended by itself:\n{said}"
            raise Overloaded(said)

    def kill(self) -> None:
        self.check_alive()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        if self._process.wait(PATIENCE_S) != 0:
            self.check_alive()


def insist(attempt: Callable[[], None]) -> None:
    """Again, if the machine was too busy for Spark; to end like that is as good as being killed."""
    for _ in range(5):
        try:
            return attempt()
        except Overloaded:
            continue
    return attempt()


def test_lake_and_table_have_every_record_once_and_the_topic_at_least_once(
    broker, cluster, new_topic, contents: Callable, postgres: str, tmp_path: Path
):
    import psycopg
    import pyarrow.parquet as pq

    source, target = new_topic(2), new_topic(2)
    places = {"bootstrap": broker.bootstrap, "source": source, "target": target, "dsn": postgres}
    file = tmp_path / "doomed.toml"
    file.write_text(PIPELINE.format(directory=tmp_path, **places))

    def start_and_kill(sink: str) -> None:
        driver = Driver(file)
        wait_for_mid_batch(tmp_path / "checkpoint" / sink, PATIENCE_S, driver.check_alive)
        driver.kill()

    for kill in range(KILLS):
        with Producer(cluster) as producer:
            for number in range(kill * EACH, (kill + 1) * EACH):
                producer.send(source, b"%d" % number, partition=number % 2)
        insist(partial(start_and_kill, SINKS[kill % len(SINKS)]))
    insist(lambda: Driver(file).finish())

    assert sorted(pq.read_table(tmp_path / "lake")["n"].to_pylist()) == list(range(COUNT))
    with psycopg.connect(postgres) as connection:
        assert [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")] == list(range(COUNT))
    written = {json.loads(record.value)["n"] for _, record in contents(target)}
    assert sorted(written) == list(range(COUNT))
