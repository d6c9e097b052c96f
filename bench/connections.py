"""A thousand clients that are connected and say nothing: what each holds, and what others notice.

python bench/connections.py
"""

from __future__ import annotations

import argparse
import resource
import socket
import time

import subjects
from measure import percentile, ratio, resident_bytes, show
from raw_clients import connect
from zurau.wire.kafka.frames import RequestHeader, encode_request
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest


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


if __name__ == "__main__":
    main()
