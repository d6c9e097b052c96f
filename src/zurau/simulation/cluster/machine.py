"""A broker's machine: its power, its clock, and its streams to other machines. What is on it comes and goes with it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from zurau.ids import BrokerId
from zurau.replica.identity import PartitionId
from zurau.replica.messages import Message
from zurau.replica.session import Answer, Question
from zurau.replica.streams import Streams
from zurau.simulation.cluster.host import Host
from zurau.simulation.world import SeededRandomness

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World


class Machine:
    def __init__(self, world: World, broker: BrokerId) -> None:
        self._world = world
        self._chance = Random(f"machine {world.swarm.seed} {broker}")
        self.broker = broker
        #: The replicas' places, by partition; and those that clients find, by the number of the partition.
        self.hosts: dict[PartitionId, Host] = {}
        self.is_up = False
        #: Counts starts, so that what belongs to an earlier one is not heard any more.
        self.life = 0
        self.paused_until_ms = 0.0
        self.clock_ahead_ms = 0.0
        #: Moments at which the power goes: see `faults.CrashAt`.
        self.crash_at: str | None = None
        self.crash_down_ms = 0
        #: Whether it was always stopped in good order since a start that the controller has counted: one that was not
        #: counted does not make good what was lost before it.
        self.was_clean = True
        self.is_counted = False
        self.slow_flush_ms = 0
        self.is_full = False
        self.flush_fails = False
        #: The last start that the controller has confirmed, and those since. Written down before the broker says that
        #: it is alive; an old copy of the disk does not have the latest.
        self.starts: tuple[int, ...] = ()
        self.old_starts: tuple[int, ...] = ()
        self.streams = self._new_streams()
        self._wake_at_ms: float | None = None

    def _new_streams(self) -> Streams:
        return Streams(self._world.swarm.settings, SeededRandomness(self._chance.getrandbits(48)))

    # Coming and going

    def start(self) -> None:
        assert not self.is_up
        self.is_up = True
        self.is_counted = False
        self.life += 1
        self.old_starts = self.starts
        self.starts += (self.life,)
        self.streams = self._new_streams()
        self._wake_at_ms = None
        life = self.life
        for host in list(self.hosts.values()):
            if self.is_up and self.life == life:
                host.start()
        if self.is_up and self.life == life:
            self._world.started(self)  # a disk that is read may turn out to be somebody else's: not before

    def crash(self, *, loses: bool) -> None:
        self.is_up = False
        self.was_clean = not loses and (self.was_clean or self.is_counted)
        self.crash_at = None
        for host in self.hosts.values():
            host.crash(loses=loses)

    def place(self, host: Host) -> None:
        """Somebody has told it that there is such a partition."""
        self.hosts[host.partition] = host
        if self.is_up:
            host.start()

    def remove(self, host: Host) -> None:
        if self.hosts.pop(host.partition, None) is not None:
            host.crash(loses=False)
            self.streams.fail(host.partition)

    def host_of(self, number: int) -> Host | None:
        """Whom a client finds that knows the topic's name."""
        return next((host for host in reversed(self.hosts.values()) if host.partition.partition == number), None)

    # Saying and hearing

    @property
    def now_ms(self) -> int:
        """What its clock says."""
        return int(self._world.now_ms + self.clock_ahead_ms)

    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None:
        if self._world.swarm.is_coalesced:
            self.streams.send(to, partition, message)
            self._world.pump_soon(self)
        else:
            target = self._world.machine(to)
            self._world.network.send(self.broker, to, lambda: target.deliver(partition, message))

    def deliver(self, partition: PartitionId, message: Message) -> None:
        host = self.hosts.get(partition)
        if host is not None and host.is_up:
            host.receive(message)
        elif self.is_up:
            self.streams.fail(partition)

    def hear(self, sender: BrokerId, it: Question | Answer) -> None:
        if not self.is_up:
            return
        if self._world.now_ms < self.paused_until_ms:
            self._in_life(self.paused_until_ms, sender, it)
            return
        life = self.life
        said = self.streams.heard(sender, it, self.now_ms)
        for checker in self._world.stream_checkers:
            checker.hear(self, sender, it)
        for to, reply in self.streams.replies():
            self._world.say(self, to, reply)
        self._pass_on_notices()
        for partition, message in said:
            if self.life == life and self.is_up:
                self.deliver(partition, message)
        self._world.pump_soon(self)

    def hear_part(self, sender: BrokerId) -> None:
        """Of a large message: all of it comes later."""
        if self.is_up and self._world.now_ms >= self.paused_until_ms:
            self.streams.progressed(sender, self.now_ms)
            self._pass_on_notices()
            self._world.pump_soon(self)

    def _pass_on_notices(self) -> None:
        """What stands, and what stands no more: it must be known before something new is heard."""
        life = self.life
        for partition, event in self.streams.notices():
            host = self.hosts.get(partition)
            if self.life == life and self.is_up and host is not None:
                host.tell(event)

    def _in_life(self, at_ms: float, sender: BrokerId, it: Question | Answer) -> None:
        life, was_calm = self.life, self._world.is_calm

        def later() -> None:
            if (self.life, self._world.is_calm) == (life, was_calm):
                self.hear(sender, it)

        self._world.at(at_ms, later)

    def lose_connection(self, other: BrokerId) -> None:
        if self.is_up:
            self.streams.lost(other)
            self._world.pump_soon(self)

    def pump(self) -> None:
        """Send what there is to send, and come back when something is due."""
        world = self._world
        if not self.is_up:
            return
        if world.now_ms < self.paused_until_ms:
            self._wake(self.paused_until_ms)
            return
        self._pass_on_notices()
        for to, it in self.streams.due(self.now_ms):
            world.say(self, to, it)
        self._pass_on_notices()
        deadline_ms = self.streams.deadline_ms
        if deadline_ms is not None:
            self._wake(deadline_ms - self.clock_ahead_ms)

    def _wake(self, at_ms: float) -> None:
        if self._wake_at_ms is None or at_ms < self._wake_at_ms:
            self._wake_at_ms = at_ms
            life = self.life
            self._world.at(at_ms, lambda: self._woken(life, at_ms))

    def _woken(self, life: int, at_ms: float) -> None:
        if self.life == life and self._wake_at_ms == at_ms:
            self._wake_at_ms = None
            self._world.pump_soon(self)
