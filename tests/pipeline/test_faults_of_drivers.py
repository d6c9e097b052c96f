"""A driver is killed with -9 in mid-batch, again and again, and goes on from its checkpoint each time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from broker_process import ZurauBroker
from checkpoints import wait_for_mid_batch

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer

# Each start of a driver takes its time, in which the other tests go on.
pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(900)]

KILLS = 5
COUNT = 3000
PATIENCE_S = 240


class DoomedDriver:
    """doomed_driver.py with all that it starts, in a process group of its own."""

    def __init__(self, task: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("doomed_driver.py")), json.dumps(task)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        assert self._process.poll() is None, "it was too quick to be killed"
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def finish(self) -> dict[str, list[int]]:
        printed, _ = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0
        return json.loads(printed)


def test_the_lake_has_every_record_once_and_the_topic_at_least_once(tmp_path):
    with ZurauBroker(tmp_path / "broker") as broker:
        with Cluster(broker.bootstrap) as cluster:
            for topic in ("source", "target"):
                Admin(cluster).create_topic(NewTopic(topic, 2))
            with Producer(cluster) as producer:
                for number in range(COUNT):
                    producer.send("source", b"%d" % number, partition=number % 2)
        task = {"bootstrap": broker.bootstrap, "source": "source", "target": "target", "directory": str(tmp_path)}
        for kill in range(KILLS):
            driver = DoomedDriver(task)
            wait_for_mid_batch(tmp_path / f"{('lake', 'topic')[kill % 2]}-checkpoint", PATIENCE_S)
            driver.kill()
        found = DoomedDriver(task).finish()
    assert found["lake"] == list(range(COUNT))
    assert sorted(set(found["topic"])) == list(range(COUNT))
