"""The same source on a cluster: a real master with two workers, and Spark Connect in front of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from standalone import connect_server, run_patiently, small_jvm, standalone_cluster

from zurau.client.producer import Producer

# A cluster takes its time to start, in which the other tests go on.
pytestmark = [pytest.mark.xdist_group("spark-cluster"), pytest.mark.timeout(3600)]

COUNT = 1000


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="module")
def remote(master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect"), master) as address:
        yield address


@pytest.fixture
def run_far_driver(broker, cluster, new_topic, tmp_path: Path):
    """Runs far_driver.py on a topic of numbers."""

    def run(**where: str) -> dict[str, list[int]]:
        source, target = new_topic(2, word="source"), new_topic(2, word="target")
        with Producer(cluster) as producer:
            for number in range(COUNT):
                producer.send(source, b"%d" % number, partition=number % 2)
        task = {"bootstrap": broker.bootstrap, "source": source, "target": target, "directory": str(tmp_path)}
        task |= {"small_jvm": small_jvm(), **where}
        command = [sys.executable, str(Path(__file__).with_name("far_driver.py")), json.dumps(task)]
        done = run_patiently(command)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


EXPECTED = {"batch": [COUNT, sum(range(COUNT))], "copied": list(range(COUNT))}


def test_topics_are_read_and_written_on_a_cluster_of_two_workers(master, run_far_driver):
    assert run_far_driver(master=master) == EXPECTED


PIPELINE = """
name = "far"
bootstrap = "{bootstrap}"
checkpoint = "{directory}/checkpoint"
[spark]
driver.extraJavaOptions = "{small_jvm}"
executor.memory = "512m"
executor.extraJavaOptions = "{small_jvm}"
[sources.numbers]
topics = "{source}"
format = "csv"
schema = "n INT NOT NULL"
dead_letter = "{dead}"
[steps.doubled]
sql = "SELECT n, 2 * n AS twice FROM numbers"
[sinks.lake]
from = "doubled"
kind = "parquet"
path = "{directory}/lake"
"""


@pytest.fixture
def run_far_pipeline(broker, new_topic, produce, contents, tmp_path: Path):
    """Runs a pipeline on a topic of numbers and one bad value: what is in the lake, and what is dead."""

    def run(*where: str) -> tuple[list[int], list[bytes]]:
        import pyarrow.parquet as pq

        source, dead = new_topic(2, word="source"), new_topic(word="dead")
        produce(source, *(b"%d" % number for number in range(COUNT)), b"many")
        words = {"bootstrap": broker.bootstrap, "directory": tmp_path, "source": source, "dead": dead}
        words |= {"small_jvm": small_jvm()}
        (tmp_path / "far.toml").write_text(PIPELINE.format(**words))
        command = [sys.executable, "-m", "zurau", "pipeline", "run", str(tmp_path / "far.toml"), "--once", *where]
        done = run_patiently(command)
        assert done.returncode == 0, done.stderr[-4000:]
        lake = pq.read_table(tmp_path / "lake")["twice"].to_pylist()
        return sorted(lake), [record.value for _, record in contents(dead)]

    return run


DOUBLED = ([2 * number for number in range(COUNT)], [b"many"])


def test_a_pipeline_runs_on_a_cluster_of_two_workers(master, run_far_pipeline):
    assert run_far_pipeline("--master", master) == DOUBLED


# The server takes the cluster's cores for as long as it runs, so what needs it is last.


def test_topics_are_read_and_written_through_spark_connect(remote, run_far_driver):
    assert run_far_driver(remote=remote) == EXPECTED


def test_a_pipeline_runs_through_spark_connect(remote, run_far_pipeline):
    assert run_far_pipeline("--remote", remote) == DOUBLED
