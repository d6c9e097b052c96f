"""A consumer that reads one topic from the beginning, at leaders and followers, and goes where it is sent."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from zurau.ids import Epoch, Offset
from zurau.replica.core.reading import Reading
from zurau.simulation.cluster.history import ReadChecker

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import Host
    from zurau.simulation.cluster.replica_group import ReplicaGroup
    from zurau.simulation.cluster.world import World

_TIMEOUT_MS = 300
#: How soon it asks for more when there was something.
_NEXT_MS = 10


class Consumer:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(f"consumer {world.swarm.mode} {world.swarm.seed}")
        self._number = self._rng.randrange(world.swarm.partitions)
        self._poll_ms = self._rng.choice([40, 150])
        self._attempt = 0
        self._broker = world.broker_ids[0]
        self._group = world.current[self._number]
        #: Where it reads next, and the epoch of the latest leader that it has heard of.
        self.offset: Offset = 0
        self._epoch: Epoch = -1

    @property
    def has_read_everything(self) -> bool:
        return self._group is self._world.current[self._number] and self.offset == self._group.history.end

    def poll(self) -> None:
        """Ask, and ask somebody else when nothing comes back."""
        world = self._world
        self._attempt += 1
        if world.current[self._number] is not self._group:
            self._begin(world.current[self._number])  # the topic was made again
        attempt, offset, epoch, host = self._attempt, self.offset, self._epoch, self._group.host(self._broker)
        world.network.send(-1, host.broker, lambda: self._served(host, attempt, offset, epoch))
        world.at(world.now_ms + _TIMEOUT_MS, lambda: self._ask_another(attempt))

    def _begin(self, group: ReplicaGroup) -> None:
        self._group, self.offset, self._epoch = group, 0, -1

    def _served(self, host: Host, attempt: int, offset: Offset, epoch: Epoch) -> None:
        served = host.service.read(offset, epoch)
        if served is None or host.replica is None:
            return
        answer, batches = served
        for checker in host.group.all_checkers:
            if isinstance(checker, ReadChecker):
                checker.served(host, offset, answer, batches)
        upto = batches[-1].next_offset if batches else offset
        if answer is Reading.OUT_OF_RANGE:
            upto = host.replica.log.start_offset
        known = host.replica.epoch
        self._world.network.send(host.broker, -1, lambda: self._answered(attempt, answer, upto, known))

    def _answered(self, attempt: int, answer: Reading, upto: Offset, epoch: Epoch) -> None:
        if attempt != self._attempt:
            return  # it has asked again since
        self._attempt += 1
        if answer is Reading.ASK_ANOTHER:
            self._world.at(self._world.now_ms + self._poll_ms, self._poll_another)
            return
        self.offset, self._epoch = upto, max(epoch, self._epoch)
        if self._rng.random() < 0.3:
            self._broker = self._rng.choice(self._world.broker_ids)
        pause_ms = _NEXT_MS if answer is Reading.RECORDS else self._poll_ms
        self._world.at(self._world.now_ms + pause_ms, self.poll)

    def _ask_another(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._poll_another()

    def _poll_another(self) -> None:
        self._broker = self._rng.choice(self._world.broker_ids)
        self.poll()
