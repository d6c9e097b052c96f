"""What idle partitions cost three real brokers: `python bench/idle_cluster.py`.

Three `zurau serve` hold partitions with three replicas each, in both modes, and nobody writes to them. What is measured
is the CPU time of each broker while nothing happens: sessions and heartbeats go on, and that must be all. Flat means:
a thousand partitions cost what a few do.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import subjects
from measure import cpu_s, resident_bytes, show
from raw_clients import RawConnection
from subjects import ZurauBroker
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic

BROKERS = (1, 2, 3)
COUNTS = (2, 100, 1000)
SETTLE_S = 5
PATIENCE_S = 120
BUDGET_PERCENT = 2
_CREATE_VERSION, _METADATA_VERSION = 5, 9


@contextmanager
def cluster(root: Path) -> Iterator[list[ZurauBroker]]:
    peers = {broker: subjects.free_port() for broker in BROKERS}
    voters = ",".join(f"{broker}@127.0.0.1:{port}" for broker, port in peers.items())
    brokers = [ZurauBroker(root / str(each), node_id=each, quorum_voters=voters) for each in BROKERS]
    starts = [threading.Thread(target=each.start) for each in brokers]
    try:
        for start in starts:  # none is ready before all are there
            start.start()
        for start in starts:
            start.join()
        yield brokers
    finally:
        for broker in brokers:
            broker.stop()


def create(broker: ZurauBroker, topic: str, partitions: int, mode: str) -> None:
    """Make a topic, and wait until every partition is led."""
    client = RawConnection(broker.port)
    config = CreatableTopicConfig("replication.mode", mode)
    deadline = time.monotonic() + PATIENCE_S
    asked = CreateTopicsRequest(topics=[CreatableTopic(topic, partitions, len(BROKERS), configs=[config])])
    while True:  # not all brokers may have come yet
        answer = client.ask(asked, _CREATE_VERSION)
        if answer.topics[0].error_code == 0:  # type: ignore[attr-defined]
            break
        assert time.monotonic() < deadline, f"the topic is refused: {answer}"
        time.sleep(0.5)
    while True:
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), _METADATA_VERSION)
        found = answer.topics[0].partitions  # type: ignore[attr-defined]
        if len(found) == partitions and all(each.leader_id >= 0 for each in found):
            break
        assert time.monotonic() < deadline, "not every partition is led"
        time.sleep(0.5)
    client.close()


def percents(partitions: int, mode: str, idle_s: float) -> list[tuple[float, float]]:
    """For each broker: percent of a core, and megabytes."""
    with tempfile.TemporaryDirectory(prefix="zurau-bench-") as root, cluster(Path(root)) as brokers:
        create(brokers[0], "idle", partitions, mode)
        time.sleep(SETTLE_S)
        before = [cpu_s(broker.pid) for broker in brokers]
        time.sleep(idle_s)
        return [
            ((cpu_s(broker.pid) - used) / idle_s * 100, resident_bytes(broker.pid) / 1e6)
            for broker, used in zip(brokers, before, strict=True)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="idle for 5 s instead of 30")
    idle_s = 5.0 if parser.parse_args().quick else 30.0
    rows = {}
    for mode in ("quorum", "isr"):
        for count in COUNTS:
            found = percents(count, mode, idle_s)
            shares = sorted(share for share, _ in found)
            rows[f"{count:,} partitions, {mode}"] = [*shares, max(size for _, size in found)]
    show(
        "Idle partitions of three replicas, three real brokers",
        ["% of a core, least", "middle", "most", "MB, most"],
        rows,
        f"For each broker. Budget: {BUDGET_PERCENT} % for 1,000 partitions.",
    )


if __name__ == "__main__":
    main()
