"""Taking addresses, and letting clients in."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from zurau.counters import Counters
from zurau.errors import SettingsError
from zurau.node import descriptors
from zurau.node.acceptor import Acceptor, bind
from zurau.node.turns import LoopTurns


class Echo(asyncio.Protocol):
    def connection_made(self, transport) -> None:
        transport.write(b"hello")
        transport.close()


class Exhausted:
    """A listening socket of a process that has no descriptors left, for a while."""

    def __init__(self, real: socket.socket, failures: int) -> None:
        self._real = real
        self.failures = failures

    def accept(self):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._real.accept()

    def __getattr__(self, name: str):
        return getattr(self._real, name)


async def greeting(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = await reader.read(100)
    writer.close()
    return said


def test_an_address_is_taken_before_anybody_is_let_in():
    async def main() -> int:
        (bound,) = await bind("127.0.0.1", 0, "--kafka")
        with bound, socket.socket() as client:
            return client.connect_ex(bound.getsockname())

    assert asyncio.run(main()) == errno.ECONNREFUSED


def test_a_free_port_is_nobody_elses_before_anybody_listens_there():
    async def main() -> None:
        (bound,) = await bind("127.0.0.1", 0, "--kafka")
        with bound, pytest.raises(SettingsError, match="in use"):
            await bind(*bound.getsockname(), "--kafka")

    asyncio.run(main())


@pytest.mark.parametrize(("host", "reason"), [("192.0.2.1", "assign"), ("no.such.host.invalid", "cannot listen")])
def test_an_address_that_cannot_be_had_is_said_with_what_to_do(host, reason):
    with pytest.raises(SettingsError, match=reason) as refused:
        asyncio.run(bind(host, 9092, "--kafka"))
    assert "choose another address with --kafka HOST:PORT" in str(refused.value)


def test_without_descriptors_it_pauses_and_goes_on_later(caplog):
    async def main() -> bytes:
        (bound,) = await bind("127.0.0.1", 0, "--kafka")
        turns = LoopTurns(asyncio.get_running_loop(), Counters())
        acceptor = Acceptor([Exhausted(bound, 2)], turns, lambda: True, Echo, lambda: None)
        acceptor.start()
        said = await asyncio.wait_for(greeting(bound.getsockname()[1]), 10)
        await acceptor.stop()
        return said

    assert asyncio.run(main()) == b"hello"
    assert caplog.text.count("cannot accept connections: Too many open files; raise the limit with ulimit -n") == 1


def test_who_may_not_enter_is_closed_at_once():
    async def main() -> bytes:
        sockets = await bind("127.0.0.1", 0, "--kafka")
        turns = LoopTurns(asyncio.get_running_loop(), Counters())
        acceptor = Acceptor(sockets, turns, lambda: False, Echo, lambda: None)
        acceptor.start()
        said = await asyncio.wait_for(greeting(sockets[0].getsockname()[1]), 10)
        await acceptor.stop()
        return said

    assert asyncio.run(main()) == b""


@pytest.mark.parametrize("allowed", [16, 256, 1024, 1 << 20])
def test_files_and_connections_together_take_no_more_than_is_allowed(monkeypatch, allowed):
    monkeypatch.setattr(descriptors, "allowed", lambda: allowed)
    files, connections = descriptors.for_files(), descriptors.for_connections()
    assert connections >= descriptors.CONNECTIONS_MIN
    assert files + connections <= max(allowed - descriptors.RESERVED, files + descriptors.CONNECTIONS_MIN)
