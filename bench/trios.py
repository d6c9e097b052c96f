"""Three brokers of Zurau, and three of Apache Kafka, with the same flush policy on both sides.

What is acknowledged is on three machines' page caches (Kafka's default; in Zurau `isr` with `flush=os`), or on the
disks of as many as commit it (Kafka with `flush.messages=1`; in Zurau `quorum` with `flush=fsync`, the default).
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from subjects import KAFKA_JVM, ApacheKafka, ZurauBroker, free_ports

BROKERS = (1, 2, 3)
#: For each subject, the settings of its topics.
TOPICS: dict[str, Mapping[str, str]] = {
    "zurau, isr, flush=os": {"replication.mode": "isr", "min.insync.replicas": "2"},
    "Apache Kafka": {"min.insync.replicas": "2"},
    "zurau, quorum, flush=fsync": {"replication.mode": "quorum"},
    "Apache Kafka, flush.messages=1": {"min.insync.replicas": "2", "flush.messages": "1"},
}


@dataclass(frozen=True)
class Trio:
    """Three brokers that take requests."""

    name: str
    bootstrap: str
    #: By broker id.
    pids: Mapping[int, int]

    def kill(self, broker: int) -> None:
        os.kill(self.pids[broker], signal.SIGKILL)

    def make_topic(self, name: str, partitions: int) -> None:
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic(name, partitions, len(BROKERS), config=dict(TOPICS[self.name]))
        deadline = time.monotonic() + 60
        while True:
            (made,) = admin.create_topics([topic], operation_timeout=60, request_timeout=60).values()
            try:
                made.result(timeout=60)
            except KafkaException as refused:
                code = refused.args[0].code()
                if code == KafkaError.TOPIC_ALREADY_EXISTS:
                    return  # it was made the time before
                # On a busy machine the controller may change just then, and nobody knows whether it was made.
                if code != KafkaError.NOT_CONTROLLER or time.monotonic() > deadline:
                    raise
            else:
                return

    def leader_of(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Its id and its port."""
        from confluent_kafka.admin import AdminClient

        metadata = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(topic, timeout=30)
        leader = metadata.brokers[metadata.topics[topic].partitions[partition].leader]
        return leader.id, leader.port


@contextmanager
def running(name: str) -> Iterator[Trio]:
    """On empty directories, which are removed at the end: so brokers are killed and need not hand anything over."""
    with tempfile.TemporaryDirectory(prefix="zurau-bench-") as root, ExitStack() as stack:
        brokers = (_zurau if name.startswith("zurau") else _kafka)(name, Path(root))
        for broker in brokers.values():
            stack.callback(broker.kill)
        _all_at_once([broker.start for broker in brokers.values()])
        bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
        yield Trio(name, bootstrap, {number: broker.pid for number, broker in brokers.items()})


def _zurau(name: str, root: Path) -> dict[int, ZurauBroker | ApacheKafka]:
    ports = dict(zip(BROKERS, free_ports(len(BROKERS)), strict=True))
    join = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    flush = name.rpartition("=")[2]
    return {
        number: ZurauBroker(root / str(number), node_id=number, peer=f"127.0.0.1:{port}", join=join, flush=flush)
        for number, port in ports.items()
    }


def _kafka(_: str, root: Path) -> dict[int, ZurauBroker | ApacheKafka]:
    controllers = dict(zip(BROKERS, free_ports(len(BROKERS)), strict=True))
    replicated = {"offsets.topic.replication.factor": "3", "default.replication.factor": "3"}
    return {
        number: ApacheKafka(
            root / str(number),
            settings=replicated,
            jvm_options=KAFKA_JVM,
            node_id=number,
            controllers=controllers,
        )
        for number in BROKERS
    }


def _all_at_once(starts: list[Callable[[], None]]) -> None:
    """None is ready before a majority is there."""
    threads = [threading.Thread(target=start) for start in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
