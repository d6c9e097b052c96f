"""Brokers that talk over a network of their own, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from zurau.broker.peers.connections import PeerConnections
from zurau.counters import Counters
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId
from zurau.ports import Handshake
from zurau.simulation.peers import PeerNetwork, address_of
from zurau.simulation.world import SeededRandomness, VirtualClock
from zurau.wire.peer.frames import Kind, encode_frame

#: Longer than any back-off or patience.
LONG_MS = 5000


def frame(data: bytes, kind: Kind = Kind.SESSION_REQUEST) -> list[bytes]:
    return encode_frame(kind, [b"head"], [data])


class ClockAgenda:
    """The network's agenda, on the clock that the brokers have too."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    @property
    def now_ms(self) -> float:
        return self._clock.monotonic_ms()

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._clock.call_later(at_ms - self.now_ms, act)


class Broker:
    """One run of a broker, and what its listener was told."""

    def __init__(self, world: Brokers, number: int, handshake: Handshake) -> None:
        self.handshake = handshake
        self.heard: list[tuple[str, Any]] = []
        self.counters = Counters()
        self.is_over = False
        self.refuses_frames = False
        self.peers = world.network.start(
            BrokerId(number),
            lambda act: None if self.is_over else act(),
            lambda dial: PeerConnections(
                lambda: self.handshake, self, world.clock, SeededRandomness(number), dial, self.counters
            ),
        )

    def connected(self, peer: Handshake) -> None:
        self.heard.append(("connected", peer.broker))

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        if self.refuses_frames:
            raise ProtocolViolation("this is not what sessions say")
        self.heard.append(("received", bytes(frame)[16:]))

    def progressed(self, broker: BrokerId) -> None:
        self.heard.append(("progressed", broker))

    def lost(self, broker: BrokerId) -> None:
        self.heard.append(("lost", broker))

    def send(self, to: int, data: bytes) -> None:
        self.peers.send(BrokerId(to), frame(data))

    def names_of(self, *kinds: str) -> list[Any]:
        return [what for kind, what in self.heard if kind in kinds]


class Brokers:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.network = PeerNetwork(ClockAgenda(self.clock), Random(1))
        self._starts = 0
        self.running: dict[int, Broker] = {}

    def start(self, number: int, *, knows: Sequence[int] = (), **said: Any) -> Broker:
        self._starts += 1
        fields = {"cluster_id": "one", "directory_id": bytes([number]) * 16, "incarnation": bytes([self._starts]) * 16}
        handshake = Handshake(**{"broker": BrokerId(number), "is_metadata_empty": False, **fields, **said})
        broker = self.running[number] = Broker(self, number, handshake)
        broker.peers.set_addresses({BrokerId(other): address_of(BrokerId(other)) for other in knows})
        return broker

    def kill(self, number: int) -> None:
        self.running.pop(number).is_over = True
        self.network.stop(BrokerId(number))

    def pair(self) -> tuple[Broker, Broker]:
        """Brokers 1 and 2, connected."""
        one, two = self.start(1), self.start(2, knows=[1])
        self.run()
        assert one.peers.connected.keys() == {2}
        assert two.peers.connected.keys() == {1}
        return one, two

    def run(self, duration_ms: float = LONG_MS) -> None:
        self.clock.advance(duration_ms)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()
