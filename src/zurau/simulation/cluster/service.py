"""What clients get from one replica: their records are taken in and acknowledged when they are committed, and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zurau.errors import Refused
from zurau.ids import Epoch, Offset
from zurau.replica.core.effects import Append, Effect, Refuse
from zurau.replica.core.events import RecordsOffered, ShutdownAsked, TimePassed
from zurau.replica.core.items import Batch
from zurau.replica.core.reading import Reading, reading
from zurau.simulation.cluster.snapshots import header
from zurau.simulation.cluster.storage import DamagedBatch

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import Host

#: At most so many batches in one answer.
READ_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Waiting:
    """A client that wants to hear when its record is committed."""

    offset: Offset
    client: int
    value: bytes
    epoch: Epoch


class Service:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: list[Waiting] = []

    def forget(self) -> None:
        """Whoever waits hears nothing, and tries again."""
        self._waiting = []

    def offer(self, client: int, value: bytes) -> None:
        host = self._host
        if host.is_paused:
            host.on_the_same_day(lambda: self.offer(client, value))
            return
        if host.node.is_full and host.leads:
            host.group.acknowledge(host, client, value, None)
            host.tell(ShutdownAsked())  # somebody else may have room
            return
        host.tell(TimePassed())
        if host.leads and self._is_repeated(client, value):
            return
        for effect in host.tell(RecordsOffered(value, 1)):
            self._note(effect, client, value)
        self.acknowledge()

    def _note(self, effect: Effect, client: int, value: bytes) -> None:
        host = self._host
        if isinstance(effect, Append) and host.replica is not None and effect.items[-1].epoch == host.replica.epoch:
            self._waiting.append(Waiting(host.replica.log.end_offset, client, value, host.replica.epoch))
        elif isinstance(effect, Refuse):
            host.group.acknowledge(host, client, value, None)

    def _is_repeated(self, client: int, value: bytes) -> bool:
        """It was written before, or comes too early or too late. Whoever asked hears so when that is committed."""
        host = self._host
        assert host.replica is not None
        try:
            written = host.memory.producers.find_repeated(header(value))
        except Refused:
            host.group.acknowledge(host, client, value, None)
            return True
        if written is None:
            return False
        self._waiting.append(Waiting(written.base_offset + 1, client, value, host.replica.epoch))
        self.acknowledge()
        return True

    def acknowledge(self) -> None:
        """Those whose records are committed by now hear so."""
        replica = self._host.replica
        if replica is None or not self._waiting:
            return
        done = [each for each in self._waiting if each.offset <= replica.high_watermark]
        if done:
            self._waiting = [each for each in self._waiting if each.offset > replica.high_watermark]
            for each in done:
                self._host.group.acknowledge(self._host, each.client, each.value, each.offset)

    def read(self, offset: Offset, known_epoch: Epoch) -> tuple[Reading, tuple[Batch, ...]] | None:
        """What a consumer gets; None when nobody is there to answer."""
        host = self._host
        if host.is_paused:
            return None
        host.tell(TimePassed())
        if host.replica is None:
            return None
        answer = reading(host.replica, offset, known_epoch)
        if answer is not Reading.RECORDS:
            return answer, ()
        try:
            return answer, host.disk.seen.read(offset, host.replica.high_watermark, READ_BATCHES)
        except DamagedBatch:
            host.break_down_damaged()
            return None
