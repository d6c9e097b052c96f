"""Kafka's own tool reads our segment files, indexes and compacted batches, and finds nothing wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from apache_kafka import run_tool
from broker_process import ZurauBroker
from driver import CLIENTS

from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.node.disk import RealDisk
from zurau.records.batch import stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression

NOW_MS = 1_700_000_000_000
SETTINGS = LogSettings(segment_bytes=30_000, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)


def fill(log: Log, batch_count: int) -> None:
    """Batches of five records in every codec, of few keys, some of them tombstones."""
    for number in range(batch_count):
        records = [
            NewRecord(
                b"key %d" % ((number * 7 + n) % 60), None if n == 0 else bytes(80), [("h", b"x")], NOW_MS + number
            )
            for n in range(5)
        ]
        batch = build_batch(records, compression=number % len(Compression), producer_id=1, base_sequence=5 * number)
        log.append(batch, stamp(batch, log.end_offset, number // 50))


def flush(log: Log) -> None:
    while (work := log.begin_flush()) is not None:
        work()
        log.flush_done()


@pytest.fixture(params=["as written", "compacted"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    log = Log.open(RealDisk(tmp_path), "topic-0", SETTINGS, now_ms=NOW_MS, clean=True)
    fill(log, 300)
    flush(log)
    if request.param == "compacted":
        job = log.plan_compaction(NOW_MS + 10_000, log.end_offset)
        assert job is not None
        job.run()
        log.finish_compaction(job)
    log.close()
    return tmp_path / "topic-0"


@pytest.mark.usefixtures("kafka_classpath")
def test_kafkas_dump_tool_agrees_with_every_file(directory):
    files = sorted(str(path) for path in directory.iterdir() if path.suffix in {".log", ".index", ".timeindex"})
    outcome = run_tool("DumpLogSegments", "--deep-iteration", "--files", ",".join(files))
    batches = re.findall(r"^baseOffset: .* isvalid: (\w+)", outcome.stdout, re.MULTILINE)
    assert outcome.returncode == 0, outcome.stderr
    assert len(batches) > 20
    assert set(batches) == {"true"}
    assert "ismatch" not in outcome.stdout + outcome.stderr
    assert len({*re.findall(r"Dumping (\S+)", outcome.stdout)}) == len(files)


@pytest.mark.usefixtures("kafka_classpath")
def test_dumping_the_files_of_a_running_broker_does_it_no_harm(tmp_path):
    """Kafka's tool makes an index of its own where it finds none, and leaves it behind."""
    (client, *_) = CLIENTS
    with ZurauBroker(tmp_path) as broker:
        client.run("produce", broker.bootstrap, topic="dumped", count=200)
        segment = tmp_path / "data" / "dumped-0" / "00000000000000000000.log"
        outcome = run_tool("DumpLogSegments", "--print-data-log", "--files", str(segment))
        assert outcome.stdout.count("payload: value-") == 200, outcome.stderr
        client.run("produce", broker.bootstrap, topic="dumped", count=200)
        for stop in (broker.stop, broker.kill):
            stop()
            broker.start()
            records = client.run("consume", broker.bootstrap, topic="dumped", count=400)["records"]
            assert [record["offset"] for record in records] == list(range(400))
