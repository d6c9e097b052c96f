"""Consumers that read from the beginning, at leaders and followers, and go where they are sent."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from zurau.ids import Epoch, Offset
from zurau.replica.reading import Reading
from zurau.simulation.cluster.history import ReadChecker

if TYPE_CHECKING:
    from zurau.simulation.cluster.cluster import Cluster
    from zurau.simulation.cluster.host import Host

_TIMEOUT_MS = 300
#: How soon it asks for more when there was something.
_NEXT_MS = 10


class Consumer:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._chance = Random(f"consumer {cluster.swarm.mode} {cluster.swarm.seed}")
        self._poll_ms = self._chance.choice([40, 150])
        self._attempt = 0
        self._broker = cluster.broker_ids[0]
        #: Where it reads next, and the epoch of the latest leader that it has heard of.
        self.offset: Offset = 0
        self._epoch: Epoch = -1

    def poll(self) -> None:
        """Ask, and ask somebody else when nothing comes back."""
        cluster = self._cluster
        self._attempt += 1
        attempt, offset, epoch, host = self._attempt, self.offset, self._epoch, cluster.host(self._broker)
        cluster.network.send(-1, host.broker, lambda: self._served(host, attempt, offset, epoch))
        cluster.at(cluster.now_ms + _TIMEOUT_MS, lambda: self._ask_another(attempt))

    def _served(self, host: Host, attempt: int, offset: Offset, epoch: Epoch) -> None:
        served = host.serve(offset, epoch)
        if served is None or host.replica is None:
            return
        answer, batches = served
        for checker in self._cluster.all_checkers:
            if isinstance(checker, ReadChecker):
                checker.served(host, offset, answer, batches)
        upto = batches[-1].next_offset if batches else offset
        if answer is Reading.OUT_OF_RANGE:
            upto = host.replica.log.start_offset
        known = host.replica.epoch
        self._cluster.network.send(host.broker, -1, lambda: self._answered(attempt, answer, upto, known))

    def _answered(self, attempt: int, answer: Reading, upto: Offset, epoch: Epoch) -> None:
        if attempt != self._attempt:
            return  # it has asked again since
        if answer is Reading.ASK_ANOTHER:
            self._attempt += 1
            self._cluster.at(self._cluster.now_ms + self._poll_ms, self._poll_another)
            return
        self.offset, self._epoch = upto, max(epoch, self._epoch)
        self._attempt += 1
        if self._chance.random() < 0.3:
            self._broker = self._chance.choice(self._cluster.broker_ids)
        pause_ms = _NEXT_MS if answer is Reading.RECORDS else self._poll_ms
        self._cluster.at(self._cluster.now_ms + pause_ms, self.poll)

    def _ask_another(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._poll_another()

    def _poll_another(self) -> None:
        self._broker = self._chance.choice(self._cluster.broker_ids)
        self.poll()
