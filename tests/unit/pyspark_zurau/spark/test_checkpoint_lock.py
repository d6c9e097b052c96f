"""Who may use a checkpoint: one process at a time, and nobody who has died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.spark.checkpoint_lock import CheckpointBusy, CheckpointLock, holder

HOLD = """
import sys, time
from pyspark_zurau.spark.checkpoint_lock import CheckpointLock
with CheckpointLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_told_who_the_first_is(tmp_path):
    message = f"the checkpoint {tmp_path} is in use by process {os.getpid()} on .*; stop that one first"
    with CheckpointLock(tmp_path), pytest.raises(CheckpointBusy, match=message):
        CheckpointLock(tmp_path).acquire()


def test_a_lock_that_was_given_back_can_be_taken_again(tmp_path):
    with CheckpointLock(tmp_path):
        assert holder(tmp_path) == os.getpid()
    assert holder(tmp_path) is None
    with CheckpointLock(tmp_path):
        pass


def test_a_process_that_is_killed_holds_nothing_any_more(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert holder(tmp_path) == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert holder(tmp_path) is None


def test_a_checkpoint_that_is_no_directory_has_no_lock():
    with CheckpointLock("s3://bucket/checkpoint"):
        assert holder("s3://bucket/checkpoint") is None
