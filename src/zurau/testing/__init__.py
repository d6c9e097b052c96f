"""What users' tests import: a real broker in the test's own process.

    from zurau.testing import Broker

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

It listens on a real socket on a free port, so any client in any language can use it. The same class works in async code
(`async with Broker()`), and `pytest` finds the `zurau_broker` fixture by itself once Zurau is installed.

`Cluster` is several brokers, each a process of its own, that can be killed, paused and cut off from each other; the
fixture is `zurau_cluster`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zurau.testing.broker import Broker
    from zurau.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> Any:
    """Import them when they are first wanted: pytest loads this package wherever Zurau is installed."""
    if name == "Broker":
        from zurau.testing.broker import Broker

        return Broker
    if name == "Cluster":
        from zurau.testing.cluster import Cluster

        return Cluster
    raise AttributeError(name)
