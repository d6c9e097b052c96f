"""A network between brokers, as streams of bytes that a test or a seed decides on.

The brokers' own code runs on it (`broker/peers`): it is cut into frames, greets, dials again, gives up. Bytes arrive in
order and in pieces of any size, or stop to arrive in one direction, or the stream breaks with part of a frame
underway, and each side notices that when it notices. What is sent is looked at when it arrives, as by a system that has
only taken references: whoever changes it meanwhile is found out.

    network = PeerNetwork(agenda, Random(seed))
    peers = network.start(BrokerId(1), perform, lambda dial: PeerConnections(..., dial, ...))
    network.stall((1, 2)); network.mend((1, 2)); network.reset(1, 2); network.stop(BrokerId(1))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Protocol

from zurau.broker.peers.connection import PeerConnection
from zurau.broker.peers.connections import Address, PeerConnections
from zurau.ids import BrokerId
from zurau.ports import Buffer
from zurau.settings import KIB

#: What a broker's system takes before anything stays in the broker's own memory.
SYSTEM_BYTES = 64 * KIB

Pair = tuple[int, int]
Act = Callable[[], None]
Perform = Callable[[Act], None]
Dial = Callable[[Address, PeerConnection], None]


class Agenda(Protocol):
    @property
    def now_ms(self) -> float: ...

    def at(self, at_ms: float, act: Act) -> None: ...


def address_of(broker: BrokerId) -> Address:
    """Where a broker listens."""
    return f"broker-{broker}", 9095


class Host:
    """A broker as the network sees it, for one run of its process."""

    def __init__(self, broker: BrokerId, perform: Perform) -> None:
        self.broker = broker
        #: Does something on the loop of the process, if there still is one.
        self.perform = perform
        self.peers: PeerConnections | None = None
        self.ends: dict[End, None] = {}


class PeerNetwork:
    """Its numbers may be changed at any time."""

    def __init__(self, agenda: Agenda, chance: Random) -> None:
        self.agenda = agenda
        self.chance = chance
        #: How long bytes are on their way, at most; and how often they take twenty times as long.
        self.delay_ms = 1.0
        self.straggling = 0.0
        #: Bytes arrive in pieces of at most this size.
        self.piece_bytes = 64 * KIB
        #: How much arrives on one stream; None: as much as there is.
        self.bytes_a_ms: float | None = None
        #: How long a side takes to notice that a stream is broken, at most.
        self.notice_ms = 100.0
        self._hosts: dict[Address, Host] = {}
        #: Directions in which nothing arrives, and by how many faults.
        self._stalls: dict[Pair, int] = {}

    # Brokers come and go

    def start(self, broker: BrokerId, perform: Perform, make: Callable[[Dial], PeerConnections]) -> PeerConnections:
        """A process that listens and dials from now on."""
        host = Host(broker, perform)
        host.peers = make(partial(self._dial, host))
        self._hosts[address_of(broker)] = host
        return host.peers

    def stop(self, broker: BrokerId) -> None:
        """Its process is no more; the others notice when they notice."""
        host = self._hosts.pop(address_of(broker), None)
        if host is not None:
            for end in list(host.ends):
                end.broken(is_noticed_here=False)

    # Faults

    def stall(self, pair: Pair) -> None:
        """Nothing arrives in this direction until it is mended; what is underway is late and not lost."""
        self._stalls[pair] = self._stalls.get(pair, 0) + 1

    def mend(self, pair: Pair) -> None:
        self._stalls[pair] = max(0, self._stalls.get(pair, 0) - 1)
        self._go_on()

    def calm_down(self) -> None:
        """Nothing is stalled or late any more."""
        self._stalls.clear()
        self.straggling, self.bytes_a_ms = 0.0, None
        self.delay_ms, self.notice_ms = min(self.delay_ms, 5.0), min(self.notice_ms, 5.0)
        self._go_on()

    def reset(self, one: int, other: int) -> None:
        """Streams between them break; what is underway is lost."""
        host = self._hosts.get(address_of(BrokerId(one)))
        for end in list(host.ends) if host is not None else []:
            if end.other.host.broker == other:
                end.broken(is_noticed_here=True)

    def is_stalled(self, pair: Pair) -> bool:
        return bool(self._stalls.get(pair))

    def underway_ms(self) -> float:
        takes_ms = self.chance.random() * self.delay_ms
        return takes_ms * 20 if self.straggling and self.chance.random() < self.straggling else takes_ms

    def after(self, delay_ms: float, act: Act) -> None:
        self.agenda.at(self.agenda.now_ms + delay_ms, act)

    def _go_on(self) -> None:
        for host in self._hosts.values():
            for end in host.ends:
                end.deliver_later(self.underway_ms())

    # Dialling

    def _dial(self, source: Host, address: Address, connection: PeerConnection) -> None:
        self.after(self.underway_ms(), lambda: self._arrive(source, address, connection))

    def _arrive(self, source: Host, address: Address, connection: PeerConnection) -> None:
        target = self._hosts.get(address)
        if target is None:
            source.perform(lambda: connection.gone("nobody listens there"))
            return
        pairs = (source.broker, target.broker), (target.broker, source.broker)
        if any(map(self.is_stalled, pairs)):
            return  # no answer, and whoever waits for one gives up by himself
        near, far = End(self, source), End(self, target)
        near.other, far.other = far, near
        near.connection = connection
        target.perform(partial(self._accept, far, address_of(source.broker)[0]))

    def _accept(self, far: End, where: str) -> None:
        assert far.host.peers is not None, "a host listens when it has started"
        far.connection = far.host.peers.accepted(where)
        if far.connection is None:
            far.broken(is_noticed_here=False)
            return
        far.made()
        far.other.host.perform(far.other.made)


class End:
    """One end of a stream: the broker's `Transport`, and what is underway from here to the other end."""

    def __init__(self, network: PeerNetwork, host: Host) -> None:
        self._network = network
        self.host = host
        self.other = self
        self.connection: PeerConnection | None = None
        self._underway: deque[memoryview] = deque()
        self._underway_bytes = 0
        self._is_delivering = False
        self._is_closing = False
        self._is_broken = False
        #: It reads nothing at present; what has arrived meanwhile.
        self._is_paused = False
        self._unheard: deque[memoryview] = deque()
        host.ends[self] = None

    def made(self) -> None:
        assert self.connection is not None, "an end is made for a connection"
        self.connection.made(self)

    # Transport

    def write(self, pieces: Sequence[Buffer]) -> None:
        if self._is_broken or self._is_closing:
            return
        for piece in pieces:
            if len(piece) > 0:
                self._underway.append(memoryview(piece))
                self._underway_bytes += len(piece)
        self.deliver_later(self._network.underway_ms())

    def queued_bytes(self) -> int:
        return max(0, self._underway_bytes - SYSTEM_BYTES)

    def unsent_bytes(self) -> int:
        return self._underway_bytes

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._network.after(0, lambda: self.host.perform(lambda: self.hear(b"")))

    def close(self) -> None:
        self._is_closing = True
        self.deliver_later(self._network.underway_ms())

    def abort(self) -> None:
        self.broken(is_noticed_here=True, at_once=True)

    # What is underway

    def deliver_later(self, delay_ms: float) -> None:
        if not self._is_delivering and not self._is_broken and (self._underway or self._is_closing):
            self._is_delivering = True
            self._network.after(delay_ms, self._deliver)

    def _deliver(self) -> None:
        self._is_delivering = False
        network = self._network
        if self._is_broken or network.is_stalled((self.host.broker, self.other.host.broker)):
            return
        if not self._underway:  # all has left, and it was closed
            self.broken(is_noticed_here=True, at_once=True)
            return
        piece = self._next_piece()
        self.other.host.perform(lambda: self.other.hear(piece))
        takes_ms = 0.0 if network.bytes_a_ms is None else len(piece) / network.bytes_a_ms
        self.deliver_later(takes_ms)

    def _next_piece(self) -> bytes:
        """A piece of any size, mostly a large one."""
        network = self._network
        most = min(self._underway_bytes, network.piece_bytes)
        size = most if network.chance.random() < 0.5 else network.chance.randint(1, most)
        found: list[bytes] = []
        left = size
        while left:
            first = self._underway.popleft()
            found.append(bytes(first[:left]))
            if len(first) > left:
                self._underway.appendleft(first[left:])
            left -= len(found[-1])
        self._underway_bytes -= size
        return b"".join(found)

    def hear(self, piece: bytes) -> None:
        self._unheard.append(memoryview(piece))
        connection = self.connection
        while self._unheard and connection is not None and not self._is_broken and not self._is_paused:
            first = self._unheard.popleft()
            if len(first) == 0:
                continue
            buffer = connection.get_buffer()
            count = min(len(buffer), len(first))
            buffer[:count] = first[:count]
            if count < len(first):
                self._unheard.appendleft(first[count:])
            connection.received(count)

    # The end

    def broken(self, *, is_noticed_here: bool, at_once: bool = False) -> None:
        """What is underway in both directions is lost; each side is told, at once or after a while."""
        if self._is_broken:
            return
        network = self._network
        for end in (self, self.other):
            end._is_broken = True
            end._underway.clear()
            end._underway_bytes = 0
            end.host.ends.pop(end, None)
            if end is not self or is_noticed_here:
                notice_ms = 0.0 if at_once and end is self else network.chance.random() * network.notice_ms
                network.after(notice_ms, end.gone)

    def gone(self) -> None:
        connection = self.connection
        if connection is not None:
            self.host.perform(lambda: connection.gone("the stream is broken"))
