"""The pytest plugin: `zurau_broker` is a broker of the test's own; it is found without any import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from zurau.testing.broker import Broker


@pytest.fixture
def zurau_broker() -> Iterator[Broker]:
    """A fresh broker on a free port: `zurau_broker.bootstrap` is where to find it."""
    # Imported here: pytest loads this file in every project that has Zurau installed.
    from zurau.testing.broker import Broker

    with Broker() as broker:
        yield broker
