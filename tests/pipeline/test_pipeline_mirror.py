"""Topics copied to another cluster, with everything that makes a record but its offset."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from tests.pipeline.conftest import read_topic

from pyspark_zurau.pipelines.archive.generate import generate as make_records
from zurau.client.admin import Admin
from zurau.client.cluster import Cluster
from zurau.testing import Broker

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def target():
    with Broker(auto_create_topics_enable=False) as broker:
        yield broker


def test_topics_are_copied_with_all_but_their_offsets(
    new_topic, generate, run_ready_made, broker, target, contents, admin
):
    topics = [new_topic(3, word="a"), new_topic(1, word="b")]
    made = list(make_records(600, 9, start_ms=1_767_225_600_000, per_s=50.0, topics={"topics": ",".join(topics)}))
    chosen = {"source": broker.bootstrap, "target": target.bootstrap, "prefix": "copy.", "topics": ",".join(topics)}
    generate(record for _, record in made[:400])
    run_ready_made("mirror", **chosen)
    admin.add_partitions(topics[1], 2)
    generate(record for _, record in made[400:])
    run_ready_made("mirror", **chosen)
    for topic in topics:
        copied = [(partition.partition, record) for partition, record in read_topic(target.bootstrap, f"copy.{topic}")]
        assert copied == [(partition.partition, record) for partition, record in contents(topic)]
    with Cluster(target.bootstrap) as cluster:
        counts = [len(Admin(cluster).describe_topic(f"copy.{topic}").partitions) for topic in topics]
    assert counts == [3, 2]
