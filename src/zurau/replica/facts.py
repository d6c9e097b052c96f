"""What may be asked of a replica, in either mode. Nothing of it can be changed from outside."""

from __future__ import annotations

from zurau.epochs import Position
from zurau.ids import Epoch, Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.log_view import LogView
from zurau.replica.state import ReplicaState


class ReplicaFacts:
    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self.id: ReplicaId = state.id
        #: Read only: whoever asks looks at it, and leaves it as it is.
        self.log: LogView = state.log
        self._is_in_step = False

    def _begin_step(self, now_ms: int) -> None:
        """An exception in a step leaves the core ahead of its disk, with effects that nobody has heard of. Then there
        is no next step: the replica ends, and starts again from what its disk has."""
        assert not self._is_in_step, f"{self.id} broke off in the middle of a step: stop it, and start it from its disk"
        self._is_in_step = True
        state = self._state
        state.now_ms = max(now_ms, state.now_ms)
        state.effects = []

    @property
    def epoch(self) -> Epoch:
        return self._state.epoch

    @property
    def leader(self) -> ReplicaId | None:
        return self._state.leader

    @property
    def high_watermark(self) -> Offset:
        return self._state.high_watermark

    @property
    def safe_high_watermark(self) -> Offset:
        """What may be written down for the next start, and what retention may remove. Not more than is flushed: a cut
        that is not may come undone in a crash, and what was cut off must not pass for committed then."""
        return self._state.safe_high_watermark

    @property
    def stored(self) -> Position:
        """How much of its log it may be counted for."""
        return self._state.stored
