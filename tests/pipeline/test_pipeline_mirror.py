"""Topics copied to another cluster, with everything that makes a record but its offset."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.pipelines.archive.generate import generate as make_records
from pyspark_zurau.pipelines.generated import Generated, produce
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer
from zurau.testing import Broker

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def another():
    with Broker(auto_create_topics_enable=False) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory):
    from apache_kafka import ApacheKafka, Unavailable

    try:
        kafka = ApacheKafka(tmp_path_factory.mktemp("apache-kafka"), settings={"auto.create.topics.enable": "false"})
    except Unavailable as missing:
        pytest.skip(str(missing))
    with kafka:
        yield kafka.bootstrap


@pytest.fixture
def mirror(run_ready_made, unique, contents):
    """Copies two topics in two runs, with a partition added in between, and compares."""

    def mirror(source: str, target: str) -> None:
        topics = [unique("a"), unique("b")]
        chosen = {"source": source, "target": target, "prefix": "copy.", "topics": ",".join(topics)}
        made = make_records(600, 9, start_ms=1_767_225_600_000, per_s=50.0, topics={"topics": ",".join(topics)})
        records = [record for _, record in made]
        with Cluster(source) as cluster:
            for topic, count in zip(topics, (3, 1), strict=True):
                # It forgets nothing: the records are of a day long gone.
                Admin(cluster).create_topic(NewTopic(topic, count, settings={"retention.ms": "-1"}))
            _produce(cluster, records[:400])
            run_ready_made("mirror", **chosen)
            Admin(cluster).add_partitions(topics[1], 2)
            _produce(cluster, records[400:])
            run_ready_made("mirror", **chosen)
        for topic in topics:
            assert contents(f"copy.{topic}", target) == [
                (partition._replace(topic=f"copy.{topic}"), record) for partition, record in contents(topic, source)
            ]

    return mirror


def _produce(cluster: Cluster, records: list[Generated]) -> None:
    with Producer(cluster) as producer:
        produce(records, producer)


def test_topics_are_copied_with_all_but_their_offsets(mirror, broker, another):
    mirror(broker.bootstrap, another)


def test_topics_are_copied_to_apache_kafka(mirror, broker, apache_kafka):
    mirror(broker.bootstrap, apache_kafka)


def test_topics_are_copied_from_apache_kafka(mirror, broker, apache_kafka):
    mirror(apache_kafka, broker.bootstrap)
