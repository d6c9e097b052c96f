"""Apache Kafka for the tests of this folder: one broker for the whole run, started when first asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests and benches import the harness by its plain name.
sys.path.insert(0, str(Path(__file__).parent))

from apache_kafka import ApacheKafka, Unavailable, classpath


@pytest.fixture(scope="session")
def kafka_classpath() -> str:
    """For tests that run Kafka's own tools; skips where they cannot run."""
    try:
        return classpath()
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def apache_kafka(kafka_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A running Apache Kafka broker."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        yield kafka
