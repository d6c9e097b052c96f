"""One record, one acknowledgement, one at a time: `python bench/latency.py`.

The measure is a bare asyncio server in a process of its own that sends the same bytes back: nothing written in Python
on asyncio can be faster than that. The same echo on uvloop, which the broker uses where it is installed, is shown too.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import subjects
from measure import console, percentile, ratio, show
from raw_clients import RawKafka, connect

BUDGET = 2.0
ECHO = "asyncio echo of the same bytes"
UVLOOP_ECHO = "the same echo on uvloop"

_ECHO_SCRIPT = """
import asyncio, importlib, sys

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(data)

async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

importlib.import_module(sys.argv[1]).run(main())
"""


@contextmanager
def echo(frame: bytes, loop: str = "asyncio") -> Iterator[Callable[[], None]]:
    """A function that sends the frame and waits until it has come back."""
    process = subprocess.Popen([sys.executable, "-c", _ECHO_SCRIPT, loop], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def once() -> None:
            connection.sendall(frame)
            left = len(frame)
            while left:
                left -= len(connection.recv(left))

        yield once
    process.terminate()
    process.wait()
    process.stdout.close()


def measure_in_turns(calls: dict[str, Callable[[], None]], rounds: int, per_round: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(per_round):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(per_round):
                began = time.perf_counter()
                call()
                times[name].append((time.perf_counter() - began) * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no Apache Kafka")
    quick = parser.parse_args().quick
    rounds, per_round = (5, 200) if quick else (30, 500)
    peers = (subjects.ZURAU, subjects.ZURAU_OS, subjects.REDIS, subjects.NATS) + (() if quick else (subjects.KAFKA,))
    with ExitStack() as stack:
        calls: dict[str, Callable[[], None]] = {}
        for name in subjects.available(peers):
            subject = stack.enter_context(subjects.running(name))
            client = connect(subject, b"x" * 100)
            calls[f"{name}, acks=1" if name in subjects.SPEAK_KAFKA else name] = client.append
            if isinstance(client, RawKafka):
                if ECHO not in calls:
                    calls[ECHO] = stack.enter_context(echo(client.frame))
                    calls[UVLOOP_ECHO] = stack.enter_context(echo(client.frame, "uvloop"))
                calls[f"{name}, acks=all"] = connect(subject, b"x" * 100, acks=-1).append
        times = measure_in_turns(calls, rounds, per_round)
    base = percentile(times[ECHO], 0.5)
    rows = {
        name: [*(percentile(found, share) for share in (0.5, 0.99)), ratio(percentile(found, 0.5), base)]
        for name, found in times.items()
    }
    show("One record of 100 B, one round trip (µs)", ["p50", "p99", "p50, echo = 1"], rows)
    for name in (subjects.ZURAU, subjects.ZURAU_OS):
        ours = percentile(times[f"{name}, acks=1"], 0.5) / base
        console.print(f"{name}, acks=1 is {ours:.2f} times a bare echo (budget: {BUDGET} times)")
    console.print()


if __name__ == "__main__":
    main()
