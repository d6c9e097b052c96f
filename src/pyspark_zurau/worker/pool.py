"""Connections that outlive a task: Spark runs many tasks, one after the other, in the same worker process.

They are kept by what they were opened with. A task takes one out and gives it back when all went well; after a failure
it is closed instead, because nobody knows what is still on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from pyspark_zurau.options.kafka_settings import Peer
from zurau.client.cluster import Cluster
from zurau.client.errors import BrokerUnreachable, ConnectionLost
from zurau.client.retry import retry


class Closable(Protocol):
    def close(self) -> None: ...


Kept = TypeVar("Kept", bound=Closable)


class Pool(Generic[Kept]):
    def __init__(self) -> None:
        self._idle: dict[Hashable, list[Kept]] = {}

    @contextmanager
    def borrow(self, key: Hashable, make: Callable[[], Kept]) -> Iterator[Kept]:
        idle = self._idle.setdefault(key, [])
        kept = idle.pop() if idle else make()
        try:
            yield kept
        except BaseException:
            kept.close()
            raise
        idle.append(kept)


def reach(peer: Peer) -> Cluster:
    """A way to the cluster, in which one broker at least has answered.

    A task in mid-query is more patient than somebody who has just typed an address: a broker may be restarting.
    """
    cluster = peer.open()

    def greet() -> Cluster:
        try:
            cluster.refresh(())
        except BrokerUnreachable as error:
            raise ConnectionLost(str(error)) from error
        return cluster

    return retry(greet, peer.timeout_s)
