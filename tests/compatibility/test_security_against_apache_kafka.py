"""TLS and SASL, with an Apache Kafka that insists on them: the client, the command line and the Spark source."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import certificates as made
import pytest
from apache_kafka import ApacheKafka, run_tool
from certificates import Certificates

from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import NotTrusted
from zurau.client.producer import Producer
from zurau.client.security import parse_security
from zurau.testing import Broker

pytestmark = pytest.mark.xdist_group("apache-kafka-secured")

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = 'open, "sesame"'


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    try:
        return made.make_certificates(tmp_path_factory.mktemp("certificates"))
    except made.Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka(kafka_classpath: str, certificates: Certificates, tmp_path_factory) -> Iterator[ApacheKafka]:
    """Listens for every protocol: SSL asks for a certificate, the two of SASL for a password."""
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    escaped = PASSWORD.replace('"', '\\\\"')
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        settings[f"{prefix}.plain.sasl.jaas.config"] = f'{PLAIN_MODULE} required user_alice="{escaped}";'
        for mechanism in MECHANISMS[1:]:
            settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    protocols = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
    directory = tmp_path_factory.mktemp("secured")
    with ApacheKafka(directory, settings=settings, protocols=protocols) as kafka:
        for mechanism in MECHANISMS[1:]:
            what = (
                "--add-config",
                f"{mechanism}=[password=sesame]",
                "--entity-type",
                "users",
                "--entity-name",
                "alice",
            )
            changed = run_tool("ConfigCommand", "--bootstrap-server", kafka.bootstrap, "--alter", *what)
            assert changed.returncode == 0, changed.stderr
        yield kafka


@pytest.fixture
def properties(kafka: ApacheKafka, certificates: Certificates):
    """Settings for a client, as its user would write them."""

    def properties(protocol: str, mechanism: str = "", password: str | None = None) -> dict[str, str]:
        given = {"bootstrap.servers": kafka.listener(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.authority)}
        if protocol == "SSL":
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates.client)}
        if mechanism:
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            secret = password or (PASSWORD if mechanism == "PLAIN" else "sesame")
            secret = secret.replace('"', '\\"')
            given["sasl.mechanism"] = mechanism
            given["sasl.jaas.config"] = f'{module} required username="alice" password="{secret}";'
        return given

    return properties


ALL = [("SSL", ""), *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS), ("SASL_SSL", "SCRAM-SHA-512")]


@pytest.mark.parametrize(("protocol", "mechanism"), ALL)
def test_records_are_written_and_read(properties, protocol, mechanism):
    given, topic = properties(protocol, mechanism), f"topic-{uuid.uuid4().hex[:8]}"
    values = [b"%d" % number * 200 for number in range(5000)]
    with Cluster(given["bootstrap.servers"], security=parse_security(given)) as cluster:
        with Producer(cluster) as producer:
            for value in values:
                producer.send(topic, value)
        found: list[bytes] = []
        with Consumer(cluster) as consumer:
            consumer.assign(dict.fromkeys(cluster.partitions_of(topic), 0))
            while len(found) < len(values):
                found += [record.value for some in consumer.poll(5) for record in some.records]
    assert found == values


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_at_once(properties, mechanism):
    given = properties("SASL_PLAINTEXT", mechanism, password="wrong")
    with (
        Cluster(given["bootstrap.servers"], security=parse_security(given)) as cluster,
        pytest.raises(NotTrusted, match="did not let 'alice' in"),
    ):
        cluster.refresh()


def test_a_client_without_a_certificate_is_told_what_is_missing(properties):
    given = {name: value for name, value in properties("SSL").items() if "keystore" not in name}
    with (
        Cluster(given["bootstrap.servers"], security=parse_security(given), timeout_s=10) as cluster,
        pytest.raises(NotTrusted, match=r"ssl\.keystore\.location"),
    ):
        cluster.refresh()


def write_properties(file: Path, given: dict[str, str]) -> Path:
    lines = {name: value.replace("\\", "\\\\") for name, value in given.items()}
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return file


def zurau(*arguments: str | Path, stdin: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name != "ZURAU_BOOTSTRAP"}
    command = [sys.executable, "-m", "zurau", *map(str, arguments)]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_takes_a_file_of_settings(properties, tmp_path):
    file = write_properties(tmp_path / "client.properties", properties("SASL_SSL", "SCRAM-SHA-256"))
    zurau("--client-config", file, "produce", "by-command", stdin="a\nb\n")
    read = zurau("--client-config", file, "consume", "by-command", "--from-beginning", "--until-end")
    assert read == "a\nb\n"


@pytest.mark.timeout(400)
def test_the_mirror_makes_topics_and_copies_records_where_it_has_to_log_in(properties, tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
    given = properties("SASL_SSL", "SCRAM-SHA-256")
    file = write_properties(tmp_path / "client.properties", given)
    parameters = {
        "target": given["bootstrap.servers"],
        "target_config": file,
        "topics": "mirrored",
        "prefix": "copy.",
        "checkpoint": tmp_path / "checkpoint",
    }
    with Broker() as source:
        zurau("topic", "create", "mirrored", "--partitions", "3", "--bootstrap", source.bootstrap)
        zurau("produce", "mirrored", "--bootstrap", source.bootstrap, stdin="a\nb\nc\n")
        settings = [f"{name}={value}" for name, value in {"source": source.bootstrap, **parameters}.items()]
        zurau("pipeline", "run", "mirror", "--once", *(word for one in settings for word in ("--set", one)))
    read = zurau("--client-config", file, "consume", "copy.mirrored", "--from-beginning", "--until-end")
    assert sorted(read.splitlines()) == ["a", "b", "c"]
    with Cluster(given["bootstrap.servers"], security=parse_security(given)) as cluster:
        assert len(cluster.partitions_of("copy.mirrored")) == 3


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_SSL", "PLAIN")])
def test_the_spark_source_and_sink_pass_the_settings_on(properties, protocol, mechanism):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
    types = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed: pip install 'zurau[spark]'")
    from pyspark_zurau.arrow.columns import topic_schema
    from pyspark_zurau.options.read_options import parse_batch_options
    from pyspark_zurau.options.values import Values
    from pyspark_zurau.reading.batch import BatchReader
    from pyspark_zurau.writing.sink import parse_write_options, write_rows

    topic = f"topic-{uuid.uuid4().hex[:8]}"
    options = {f"kafka.{name}": value for name, value in properties(protocol, mechanism).items()}
    schema = types.StructType().add("value", types.StringType())
    sink = parse_write_options(Values(options | {"topic": topic}), schema, overwrite=False)
    write_rows(sink, iter([pa.record_batch({"value": ["a", "b"]})]))
    reader = BatchReader(parse_batch_options(Values(options | {"subscribe": topic})), topic_schema(with_headers=False))
    rows = [row["value"] for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert rows == [b"a", b"b"]
