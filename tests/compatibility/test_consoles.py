"""What consoles and Kafka's tools ask through the Java AdminClient, answered by us and by Apache Kafka side by side."""

from __future__ import annotations

import pytest
from apache_kafka import ApacheKafka
from broker_process import ZurauBroker
from driver import available, named

# One Apache Kafka is enough, however many workers run the tests.
pytestmark = pytest.mark.xdist_group("apache-kafka")

TOPIC = "of-the-console"

#: Where we answer otherwise, and what; docs/compatibility.md says why.
INTENDED = {
    "features": {"metadata.version": 7, "zurau.version": 2},
    "group_settings": [],
    "metrics_settings": [],
    "set_group": "INVALID_CONFIG",
    "set_metrics": "INVALID_REQUEST",
    "set_quota": "INVALID_REQUEST",
    "set_password": "UNSUPPORTED_SASL_MECHANISM",
    "raise_feature": "INVALID_UPDATE_VERSION",
}


@pytest.fixture(scope="module")
def answers(kafka_classpath, tmp_path_factory):
    (java,) = named("java")
    java = available(java)
    # One of its own: the console sets quotas and passwords, which other tests would find there.
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        theirs = java.run("console", kafka.bootstrap, topic=TOPIC)
    with ZurauBroker(tmp_path_factory.mktemp("zurau")) as broker:
        return java.run("console", broker.bootstrap, topic=TOPIC), theirs


def test_consoles_are_answered_as_by_kafka(answers):
    ours, theirs = answers
    assert {name: ours[name] for name in ours if name not in INTENDED} == {
        name: theirs[name] for name in theirs if name not in INTENDED
    }


def test_what_is_answered_otherwise_is_what_was_intended(answers):
    ours, theirs = answers
    assert {name: ours[name] for name in INTENDED} == INTENDED
    assert not [name for name in INTENDED if ours[name] == theirs[name]]
