"""A thousand clients that are connected and say nothing, and a hundred that come while others are busy.

    python bench/connections.py

Of the first: what each holds, and what others notice. Of the second: how long until each is answered, on uvloop and on
asyncio's own loop. Ten clients ask meanwhile as fast as they are answered, a thousand questions ahead.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import subjects
from measure import percentile, ratio, resident_bytes, show
from raw_clients import connect
from zurau.wire.kafka.frames import RequestHeader, encode_request
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest

BUSY = 10
NEW = 100
QUESTION = b"".join(encode_request(RequestHeader(ApiVersionsRequest.api_key, 0, 1, "new"), ApiVersionsRequest()))


def round_trips_us(append, count: int) -> list[float]:  # type: ignore[no-untyped-def]
    times = []
    for _ in range(count):
        began = time.perf_counter()
        append()
        times.append((time.perf_counter() - began) * 1e6)
    return times


def greet(port: int) -> socket.socket:
    """A connection that has asked its first question, as every client does."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    header = RequestHeader(ApiVersionsRequest.api_key, 0, 1, "idle")
    connection.sendall(b"".join(encode_request(header, ApiVersionsRequest())))
    connection.recv(65536)
    return connection


def ask_for_ever(port: int) -> None:
    """Ten connections that are never without a question."""
    selector, questions, sent = selectors.DefaultSelector(), QUESTION * 1000, {}
    for _ in range(BUSY):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        sent[connection] = 0
    while True:
        for key, events in selector.select():
            connection = key.fileobj  # type: ignore[assignment]
            if events & selectors.EVENT_READ:
                connection.recv(1 << 20)
            if events & selectors.EVENT_WRITE:
                count = connection.send(questions[sent[connection] :])
                sent[connection] = (sent[connection] + count) % len(questions)


@contextmanager
def busy(port: int) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=ask_for_ever, args=(port,), daemon=True)
    process.start()
    time.sleep(1)
    try:
        yield
    finally:
        process.kill()
        process.join()


def answers_to_new_ms(port: int) -> list[float]:
    """How long each of many new connections waits for its first answer."""
    selector, began, waits = selectors.DefaultSelector(), {}, []
    for _ in range(NEW):
        connection = socket.socket()
        connection.setblocking(False)
        began[connection] = time.perf_counter()
        connection.connect_ex(("127.0.0.1", port))
        selector.register(connection, selectors.EVENT_WRITE)
    while len(waits) < NEW:
        for key, events in selector.select():
            connection = key.fileobj  # type: ignore[assignment]
            if events & selectors.EVENT_WRITE:
                connection.sendall(QUESTION)
                selector.modify(connection, selectors.EVENT_READ)
            else:
                connection.recv(65536)
                waits.append((time.perf_counter() - began[connection]) * 1000)
                selector.unregister(connection)
                connection.close()
    return waits


@contextmanager
def without_uvloop() -> Iterator[None]:
    """Brokers that are started meanwhile do not find it."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "uvloop.py").write_text("raise ImportError\n")
        os.environ["PYTHONPATH"] = directory if before is None else f"{directory}{os.pathsep}{before}"
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def show_new_connections(*, quick: bool) -> None:
    waits: dict[str, list[float]] = {}
    with subjects.running(subjects.ZURAU) as subject, busy(subject.port):
        waits["zurau on uvloop"] = answers_to_new_ms(subject.port)
    with without_uvloop(), subjects.running(subjects.ZURAU) as subject, busy(subject.port):
        waits["zurau on asyncio"] = answers_to_new_ms(subject.port)
    for name in () if quick else subjects.available((subjects.KAFKA,)):
        with subjects.running(name) as subject, busy(subject.port):
            waits[name] = answers_to_new_ms(subject.port)
    measure = percentile(waits["zurau on asyncio"], 0.5)
    show(
        f"{NEW} new connections while {BUSY} are busy",
        ["median (ms)", "last (ms)", "median / asyncio's"],
        {
            name: [percentile(each, 0.5), max(each), ratio(percentile(each, 0.5), measure)]
            for name, each in waits.items()
        },
        "From connect to the first answer.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer round trips, and no Apache Kafka")
    parser.add_argument("--connections", type=int, default=1000)
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, arguments.connections * 2 + 200)), hard))
    count = 1000 if arguments.quick else 10_000
    rows = {}
    for name in subjects.available((subjects.ZURAU,) if arguments.quick else (subjects.ZURAU, subjects.KAFKA)):
        with subjects.running(name) as subject:
            client = connect(subject, b"x" * 100)
            round_trips_us(client.append, count)
            alone = round_trips_us(client.append, count)
            before = resident_bytes(subject.pid)
            idle = [greet(subject.port) for _ in range(arguments.connections)]
            each_kb = (resident_bytes(subject.pid) - before) / arguments.connections / 1000
            among = round_trips_us(client.append, count)
            for connection in idle:
                connection.close()
        halves = [percentile(times, share) for share in (0.5, 0.99) for times in (alone, among)]
        rows[name] = [each_kb, *halves, ratio(halves[1], halves[0])]
    show(
        f"{arguments.connections:,} idle connections",
        ["kB each", "p50 alone (µs)", "p50 among (µs)", "p99 alone", "p99 among", "p50 among / alone"],
        rows,
        "One more client appends records of 100 B with acks=1, one at a time: alone, and among the idle ones.",
    )
    show_new_connections(quick=arguments.quick)


if __name__ == "__main__":
    main()
