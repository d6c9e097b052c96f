"""A real broker in an invented world, asked as if over the wire."""

from __future__ import annotations

import pytest

from zurau.api.client import Client
from zurau.api.kafka.call import Call
from zurau.broker.broker import Broker
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.broker.identity import load_identity
from zurau.broker.settings import BrokerSettings
from zurau.ids import Address, BrokerId
from zurau.log.settings import LogSettings
from zurau.machines.groups.settings import GroupSettings
from zurau.node.disk import RealDisk
from zurau.pending import start
from zurau.simulation.world import VirtualClock, make_world
from zurau.wire.kafka.codec import decode, encode

#: Longer than anything that a request may wait for in these tests.
LONG_MS = 60_000

CLIENT = Client(Caller(ANONYMOUS, "127.0.0.1", "PLAINTEXT"), Address("broker.example", 9092))


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def settle(clock):
    """Let time pass until a coroutine is done; returns what it returns."""

    def run(coroutine):
        outcome = start(coroutine)
        clock.advance(LONG_MS)
        return outcome.result()

    return run


@pytest.fixture
def make_broker(tmp_path, clock, settle):
    """Starts a broker with number 1; keywords are settings of the broker."""

    def make(*, log_settings=None, **settings):
        disk = RealDisk(tmp_path)
        world = make_world(disk, clock)
        identity = load_identity(disk, world.randomness, BrokerId(1))
        broker = Broker(world, identity, BrokerSettings(**settings), log_settings or LogSettings(), GroupSettings())
        settle(broker.open())
        return broker

    return make


@pytest.fixture
def broker(make_broker):
    return make_broker(offsets_topic_num_partitions=1)


@pytest.fixture
def ask(settle):
    """Asks a handler; request and response go through the codec of the version, as on the wire."""

    def run(handler, request, version, broker):
        call = Call(broker, version, "a client", CLIENT)
        response = settle(handler.handle(over_the_wire(request, version), call))
        return over_the_wire(response, version)

    return run


def over_the_wire(message, version):
    sent = b"".join(encode(message, version))
    received, end = decode(type(message), version, sent)
    assert end == len(sent)
    return received
