"""Topics come and go while others are in use."""

from __future__ import annotations

import socket
import struct
import threading

from broker_process import ZurauBroker
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

QUIET = {"log_level": 0, "linger.ms": 0}
TIMES = 20


class Writer(threading.Thread):
    """Writes to one topic, record by record, until told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.is_stuck = False
        self.enough = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, **QUIET})

    def run(self) -> None:
        while not self.enough.is_set() and not self.is_stuck:
            self._producer.produce(self.topic, b"x" * 100)
            self.is_stuck = self._producer.flush(20) > 0


def test_deleting_a_topic_that_was_just_written_disturbs_no_other(bootstrap, topic):
    """Its flush may be under way in a thread at that moment."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    writer = Writer(bootstrap, topic)
    writer.start()
    for _ in range(TIMES):
        name = f"{topic}-passing"
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=20)
        producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, **QUIET})
        producer.produce(name, b"gone in a moment")
        assert producer.flush(20) == 0
        admin.delete_topics([name])[name].result(timeout=20)
    writer.enough.set()
    writer.join(30)
    assert not writer.is_stuck
    assert not writer.is_alive()


def test_a_topic_made_again_under_its_name_begins_at_zero(bootstrap, topic):
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for _ in range(5):
        offsets: list[int] = []
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
        producer.produce(topic, b"first", on_delivery=lambda _, message, into=offsets: into.append(message.offset()))
        assert producer.flush(20) == 0
        assert offsets == [0]
        admin.delete_topics([topic])[topic].result(timeout=20)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=20)


def test_connections_reset_at_once_leave_no_trace(tmp_path):
    """As port scanners and load balancers make them; the broker may have accepted one that is gone already."""
    with ZurauBroker(tmp_path, max_connections=5) as broker:
        for _ in range(60):
            passing = socket.create_connection(("127.0.0.1", broker.port))
            passing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            passing.close()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        assert admin.list_topics(timeout=20).brokers
        assert "Traceback" not in broker.log.read_text()
