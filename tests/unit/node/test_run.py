"""Starting where that cannot work, and stopping in the middle of work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from zurau.errors import SettingsError
from zurau.journal.reading import read_journal
from zurau.node.disk import RealDisk
from zurau.records.builder import NewRecord, build_batch
from zurau.testing import Broker
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PATIENCE_S = 30


def serve(directory: Path, *flags: str, python: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, *python, "-m", "zurau", "serve", "--kafka", "127.0.0.1:0", "--dir", str(directory)]
    return subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def refused(directory: Path, *flags: str, python: tuple[str, ...] = ()) -> str:
    """What a broker says that does not start."""
    process = serve(directory, *flags, python=python)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "Traceback" not in said
    return said


def test_a_port_that_is_taken_is_named_with_advice(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(SettingsError, match=rf"cannot listen on {address}.*choose another"):
            Broker(kafka=address, dir=str(tmp_path / "data")).start()


def test_a_directory_in_use_is_named_with_advice(tmp_path):
    with Broker(dir=str(tmp_path)), pytest.raises(SettingsError, match=r"another broker uses .* choose another --dir"):
        Broker(dir=str(tmp_path)).start()


def test_a_directory_can_be_used_again_after_a_start_that_failed(tmp_path):
    with Broker(dir=str(tmp_path), node_id=1):
        pass
    with pytest.raises(SettingsError, match="belongs to broker 1"):
        Broker(dir=str(tmp_path), node_id=2).start()
    with Broker(dir=str(tmp_path), node_id=1) as broker:
        assert broker.port


def test_a_file_in_place_of_the_directory_is_named_with_advice(tmp_path):
    (tmp_path / "file").write_text("")
    assert "choose another --dir" in refused(tmp_path / "file")


def test_a_directory_without_permission_is_named_with_advice(tmp_path):
    tmp_path.chmod(0o500)
    forbidden = Path("/sys") if os.geteuid() == 0 else tmp_path  # root may write nearly everywhere
    assert "choose another --dir" in refused(forbidden / "data")


def test_python_without_assertions_is_refused(tmp_path):
    assert "python -O removes the checks" in refused(tmp_path, python=("-O",))


def test_a_damaged_identity_is_one_line_of_advice_and_not_a_trace(tmp_path):
    (tmp_path / "meta.properties").write_bytes(b"\xff\xfe")
    assert "meta.properties is damaged: it has no line node.id=..." in refused(tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short\n")
    assert "the line directory.id=short is wrong" in refused(tmp_path)


def test_two_brokers_live_in_one_process():
    with Broker() as one, Broker() as other:
        assert one.port != other.port
        assert one.directory != other.directory


def test_a_signal_during_load_stops_cleanly_and_nothing_acknowledged_is_lost(tmp_path, connect_to):
    process = serve(tmp_path)
    assert process.stdout is not None
    port = int(process.stdout.readline().partition("kafka=127.0.0.1:")[2].split()[0])
    client = connect_to(SimpleNamespace(host="127.0.0.1", port=port))
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 4)
    acknowledged = 0
    with suppress(ConnectionError):
        while True:
            headers = [client.send(produce(), 9) for _ in range(20)]
            for header in headers:
                answer = client.receive(header).responses[0].partition_responses[0]
                acknowledged = max(acknowledged, answer.base_offset + 1)
            process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in said) == (0, False), said
    assert read_journal(RealDisk(tmp_path)).known.closed, "stopped in good order"
    with Broker(dir=str(tmp_path)) as broker:
        response = connect_to(broker).ask(fetch(acknowledged), 12)
        assert response.responses[0].partitions[0].high_watermark >= acknowledged >= 20


def produce() -> ProduceRequest:
    batch = bytes(build_batch([NewRecord(key=None, value=b"v", timestamp=1_767_657_600_000)]))
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data])


def fetch(offset: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=[wanted])])
