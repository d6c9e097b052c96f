"""The example of Spark Declarative Pipelines, run twice as its README says: the second run reads what is new."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pytest.importorskip("grpc", reason="grpc is not installed: pip install 'pyspark[pipelines]'")
pytest.importorskip("yaml", reason="yaml is not installed: pip install 'pyspark[pipelines]'")

from standalone import HOME, run_patiently, small_jvm

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Broker

pytestmark = [pytest.mark.xdist_group("spark-declarative"), pytest.mark.timeout(3600)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"


def order(shop: str, price: float) -> bytes:
    return json.dumps({"shop": shop, "price": price}).encode()


def run(project: Path) -> None:
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": f"{small_jvm()} -Dderby.system.home={project}",
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = run_patiently([str(HOME / "bin" / "spark-pipelines"), "run", *options], cwd=project)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def revenue(project: Path) -> dict[str, tuple[int, float]]:
    import pyarrow.parquet as pq

    rows = pq.read_table(project / "spark-warehouse" / "revenue").to_pylist()
    return {row["shop"]: (row["orders"], row["total"]) for row in rows}


def test_a_project_reads_a_topic_keeps_a_view_and_writes_a_topic(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project)
    with Broker() as broker, Cluster(broker.bootstrap) as cluster, Producer(cluster) as producer:
        specification = project / "spark-pipeline.yml"
        text = specification.read_text().replace("127.0.0.1:9092", broker.bootstrap)
        specification.write_text(text.replace("/tmp/zurau-declarative", str(tmp_path)))
        for topic in ("orders", "large-orders"):
            Admin(cluster).create_topic(NewTopic(topic, 1))
        for value in (order("a", 120), order("b", 3.5), order("a", 30)):
            producer.send("orders", value)
        producer.flush()
        run(project)
        assert revenue(project) == {"a": (2, 150.0), "b": (1, 3.5)}
        producer.send("orders", order("b", 100))
        producer.flush()
        run(project)
        assert revenue(project) == {"a": (2, 150.0), "b": (2, 103.5)}
        with Consumer(cluster) as consumer:
            consumer.assign({TopicPartition("large-orders", 0): 0})
            large = [record for some in consumer.poll(10) for record in some.records]
    assert [(record.key, json.loads(record.value)["price"]) for record in large] == [(b"a", 120.0), (b"b", 100.0)]
