"""A pipeline is killed with -9 in mid-batch, again and again, and goes on from its checkpoint each time.

Every other time only the Python driver dies, and its Java process is left to find out by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.parquet as pq
from checkpoints import wait_for_mid_batch

# Each start of a driver takes its time, in which the other tests go on.
pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(900)]

KILLS = 5
COUNT = 3000
PATIENCE_S = 240
SINKS = ("lake", "table", "copy")
BODY = """
[spark]
driver.memory = "512m"
driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

[sources.numbers]
topics = "<<numbers>>"
format = "csv"
schema = "n INT NOT NULL"
options = {maxOffsetsPerTrigger = 100}
dead_letter = "fail"

[sinks.lake]
from = "numbers"
kind = "parquet"
path = "<<directory>>/lake"

[sinks.table]
from = "numbers"
kind = "postgres"
dsn = "<<dsn>>"
table = "<<table>>"

[sinks.copy]
from = "numbers"
kind = "topic"
topic = "<<copy>>"
"""


class Run:
    """`zurau pipeline run --once` with all that it starts, in a process group of its own."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "zurau", "pipeline", "run", str(file), "--once", "--master", "local[2]"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill(everything=True)

    def kill(self, *, everything: bool) -> None:
        assert self._process.poll() is None, self._process.communicate()[1]
        (os.killpg if everything else os.kill)(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        _, errors = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, errors


def test_lake_and_table_have_every_row_once_and_the_topic_at_least_once(
    declare, new_topic, produce, contents, postgres, unique, tmp_path
):
    import psycopg

    numbers, copy, table = new_topic(2), new_topic(), unique("t").replace("-", "_")
    for partition in range(2):
        produce(numbers, *(b"%d" % number for number in range(partition, COUNT, 2)), partition=partition)
    pipeline = declare(BODY, numbers=numbers, copy=copy, dsn=postgres, table=table)
    for kill in range(KILLS):
        with Run(pipeline.file) as run:
            wait_for_mid_batch(tmp_path / "checkpoint" / SINKS[kill % len(SINKS)], PATIENCE_S)
            run.kill(everything=kill % 2 == 0)
    with Run(pipeline.file) as run:
        run.finish()
    with psycopg.connect(postgres) as connection:
        in_table = [row[0] for row in connection.execute(f"SELECT n FROM {table}").fetchall()]
    assert sorted(pq.read_table(tmp_path / "lake")["n"].to_pylist()) == [*range(COUNT)]
    assert sorted(in_table) == [*range(COUNT)]
    assert len({record.value for _, record in contents(copy)}) == COUNT
