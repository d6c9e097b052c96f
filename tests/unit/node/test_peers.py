"""Brokers that talk over real sockets, on each of the two loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from zurau.broker.peers import connection as connection_module
from zurau.counters import Counters
from zurau.ids import BrokerId
from zurau.node import peers as peers_module
from zurau.node.acceptor import bind
from zurau.node.clock import SystemClock, SystemRandomness
from zurau.node.peers import PeerSockets
from zurau.node.turns import LoopTurns
from zurau.ports import Handshake
from zurau.settings import KIB, MIB
from zurau.wire.peer.frames import Kind, encode_frame
from zurau.wire.peer.handshake import decode_goodbye, encode_handshake

PATIENCE_S = 20


def handshake(number: int, **said: Any) -> Handshake:
    ids = {"directory_id": bytes([number]) * 16, "incarnation": bytes([100 + number]) * 16}
    return Handshake(**{"broker": BrokerId(number), "cluster_id": "one", "is_metadata_empty": False, **ids, **said})


def frame(data: bytes) -> list[bytes]:
    return encode_frame(Kind.SESSION_REQUEST, [b"head"], [data])


class Broker:
    """Sockets, and what their listener was told."""

    def __init__(self, number: int) -> None:
        self.handshake = handshake(number)
        self.received_frames: list[bytes] = []
        self.heard: list[tuple[str, int]] = []
        self._changed = asyncio.Event()
        loop, counters = asyncio.get_running_loop(), Counters()
        turns = LoopTurns(loop, counters)
        self.sockets = PeerSockets(
            lambda: self.handshake, self, SystemClock(loop, turns), SystemRandomness(), turns, counters
        )

    async def listen(self, port: int = 0) -> None:
        self.address = self.sockets.listen(await bind("127.0.0.1", port, "--peer"))

    def knows(self, other: Broker) -> None:
        self.sockets.set_addresses({other.handshake.broker: other.address})

    def send(self, to: int, data: bytes) -> None:
        self.sockets.send(BrokerId(to), frame(data))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def _note(self, kind: str, broker: int) -> None:
        self.heard.append((kind, broker))
        self._changed.set()

    def connected(self, peer: Handshake) -> None:
        self._note("connected", peer.broker)

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        self.received_frames.append(bytes(frame[16:]))
        self._note("received", sender)

    def progressed(self, broker: BrokerId) -> None:
        self._note("progressed", broker)

    def lost(self, broker: BrokerId) -> None:
        self._note("lost", broker)


class Stranger:
    """A socket that may say anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def greet(self, number: int = 2) -> None:
        self.writer.writelines(encode_handshake(handshake(number)))
        await self.frame()

    async def frame(self) -> memoryview:
        async with asyncio.timeout(PATIENCE_S):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return memoryview(await self._reader.readexactly(size))

    async def has_ended(self) -> bool:
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self._reader.read(1) == b""
            except ConnectionError:
                return True

    def reset(self) -> None:
        self.writer.transport.abort()


class Town:
    """Where brokers and strangers of a story live."""

    def __init__(self) -> None:
        self._brokers: list[Broker] = []
        self._strangers: list[Stranger] = []

    async def start(self, number: int, *, listens: bool = True) -> Broker:
        broker = Broker(number)
        self._brokers.append(broker)
        if listens:
            await broker.listen()
        return broker

    async def pair(self) -> tuple[Broker, Broker]:
        one, two = await self.start(1), await self.start(2)
        two.knows(one)
        await one.until(lambda: ("connected", 2) in one.heard)
        await two.until(lambda: ("connected", 1) in two.heard)
        return one, two

    async def visit(self, broker: Broker, **said: Any) -> Stranger:
        stranger = Stranger(*await asyncio.open_connection(*broker.address, **said))
        self._strangers.append(stranger)
        return stranger

    async def end(self) -> None:
        for stranger in self._strangers:
            stranger.reset()
        for broker in self._brokers:
            await broker.sockets.stop()
            assert broker.sockets.open == {}


Story = Callable[[Town], Coroutine[Any, Any, None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.Loop], ids=["asyncio", "uvloop"])
def run(request) -> Callable[[Story], None]:
    async def main(story: Story) -> None:
        town = Town()
        try:
            await story(town)
        finally:
            await town.end()

    def run(story: Story) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(main(story))

    return run


def test_brokers_find_each_other_and_frames_go_both_ways(run):
    async def story(town) -> None:
        one, two = await town.pair()
        one.send(2, b"to two")
        two.send(1, b"to one")
        await one.until(lambda: one.received_frames == [b"to one"])
        await two.until(lambda: two.received_frames == [b"to two"])

    run(story)


def test_the_watchdog_can_name_the_broker_whose_bytes_took_long(run):
    async def story(town) -> None:
        _, two = await town.pair()
        assert [str(each).rpartition(":")[0] for each in two.sockets.open] == ["bytes of broker 1 at 127.0.0.1"]

    run(story)


def test_large_frames_arrive_whole_and_in_order(run):
    async def story(town) -> None:
        one, two = await town.pair()
        sent = [bytes([number]) * (number * MIB + number) for number in range(6)]
        for data in sent:
            one.send(2, data)
        await two.until(lambda: len(two.received_frames) == 6)
        assert two.received_frames == sent

    run(story)


def test_a_frame_may_have_more_pieces_than_a_system_call(run):
    async def story(town) -> None:
        one, two = await town.pair()
        pieces = [bytes([number % 256]) * 100 for number in range(3000)]
        one.sockets.send(BrokerId(2), encode_frame(Kind.SESSION_RESPONSE, [b"head"], pieces))
        await two.until(lambda: two.received_frames == [b"".join(pieces)])

    run(story)


def test_a_frame_is_heard_when_it_comes_byte_by_byte(run):
    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one)
        for byte in b"".join((*encode_handshake(handshake(2)), *frame(b"slowly"))):
            stranger.writer.write(bytes([byte]))
            await stranger.writer.drain()
            await asyncio.sleep(0)
        await one.until(lambda: one.received_frames == [b"slowly"])

    run(story)


def test_a_reset_within_a_frame_loses_that_frame_and_is_told(run):
    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one)
        await stranger.greet()
        stranger.writer.write(b"".join(frame(bytes(1 * MIB)))[: 500 * KIB])
        await stranger.writer.drain()
        stranger.reset()
        await one.until(lambda: one.heard[-1] == ("lost", 2))
        assert one.received_frames == []

    run(story)


def test_a_lost_connection_is_made_again(run):
    async def story(town) -> None:
        one, two = await town.pair()
        for protocol in list(one.sockets.open):
            protocol.abort()
        await two.until(lambda: two.heard == [("connected", 1), ("lost", 1), ("connected", 1)])
        await one.until(lambda: one.heard == [("connected", 2), ("lost", 2), ("connected", 2)])

    run(story)


def test_a_broker_that_comes_later_is_found(run, caplog):
    caplog.set_level("DEBUG", "zurau.peers")

    async def story(town) -> None:
        one, two = await town.start(1, listens=False), await town.start(2)
        (taken,) = await bind("127.0.0.1", 0, "--peer")
        one.address = taken.getsockname()
        two.knows(one)
        async with asyncio.timeout(PATIENCE_S):
            while "cannot connect to broker 1" not in caplog.text:  # noqa: ASYNC110 - only the log tells
                await asyncio.sleep(0.001)
        one.sockets.listen([taken])
        await two.until(lambda: two.heard == [("connected", 1)])

    run(story)


def test_a_name_that_nobody_knows_is_tried_until_the_address_is_right(run):
    async def story(town) -> None:
        one, two = await town.start(1), await town.start(2)
        two.sockets.set_addresses({BrokerId(1): ("no.such.host.invalid", 1)})
        await asyncio.sleep(0)
        two.knows(one)
        await two.until(lambda: two.heard == [("connected", 1)])

    run(story)


def test_a_broker_of_another_cluster_hears_why_it_is_refused(run):
    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one)
        stranger.writer.writelines(encode_handshake(handshake(2, cluster_id="two")))
        assert "start one of them with an empty --dir" in decode_goodbye(await stranger.frame())
        assert await stranger.has_ended()
        assert one.heard == []

    run(story)


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x10\0\x12\0\3" + bytes(100), b"\xff" * 100],
    ids=["http", "kafka", "ones"],
)
def test_garbage_ends_its_connection_and_no_other(run, said):
    async def story(town) -> None:
        one, two = await town.pair()
        stranger = await town.visit(one)
        stranger.writer.write(said)
        assert decode_goodbye(await stranger.frame())
        assert await stranger.has_ended()
        two.send(1, b"still here")
        await one.until(lambda: one.received_frames == [b"still here"])

    run(story)


def test_who_says_nothing_is_sent_away(run, monkeypatch):
    monkeypatch.setattr(connection_module, "PATIENCE_MS", 20)

    async def story(town) -> None:
        stranger = await town.visit(await town.start(1))
        assert await stranger.has_ended()

    run(story)


def test_a_broker_that_does_not_read_is_cut_off_when_too_much_is_queued(run, monkeypatch):
    monkeypatch.setattr(connection_module, "QUEUED_BYTES_MAX", 1 * MIB)

    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one, limit=1)
        await stranger.greet()
        while one.heard[-1] != ("lost", 2):
            one.send(2, bytes(1 * MIB))
            await asyncio.sleep(0)

    run(story)


def test_a_slow_reader_gets_everything_and_its_progress_is_told(run, monkeypatch):
    monkeypatch.setattr(connection_module, "PROGRESS_MS", 1)

    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one, limit=64 * KIB)
        await stranger.greet()
        await one.until(lambda: one.heard == [("connected", 2)])
        one.send(2, bytes(32 * MIB))
        arrived = 0
        size = sum(map(len, frame(bytes(32 * MIB))))
        async with asyncio.timeout(PATIENCE_S):
            while arrived < size:
                arrived += len(await stranger._reader.read(256 * KIB))
                await asyncio.sleep(0)
        assert ("progressed", 2) in one.heard

    run(story)


def test_a_connection_beyond_those_that_may_be_unknown_is_closed_at_once(run, monkeypatch):
    monkeypatch.setattr("zurau.broker.peers.connections.UNKNOWN_MAX", 0)

    async def story(town) -> None:
        stranger = await town.visit(await town.start(1))
        assert await stranger.has_ended()

    run(story)


def test_a_stop_says_goodbye_to_the_other_side(run):
    async def story(town) -> None:
        one, two = await town.pair()
        await one.sockets.stop()
        assert one.heard == [("connected", 2), ("lost", 2)]
        await two.until(lambda: two.heard[-1] == ("lost", 1))

    run(story)


def test_a_stop_does_not_wait_long_for_who_takes_nothing(run, monkeypatch):
    monkeypatch.setattr(peers_module, "GOODBYE_S", 0.01)

    async def story(town) -> None:
        one = await town.start(1)
        stranger = await town.visit(one, limit=1)
        await stranger.greet()
        one.send(2, bytes(64 * MIB))
        await one.sockets.stop()
        assert one.heard[-1] == ("lost", 2)

    run(story)


def test_a_stop_ends_attempts_to_reach_who_does_not_answer(run):
    async def story(town) -> None:
        two = await town.start(2)
        with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
            two.sockets.set_addresses({BrokerId(0): silent.getsockname(), BrokerId(1): ("192.0.2.1", 9)})
            await asyncio.sleep(0)
            await two.sockets.stop()
        assert two.heard == []

    run(story)
