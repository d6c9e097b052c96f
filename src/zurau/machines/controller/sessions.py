"""Which brokers are alive: when each was last heard of, and what it said. Not in the log: who leads it next hears them.

A broker whose session is over is fenced. After a load everybody gets a whole session to be heard of; and until a broker
was heard, nobody knows which of its replicas work, so none of them is made a leader.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from zurau.ids import BrokerId, Offset, PartitionId
from zurau.machines.controller.image import BrokerImage, ClusterImage

#: This part of a session is left to a broker whose connection has ended. One that lives dials again in a fraction of
#: that; and as long as it lasts, the partitions that it leads in mode isr, or is in sync in, take no writes.
_DISCONNECTED_SHARE = 8


class _Session(msgspec.Struct):
    heard_ms: int
    #: When to look whether it is over.
    look_ms: int
    #: None: it has not said anything yet.
    failed: frozenset[PartitionId] | None = None
    metadata_offset: Offset = -1
    #: Others that lead in its place have to know so up to this offset before it may stop.
    moved_at: Offset | None = None


class BrokerSessions:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[BrokerId, _Session] = {}

    def begin(self, broker: BrokerId, now_ms: int) -> None:
        """It has registered, or this controller has just taken over."""
        self._sessions[broker] = _Session(now_ms, now_ms + self._timeout_ms)

    def heard(self, broker: BrokerId, now_ms: int, metadata_offset: Offset, failed: frozenset[PartitionId]) -> None:
        session = self._sessions[broker]
        session.heard_ms, session.look_ms = now_ms, now_ms + self._timeout_ms
        session.metadata_offset, session.failed = metadata_offset, failed

    def disconnected(self, broker: BrokerId, since_ms: int) -> None:
        """Its connection has ended. It has time to connect again, and to say so."""
        session = self._sessions.get(broker)
        if session is not None:
            session.look_ms = min(session.look_ms, since_ms + self._timeout_ms // _DISCONNECTED_SHARE)

    def is_alive(self, broker: BrokerId, now_ms: int) -> bool:
        session = self._sessions.get(broker)
        return session is not None and now_ms < session.heard_ms + self._timeout_ms

    def works(self, broker: BrokerId, partition: PartitionId) -> bool:
        """Whether a broker's replica could lead, as far as the broker has said."""
        session = self._sessions.get(broker)
        return session is not None and session.failed is not None and partition not in session.failed

    # Stopping

    def moved_away(self, broker: BrokerId, last_offset: Offset, *, again: bool) -> None:
        """It leads nothing from this offset on; unless `again`, that may have been so for longer."""
        session = self._sessions[broker]
        if again or session.moved_at is None:
            session.moved_at = last_offset

    def is_known_to_be_moved(self, broker: BrokerId, others: Mapping[BrokerId, BrokerImage]) -> bool:
        """Whether everybody else who is not fenced has heard that it leads nothing any more."""
        moved_at = self._sessions[broker].moved_at
        return moved_at is not None and all(
            other == broker or image.is_fenced or self._sessions[other].metadata_offset >= moved_at
            for other, image in others.items()
        )

    # Time

    def next_deadline_ms(self, image: ClusterImage) -> int | None:
        return min((self._sessions[broker].look_ms for broker in self._unfenced(image)), default=None)

    def over(self, image: ClusterImage, now_ms: int) -> list[BrokerId]:
        """Unfenced brokers that were silent for a whole session. Who stays unfenced is named again later."""
        last_heard_ms = max((session.heard_ms for session in self._sessions.values()), default=now_ms)
        if now_ms - last_heard_ms > self._timeout_ms // 2:
            # Nobody was heard, not even the controller's own broker: it is this process that was stopped for a while,
            # and what was said meanwhile waits to be heard.
            for broker in self._unfenced(image):
                self._sessions[broker].look_ms = now_ms + self._timeout_ms
            return []
        silent = [broker for broker in self._unfenced(image) if self._sessions[broker].look_ms <= now_ms]
        for broker in silent:
            self._sessions[broker].look_ms = now_ms + self._timeout_ms
        return silent

    def _unfenced(self, image: ClusterImage) -> list[BrokerId]:
        return [each for each in sorted(image.brokers) if not image.brokers[each].is_fenced and each in self._sessions]
