"""A broken invariant, planted in a real process: wherever it breaks, the process ends, loudly, and says what to do."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from zurau.api.kafka.handlers import HANDLERS
from zurau.broker.stop_mark import FILE as CLEAN_STOP_FILE
from zurau.node.broken import EXIT_CODE
from zurau.records.builder import NewRecord, build_batch
from zurau.testing import Broker
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.describe_cluster import DescribeClusterRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from tests.unit.node.conftest import RawClient

PATIENCE_S = 30

#: Each breaks in one place of a broker that is otherwise as users run it.
PLANTS = {
    "handler": """
        from zurau.api.kafka import describe_cluster
        async def handle(request, call):
            assert False, "planted"
        describe_cluster.handle = handle
    """,
    "handler that waited": """
        from zurau.api.kafka import describe_cluster
        async def handle(request, call):
            await call.broker.workers.run(lambda: None)
            assert False, "planted"
        describe_cluster.handle = handle
    """,
    "handler that waited for a commit": """
        from zurau.api.kafka import produce
        def answer(*_):
            assert False, "planted"
        produce._answer = answer
    """,
    "timer": """
        from zurau.api.kafka import describe_cluster
        def callback():
            assert False, "planted"
        async def handle(request, call):
            call.broker.clock.call_later(1, callback)
        describe_cluster.handle = handle
    """,
    "worker": """
        from zurau.api.kafka import describe_cluster
        def work():
            assert False, "planted"
        async def handle(request, call):
            call.broker.workers.run(work)
        describe_cluster.handle = handle
    """,
    "flush": """
        from zurau.node.disk import RealFile
        flush = RealFile.flush
        def planted(self):
            assert "victim" not in self.path, "planted"
            flush(self)
        RealFile.flush = planted
    """,
    "upkeep": """
        from zurau.log.log import Log
        def expire(self, *_):
            assert False, "planted"
        Log.expire = expire
    """,
    "start": """
        from zurau.broker.broker import Broker
        async def open(self):
            assert False, "planted"
        Broker.open = open
    """,
}


#: A record that has to be obeyed, as a later release may write it.
UNKNOWN_RECORD = """
        from zurau.api.kafka import describe_cluster
        from zurau.records.builder import NewRecord, build_batch
        async def handle(request, call):
            record = NewRecord(key=None, value=b"\\0\\x4d\\0\\0", timestamp=1_767_657_600_000)
            call.broker.metadata.partition.append_own(build_batch([record]))
        describe_cluster.handle = handle
"""


def serve_with(plant: str, directory: Path, planted: str = "") -> subprocess.Popen[str]:
    lines = [line.removeprefix(" " * 8) for line in (planted or PLANTS[plant]).splitlines()]
    program = "\n".join([*lines, "from zurau.cli.main import main", "main()"])
    command = [sys.executable, "-c", program, "serve", "--kafka", "127.0.0.1:0", "--dir", str(directory)]
    command += ["--log-retention-check-interval-ms", "100" if plant == "upkeep" else "300000"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def provoke(client: RawClient) -> None:
    """Ask for whatever the plant sits in. Not everything is answered: the process is gone."""
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="victim")], allow_auto_topic_creation=True), 4)
    client.ask(produce("victim"), 9)
    client.ask(DescribeClusterRequest(), 0)


def produce(topic: str) -> ProduceRequest:
    batch = bytes(build_batch([NewRecord(key=None, value=b"v", timestamp=1_767_657_600_000)]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data])


@pytest.mark.parametrize("plant", PLANTS)
def test_a_broken_invariant_ends_the_process_and_says_what_to_do(plant, tmp_path, connect_to):
    process = serve_with(plant, tmp_path / "data")
    ready = process.stdout.readline()
    if ready:
        port = int(ready.partition("kafka=127.0.0.1:")[2].split()[0])
        with suppress(ConnectionError):
            provoke(connect_to(SimpleNamespace(host="127.0.0.1", port=port)))
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == EXIT_CODE, said
    assert "AssertionError: planted" in said
    assert f"on disk in {tmp_path / 'data'}" in said
    assert "Start it again" in said
    assert not (tmp_path / "data" / CLEAN_STOP_FILE).exists()


def test_a_record_that_has_to_be_obeyed_and_is_not_known_ends_the_process(tmp_path, connect_to):
    process = serve_with("a record of a later release", tmp_path / "data", UNKNOWN_RECORD)
    port = int(process.stdout.readline().partition("kafka=127.0.0.1:")[2].split()[0])
    with suppress(ConnectionError):
        provoke(connect_to(SimpleNamespace(host="127.0.0.1", port=port)))
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == EXIT_CODE, said
    assert "start a release at least as new as the one that wrote it" in said
    assert "invariant" not in said
    again = serve_with("upkeep", tmp_path / "data")
    _, said = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 1, said
    assert "start a release at least as new as the one that wrote it" in said


def test_a_defect_that_breaks_no_invariant_costs_one_connection(zurau_broker, connect, monkeypatch):
    async def handle(request, call):
        raise KeyError("planted")

    monkeypatch.setitem(vars(HANDLERS[DescribeClusterRequest.api_key]), "handle", handle)
    client, other = connect(), connect()
    client.send(DescribeClusterRequest(), 0)
    assert client.is_closed_by_broker()
    assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_broker_in_a_test_raises_it_where_the_test_stops_it(connect_to, monkeypatch):
    async def handle(request, call):
        raise AssertionError("planted")

    monkeypatch.setitem(vars(HANDLERS[DescribeClusterRequest.api_key]), "handle", handle)
    broker = Broker().start()
    client = connect_to(broker)
    client.send(DescribeClusterRequest(), 0)
    assert client.is_closed_by_broker()
    with pytest.raises(AssertionError, match="planted"):
        broker.stop()
