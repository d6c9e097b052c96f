"""Brokers on a bad network: whatever happens to streams, frames are whole and in order, and brokers meet again."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from zurau.broker.peers.connections import PeerConnections
from zurau.counters import Counters
from zurau.ids import BrokerId
from zurau.ports import Handshake
from zurau.simulation.constants import constants, draw
from zurau.simulation.peers import PeerNetwork, address_of
from zurau.simulation.world import SeededRandomness, VirtualClock
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

COUNT = int(os.environ.get("ZURAU_SEEDS", "10"))
BROKERS = (1, 2, 3)
TROUBLE_MS, CALM_MS = 8_000, 6_000


class ClockAgenda:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    @property
    def now_ms(self) -> float:
        return self._clock.monotonic_ms()

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._clock.call_later(at_ms - self.now_ms, act)


class Talker:
    """One run of a broker: numbers what it sends over each connection, and checks what it hears."""

    def __init__(self, network: PeerNetwork, clock: VirtualClock, chance: Random, broker: int) -> None:
        self._chance = chance
        self.is_over = False
        self.sent: dict[int, int] = {}
        self.heard: dict[int, int] = {}
        said = Handshake(BrokerId(broker), "one", bytes([broker]) * 16, chance.randbytes(16), is_metadata_empty=False)
        randomness = SeededRandomness(chance.randrange(1000))
        self.peers = network.start(
            BrokerId(broker),
            lambda act: None if self.is_over else act(),
            lambda dial: PeerConnections(lambda: said, self, clock, randomness, dial, Counters()),
        )
        self.peers.set_addresses({BrokerId(other): address_of(BrokerId(other)) for other in BROKERS})

    def talk(self) -> None:
        for broker in self.sent:
            data = bytes([self.sent[broker] % 256]) * self._chance.choice([0, 10, 100, 1000, 70_000])
            self.peers.send(
                BrokerId(broker), encode_frame(Kind.SESSION_REQUEST, [b"%d" % self.sent[broker]], [data[:5], data[5:]])
            )
            self.sent[broker] += 1

    def connected(self, peer: Handshake) -> None:
        assert peer.broker not in self.sent, "connected twice"
        self.sent[peer.broker] = self.heard[peer.broker] = 0

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        _, head, data = decode_frame(frame)
        number = self.heard[sender]
        assert bytes(head) == b"%d" % number
        assert bytes(data) == bytes([number % 256]) * len(data)
        self.heard[sender] = number + 1

    def progressed(self, broker: BrokerId) -> None:
        assert broker in self.sent, "who is not connected does not move on"

    def lost(self, broker: BrokerId) -> None:
        del self.sent[broker], self.heard[broker]


class World:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.clock = VirtualClock()
        self.network = PeerNetwork(ClockAgenda(self.clock), self.chance)
        self.network.delay_ms = self.chance.choice([0.1, 5, 50])
        self.network.straggling = self.chance.choice([0, 0.1])
        self.network.piece_bytes = self.chance.choice([500, 5000, 65536])
        self.network.bytes_a_ms = self.chance.choice([None, 500])
        self.network.notice_ms = self.chance.choice([0, 100, 4000])
        self.talkers: dict[int, Talker] = {}

    def start(self, broker: int) -> None:
        self.talkers[broker] = Talker(self.network, self.clock, self.chance, broker)

    def kill(self, broker: int) -> None:
        """Its process ends; another one starts later."""
        talker = self.talkers.pop(broker, None)
        if talker is not None:
            talker.is_over = True
            self.network.stop(BrokerId(broker))
            self.clock.call_later(self.chance.random() * 2000, lambda: self.start(broker))

    def strike(self) -> None:
        pair = one, other = tuple(self.chance.sample(BROKERS, 2))
        match self.chance.choice(["kill", "reset", "stall", "nothing", "nothing"]):
            case "kill":
                self.kill(one)
            case "reset":
                self.network.reset(one, other)
            case "stall":
                self.network.stall(pair)
                self.clock.call_later(self.chance.random() * 3000, lambda: self.network.mend(pair))

    def run(self, duration_ms: int, *, in_trouble: bool) -> None:
        until_ms = self.clock.monotonic_ms() + duration_ms
        while self.clock.monotonic_ms() < until_ms:
            self.clock.advance(self.chance.random() * 200)
            for talker in self.talkers.values():
                talker.talk()
            if in_trouble and self.chance.random() < 0.2:
                self.strike()


@pytest.mark.parametrize("seed", range(COUNT))
def test_frames_stay_whole_and_in_order_and_brokers_meet_again(seed):
    with constants(draw(seed, "wire", "broker")):
        world = World(seed)
        for broker in BROKERS:
            world.start(broker)
        world.run(TROUBLE_MS, in_trouble=True)
        world.network.calm_down()
        world.run(CALM_MS, in_trouble=False)
        for broker, talker in world.talkers.items():
            assert talker.heard.keys() == set(BROKERS) - {broker}
            assert all(talker.heard.values()), "nothing is heard although nothing is wrong"


def test_what_is_sent_is_looked_at_when_it_arrives():
    """As real systems do: who changes it meanwhile sends something else."""
    world = World(1)
    for broker in BROKERS[:2]:
        world.start(broker)
    world.clock.advance(CALM_MS)
    header, data = encode_frame(Kind.SESSION_REQUEST, [b"0"], [bytearray(10)])
    world.talkers[1].peers.send(BrokerId(2), [header, data])
    data[:] = b"x" * 10
    with pytest.raises(AssertionError):
        world.clock.advance(CALM_MS)
