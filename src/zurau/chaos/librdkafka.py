"""A producer that is not ours: librdkafka, if `confluent-kafka` is installed."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Sequence
from typing import Any

from zurau.chaos.history import History, value_of
from zurau.chaos.load import PADDING, WAITING_MAX, Acknowledgement, Client, Pace
from zurau.ids import TopicPartition

#: What matters when brokers fail. By default a request may take a minute, and a hung broker is not noticed sooner.
SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 0,
    "socket.timeout.ms": 2000,
    "reconnect.backoff.max.ms": 500,
    "message.timeout.ms": 600_000,
    "log_level": 0,
}
STOP_S = 60.0


def is_installed() -> bool:
    return importlib.util.find_spec("confluent_kafka") is not None


class LibrdkafkaProducer(Client):
    kind = "librdkafka"

    def __init__(
        self, number: int, bootstrap: str, partitions: Sequence[TopicPartition], history: History, pace: Pace
    ) -> None:
        super().__init__(f"once-librdkafka{number}", history)
        self.bootstrap = bootstrap
        self._pace = pace
        self._made = 0
        self._waiting = dict.fromkeys(partitions, 0)
        self.acknowledgements: dict[TopicPartition, list[Acknowledgement]] = {each: [] for each in partitions}

    def work(self) -> None:
        library: Any = importlib.import_module("confluent_kafka")
        producer = library.Producer({"bootstrap.servers": self.bootstrap, "client.id": self.name, **SETTINGS})
        next_s = time.monotonic()
        while not self.stopping.is_set():
            if time.monotonic() >= next_s:
                next_s = max(next_s + self._pace.interval_s, time.monotonic())
                self._write(producer)
            producer.poll(max(0.0, next_s - time.monotonic()))
        producer.flush(STOP_S)

    def _write(self, producer: Any) -> None:
        for partition, waiting in self._waiting.items():
            if waiting < WAITING_MAX:
                value = value_of(self.name, self._made, PADDING)
                self._made += 1
                self._waiting[partition] += 1
                producer.produce(partition.topic, value, partition=partition.partition, on_delivery=self._delivered)

    def _delivered(self, error: Any, message: Any) -> None:
        partition = TopicPartition(message.topic(), message.partition())
        self._waiting[partition] -= 1
        if error is not None:
            self.history.count("given up")
            return
        if message.offset() is None:
            # Its answer was lost, and a later batch of the same producer acknowledged: it is stored, who knows where.
            self.history.acknowledged_somewhere(partition, message.value())
            return
        self.acknowledgements[partition].append(Acknowledgement(time.monotonic(), message.offset()))
        self.history.acknowledged(partition, message.offset(), [message.value()])
