"""`zurau pipeline run` as a process: it is watched, held to be the only one, and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.parquet as pq
from driver import wait_until

from pyspark_zurau.engine.progress import read_status
from pyspark_zurau.spark.checkpoint_lock import CheckpointBusy, CheckpointLock

# A session of its own, not the one that the other tests share.
pytestmark = pytest.mark.xdist_group("spark-command")

BODY = """
[sources.words]
topics = "<<words>>"
format = "text"
dead_letter = "fail"
[sinks.lake]
from = "words"
kind = "parquet"
path = "<<directory>>/lake"
"""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def started(declare, new_topic, produce, tmp_path):
    """A pipeline that has written one record and goes on, with its process and its topic."""
    topic = new_topic()
    produce(topic, b"first")
    pipeline = declare(BODY, words=topic)
    pipeline.file.write_text(pipeline.file.read_text().replace("available_now = true", "every = '100 milliseconds'"))
    command = [sys.executable, "-m", "zurau", "pipeline", "run", str(pipeline.file), "--master", "local[1]"]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICK}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        yield process, topic, str(tmp_path / "checkpoint")
        process.kill()


def rows_of(checkpoint: str) -> int:
    status = read_status(checkpoint)
    return status.queries[0].rows if status else 0


def wait_for_rows(process: subprocess.Popen[str], checkpoint: str, count: int) -> None:
    deadline_s = time.monotonic() + 120
    while rows_of(checkpoint) < count and process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert rows_of(checkpoint) == count, process.stderr.read() if process.poll() is not None else "too slow"


def test_a_running_pipeline_is_seen_alone_and_ends_after_its_batch(started, produce):
    process, topic, checkpoint = started
    wait_for_rows(process, checkpoint, 1)
    produce(topic, b"second")
    wait_for_rows(process, checkpoint, 2)
    status = read_status(checkpoint)
    assert (status.state, status.pid, status.queries[0].lag) == ("running", process.pid, 0)
    with pytest.raises(CheckpointBusy, match=f"in use by process {process.pid} on"):
        CheckpointLock(checkpoint).acquire()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "test: stopped; `zurau pipeline run` goes on from here\n" in errors
    assert "Traceback" not in errors
    assert read_status(checkpoint).state == "stopped"


def test_a_pipeline_that_was_killed_is_called_lost(started):
    process, _, checkpoint = started
    wait_until("the pipeline has begun", lambda: read_status(checkpoint) is not None, patience_s=120)
    process.kill()
    process.wait()
    status = read_status(checkpoint)
    assert (status.state, status.reason) == ("lost", f"process {process.pid} has ended without a word")


def test_ctrl_c_while_spark_starts_ends_it_without_a_trace(started):
    process, _, checkpoint = started
    assert "waiting for Java" in process.stderr.readline()
    assert "waiting for session" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "test: ended while it was starting; nothing was read\n")
    assert read_status(checkpoint) is None
    CheckpointLock(checkpoint).acquire()


@pytest.fixture
def host(tmp_path):
    """A Spark that stays up, and a function that runs `zurau pipeline` in it."""
    environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICK, "XDG_STATE_HOME": str(tmp_path / "state")}
    zurau = [sys.executable, "-m", "zurau", "pipeline"]
    command = [*zurau, "host", "--master", "local[1]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while "ready" not in (line := process.stderr.readline()):
            assert line, "the host has ended"
        yield lambda *arguments: subprocess.Popen(
            [*zurau, *arguments, "--host"], stderr=subprocess.PIPE, text=True, env=environment
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_host_runs_pipelines_and_takes_back_what_a_killed_one_held(host, declare, new_topic, produce, tmp_path):
    topic = new_topic()
    produce(topic, b"first")
    pipeline = declare(BODY, words=topic)
    once = pipeline.file.read_text()
    pipeline.file.write_text(once.replace("available_now = true", "every = '100 milliseconds'"))
    checkpoint = pipeline.checkpoint
    with host("run", str(pipeline.file)) as process:
        wait_for_rows(process, checkpoint, 1)
        process.kill()
    produce(topic, b"second")
    pipeline.file.write_text(once)
    with host("run", str(pipeline.file)) as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert sorted(pq.read_table(tmp_path / "lake")["value"].to_pylist()) == ["first", "second"]


def test_without_a_host_the_error_says_how_to_start_one(declare, new_topic, tmp_path):
    pipeline = declare(BODY, words=new_topic())
    command = [sys.executable, "-m", "zurau", "pipeline", "check", str(pipeline.file), "--host"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, "start one with `zurau pipeline host`" in done.stderr) == (1, True)
