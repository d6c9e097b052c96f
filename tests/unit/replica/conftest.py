"""Replicas on their own: what they are told comes from the test, and chance is always 0."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from zurau.ids import BrokerId
from zurau.replica.core.events import BrokerRegistered
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.quorum.replica import Replica


class FixedRandomness:
    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        return 0


def named(text: str) -> ReplicaId:
    return ReplicaId(BrokerId(int(text[0])), text[1:])


@pytest.fixture
def ids() -> Callable[[str], tuple[ReplicaId, ...]]:
    return lambda names: tuple(named(name) for name in names.split())


@pytest.fixture
def make() -> Callable[..., Replica]:
    def make(
        name: str = "1a",
        voters: str = "1a 2a 3a",
        *,
        log: LogView | None = None,
        high_watermark: int = 0,
        stands_first: bool = False,
    ) -> Replica:
        return Replica(
            named(name),
            brokers=(),
            log=log or LogView(),
            membership=Membership(named(each) for each in voters.split()),
            epoch=0,
            voted_for=None,
            high_watermark=high_watermark,
            settings=ReplicaSettings(),
            randomness=FixedRandomness(),
            stands_first=stands_first,
        )

    return make


@pytest.fixture
def make_in_sync() -> Callable[..., InSyncReplica]:
    def make(
        name: str = "1a",
        *,
        log: LogView | None = None,
        high_watermark: int = 0,
        is_registered: bool = True,
        **settings: object,
    ) -> InSyncReplica:
        """Its broker is registered, under epoch 4."""
        replica = InSyncReplica(
            named(name),
            log=log or LogView(),
            high_watermark=high_watermark,
            settings=ReplicaSettings(**settings),
            randomness=FixedRandomness(),
        )
        if is_registered:
            replica.step(BrokerRegistered(4), 0)
        return replica

    return make
