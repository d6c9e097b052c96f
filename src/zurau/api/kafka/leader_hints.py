"""Who leads instead, for clients that asked a broker that does not (KIP-951): they need not ask for metadata first."""

from __future__ import annotations

from typing import NamedTuple

from zurau.api.kafka.call import Call
from zurau.broker.leadership import addresses, leadership_of
from zurau.ids import BrokerId, Epoch
from zurau.wire.kafka.error_codes import ErrorCode

#: What a client is told that asked the wrong broker, or with what it knew before.
MISLED = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))


class Hint(NamedTuple):
    leader_id: BrokerId
    leader_epoch: Epoch


class Endpoint(NamedTuple):
    node_id: BrokerId
    host: str
    port: int
    rack: str | None


class LeaderHints:
    """Of one answer."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._named: set[BrokerId] = set()

    def find(self, topic: str, index: int) -> Hint | None:
        """The leader, if another broker is known to be it."""
        broker = self._call.broker
        image = broker.image.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        found = leadership_of(image, image.partitions[index], broker)
        if found.error_code is not ErrorCode.NONE or found.leader_id == broker.broker_id:
            return None
        self._named.add(found.leader_id)
        return Hint(found.leader_id, found.leader_epoch)

    def endpoints(self) -> list[Endpoint]:
        """Where those are that were named."""
        if not self._named:
            return []
        call = self._call
        known = addresses(call.broker, call.caller, call.dialled)
        return [Endpoint(*each) for each in known if each.broker_id in self._named]
