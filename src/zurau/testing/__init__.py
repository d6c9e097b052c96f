"""What users' tests import: a real broker in the test's own process.

    from zurau.testing import Broker

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

It listens on a real socket on a free port, so any client in any language can use it. The same class works in async code
(`async with Broker()`), and `pytest` finds the `zurau_broker` fixture by itself once Zurau is installed.
"""

from zurau.testing.broker import Broker

__all__ = ["Broker"]
