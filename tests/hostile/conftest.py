"""What every attack needs: a real `zurau serve`, an attacker's socket, and a bystander who must not notice.

The bystander is an ordinary client of the same broker: it produces with acks=all and fetches what it produced, over
and over, and remembers its longest wait. The promise is one second whatever somebody else sends; the tests allow five,
so that a busy machine does not fail them. docs/reliability.md has the numbers of a quiet one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The process harness is the one that the clients' tests use.
sys.path.insert(0, str(Path(__file__).parent.parent / "compatibility"))
sys.path.insert(0, str(Path(__file__).parent))

from attack import Attacker, Bystander
from broker_process import ZurauBroker


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., ZurauBroker]]:
    """Starts brokers with the settings that a test names; those that still run at the end are stopped."""
    started: list[ZurauBroker] = []

    def start(**settings: object) -> ZurauBroker:
        broker = ZurauBroker(tmp_path / f"broker-{len(started)}", **settings)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture
def broker(start_broker: Callable[..., ZurauBroker]) -> ZurauBroker:
    return start_broker()


@pytest.fixture
def connect() -> Iterator[Callable[..., Attacker]]:
    """Opens connections to a broker; all of them are closed at the end."""
    opened: list[Attacker] = []

    def connect(broker: ZurauBroker, **circumstances: int) -> Attacker:
        opened.append(Attacker(broker.port, **circumstances))
        return opened[-1]

    yield connect
    for attacker in opened:
        attacker.leave()


@pytest.fixture
def watch(record_property: Callable[[str, object], None]) -> Iterator[Callable[[ZurauBroker], Bystander]]:
    """Starts a bystander; what it saw stands in the report of the test."""
    bystanders: list[Bystander] = []

    def watch(broker: ZurauBroker) -> Bystander:
        bystanders.append(Bystander(broker.port, topic=f"bystander-{os.getpid()}-{len(bystanders)}"))
        bystanders[-1].start()
        return bystanders[-1]

    yield watch
    for bystander in bystanders:
        bystander.finish()
        record_property("longest wait of the bystander, s", round(bystander.longest_wait_s, 3))
