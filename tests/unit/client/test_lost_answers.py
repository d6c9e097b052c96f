"""What is asked again because its answer was lost is done once: batches, and topics made and deleted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import BrokerRefused, UnknownTopic
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Broker
from zurau.wire.kafka.apis import APIS

PRODUCE, CREATE, DELETE = (
    next(key for key, api in APIS.items() if api.name == name) for name in ("Produce", "CreateTopics", "DeleteTopics")
)


class ForgetfulProxy:
    """Stands before a broker and, when told, swallows the next answer to a change and hangs up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target_port = 0
        self.answers_to_lose = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        """Our client waits for each answer on a connection, so requests and answers alternate."""
        with client, socket.create_connection(("127.0.0.1", self.target_port)) as broker:
            while frame := read_frame(client):
                broker.sendall(frame)
                answer = read_frame(broker)
                if int.from_bytes(frame[4:6], "big") in (PRODUCE, CREATE, DELETE) and self.answers_to_lose:
                    self.answers_to_lose -= 1
                    return
                client.sendall(answer)


def read_frame(connection: socket.socket) -> bytes:
    """A frame with its size; empty when the other side hung up."""
    try:
        size = connection.recv(4, socket.MSG_WAITALL)
        return size + connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL) if size else b""
    except OSError:
        return b""


@pytest.fixture
def proxy() -> Iterator[ForgetfulProxy]:
    proxy = ForgetfulProxy()
    with Broker(advertise=f"127.0.0.1:{proxy.port}") as broker:
        proxy.target_port = broker.port
        yield proxy
    proxy.close()


def test_a_batch_whose_answer_was_lost_is_stored_once(proxy):
    with Cluster(f"127.0.0.1:{proxy.port}", timeout_s=10) as cluster:
        proxy.answers_to_lose = 2
        with Producer(cluster) as producer:
            deliveries = [producer.send("t", b"%d" % number, partition=0) for number in range(3)]
        with Consumer(cluster) as consumer:
            consumer.assign({TopicPartition("t", 0): 0})
            (read,) = consumer.poll(5)
    assert proxy.answers_to_lose == 0
    assert [record.value for record in read.records] == [b"0", b"1", b"2"]
    assert [delivery.offset for delivery in deliveries] == [0, 1, 2]


def test_a_topic_whose_answer_was_lost_is_made_and_deleted_all_the_same(proxy):
    with Cluster(f"127.0.0.1:{proxy.port}", timeout_s=10) as cluster:
        admin = Admin(cluster)
        proxy.answers_to_lose = 1
        assert admin.create_topic(NewTopic("t", partition_count=3)).name == "t"
        with pytest.raises(BrokerRefused, match="already exists"):
            admin.create_topic(NewTopic("t", partition_count=3))
        proxy.answers_to_lose = 1
        admin.delete_topic("t")
        with pytest.raises(UnknownTopic):
            admin.delete_topic("t")
    assert proxy.answers_to_lose == 0
