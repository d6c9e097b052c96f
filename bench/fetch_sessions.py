"""What one poll of a consumer with many idle partitions costs, with and without a fetch session:
`python bench/fetch_sessions.py`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import subjects
from measure import cpu_s, ratio, show
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.cluster.connection import Connection
from zurau.ids import TopicPartition
from zurau.wire.kafka.frames import RequestHeader, encode_request, encode_response
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

TOPIC = "many"
#: Bytes asked, bytes answered, microseconds of the broker's CPU.
Cost = tuple[int, int, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer polls, and no Apache Kafka")
    parser.add_argument("--partitions", type=int, default=1000)
    arguments = parser.parse_args()
    polls = 300 if arguments.quick else 2000
    rows = {}
    for name in subjects.available((subjects.ZURAU,) if arguments.quick else (subjects.ZURAU, subjects.KAFKA)):
        with subjects.running(name) as subject, Cluster(subject.bootstrap) as cluster:
            plain, within = _compare(cluster, subject.pid, arguments.partitions, polls)
        rows[f"{name}, all named"] = [*plain, "1.00"]
        rows[f"{name}, in a session"] = [*within, ratio(within[2], plain[2])]
    show(
        f"A poll that finds nothing in {arguments.partitions} partitions",
        ["bytes asked", "bytes answered", "CPU us", "CPU, all named = 1"],
        rows,
        "max_wait_ms=0, so that every poll is answered at once.",
    )


def _compare(cluster: Cluster, pid: int, partitions: int, polls: int) -> tuple[Cost, Cost]:
    Admin(cluster).create_topic(NewTopic(TOPIC, partitions, 1))
    connection = cluster.dial(cluster.leader_of(TopicPartition(TOPIC, 0)))
    topics = _all_partitions(cluster, partitions)
    plain = _measure(lambda: _fetch(topics), connection, pid, polls)
    session = connection.request(_fetch(topics, 0, 0)).session_id
    numbers = iter(range(1, polls + 2))
    return plain, _measure(lambda: _fetch([], session, next(numbers)), connection, pid, polls)


def _all_partitions(cluster: Cluster, count: int) -> list[FetchTopic]:
    wanted = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 20) for n in range(count)]
    return [FetchTopic(topic=TOPIC, topic_id=cluster.topic(TOPIC).topic_id, partitions=wanted)]


def _fetch(topics: list[FetchTopic], session_id: int = 0, epoch: int = -1) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics)


def _measure(request: Callable[[], FetchRequest], connection: Connection, pid: int, polls: int) -> Cost:
    header = RequestHeader(FetchRequest.api_key, connection.version_of(FetchRequest.api_key), 1, "bench")
    first = request()
    asked = sum(map(len, encode_request(header, first)))
    answered = sum(map(len, encode_response(header, connection.request(first))))
    time.sleep(0.5)
    before_s = cpu_s(pid)
    for _ in range(polls):
        connection.request(request())
    return asked, answered, (cpu_s(pid) - before_s) / polls * 1e6


if __name__ == "__main__":
    main()
