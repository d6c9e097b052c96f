"""The pytest plugin: a broker or a cluster of the test's own, and a Spark session for all; found without any import."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from zurau.errors import SettingsError

if TYPE_CHECKING:
    from zurau.testing.broker import Broker
    from zurau.testing.cluster import Cluster


#: Compiled little and collected simply: a session for small data starts twice as fast.
SPARK_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stopTimeout": "60s",
}


@pytest.fixture
def zurau_broker() -> Iterator[Broker]:
    """A fresh broker on a free port: `zurau_broker.bootstrap` is where to find it."""
    # Imported here: pytest loads this file in every project that has Zurau installed.
    from zurau.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def zurau_cluster() -> Iterator[Cluster]:
    """Three fresh brokers, each a process of its own: `zurau_cluster.bootstrap` is where to find them."""
    from zurau.testing.cluster import Cluster

    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def zurau_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session with `format("zurau")`, on this machine, for small data; one for the whole run of pytest."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
    settings = SPARK_SETTINGS | {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    # By its name, since nothing in Zurau needs Spark.
    package = importlib.import_module("pyspark_zurau")
    try:
        spark = package.session("zurau-tests", master="local[2]", settings=settings)
    except SettingsError as error:  # there is no Java
        pytest.skip(str(error))
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
