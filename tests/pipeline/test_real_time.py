"""Pipelines in Spark's real-time mode, through Spark's own Kafka connector."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT

import pytest
from connector import connector_jars
from drivers import SMALL_JAVA

from zurau.client.admin import Admin, NewTopic
from zurau.testing import Broker

PATIENCE_S = 400
FILE = """
name = "clicks"
bootstrap = "{bootstrap}"
checkpoint = "{directory}/checkpoint"
[trigger]
real_time = "5 minutes"
[spark]
{spark}
[sources.clicks]
topics = ["{clicks}"]
format = "json"
schema = "page STRING NOT NULL, ms DOUBLE"
dead_letter = "{clicks}-dead"
[steps.pages]
sql = "SELECT page, count(*) AS visits FROM clicks WHERE ms > 10 GROUP BY page"
[sinks.slow]
from = "clicks"
kind = "topic"
topic = "{clicks}-slow"
key = "page"
[sinks.pages]
from = "pages"
kind = "topic"
topic = "{clicks}-pages"
mode = "update"
"""


def start(file: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "zurau", "pipeline", "run", str(file)]
    with output.open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def wait_for(is_done: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.2)


@pytest.fixture
def write(
    broker: Broker, tmp_path: Path, admin: Admin, unique: Callable[[str], str]
) -> Callable[[str], tuple[Path, str]]:
    def write(spark: str) -> tuple[Path, str]:
        file, clicks = tmp_path / "clicks.toml", unique("clicks")
        for topic in (clicks, f"{clicks}-slow", f"{clicks}-pages", f"{clicks}-dead"):
            admin.create_topic(NewTopic(topic, 1))
        file.write_text(FILE.format(bootstrap=broker.bootstrap, directory=tmp_path, clicks=clicks, spark=spark))
        return file, clicks

    return write


@pytest.mark.timeout(1800)
@pytest.mark.xdist_group("spark-command")
def test_rows_counts_and_dead_letters_come_without_waiting_for_a_checkpoint(write, tmp_path, produce, contents):
    file, clicks = write(f'jars = "{connector_jars()}"{SMALL_JAVA}')
    for number in range(3):
        produce(clicks, json.dumps({"page": "/", "ms": 15 + number}).encode())
    produce(clicks, b"not JSON")
    running = start(file, tmp_path / "output")

    def values(topic: str) -> list[bytes]:
        assert running.poll() is None, (tmp_path / "output").read_text()
        return [record.value or b"" for _, record in contents(f"{clicks}-{topic}")]

    try:
        wait_for(lambda: len(values("slow")) == 3, "no rows")
        wait_for(lambda: b'{"page":"/","visits":3}' in values("pages"), "no counts")
        wait_for(lambda: values("dead") == [b"not JSON"], "no dead letter")
        produce(clicks, json.dumps({"page": "/later", "ms": 99.0}).encode())
        wait_for(lambda: b'{"page":"/later","ms":99.0}' in values("slow"), "no later row")
        # Five minutes have not passed, so none of it is in the checkpoint.
        assert not list((tmp_path / "checkpoint" / "slow" / "commits").glob("[0-9]*"))
        running.send_signal(SIGINT)
        assert running.wait(PATIENCE_S) == 130, (tmp_path / "output").read_text()
    finally:
        running.kill()
        running.wait()


@pytest.mark.xdist_group("spark")
def test_without_the_connector_it_says_how_to_have_it(write, spark):
    from pyspark_zurau.engine.problems import BadPipeline
    from pyspark_zurau.engine.read import read_pipeline
    from pyspark_zurau.engine.run import Execution

    file, _ = write("")
    with pytest.raises(BadPipeline, match="spark-sql-kafka-0-10"):
        Execution(spark.newSession(), read_pipeline(file)).plan()
