"""SessionServer fetches: what every leader does, however it came to lead.

A fetch for which there is no news waits for some, a little: the answer also says that the leader is alive. A fetch
whose position is not on this log is corrected at once, and says nothing about how far the follower is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from zurau.epochs import EpochMark, Position
from zurau.ids import Offset
from zurau.replica.core.effects import LeadershipEstablished, ReadAndSend
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Fetch, Fetched, HighWatermark, SnapshotPoint
from zurau.replica.core.progress import Progress
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.core.state import ReplicaState


class Serving(ABC):
    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._followers: dict[ReplicaId, Progress] = {}
        #: Nothing is due before. Worked out when it has come: what happens until then mostly moves it back.
        self._deadline_ms = 0
        #: The leader's mark is committed, and with it everything before it: only now the high watermark is not too low.
        self.is_established = False

    def lead(self) -> None:
        """The first act of a leader: its mark."""
        state = self._state
        state.leader = state.id
        state.is_loading, state.loaded = False, 0
        state.append(EpochMark(state.epoch, state.log.end_offset))

    def establish(self) -> None:
        if not self.is_established:
            self.is_established = True
            self._state.effects.append(LeadershipEstablished(self._state.epoch))

    @property
    def deadline_ms(self) -> int:
        if self._deadline_ms <= self._state.now_ms:
            self._deadline_ms = self._due_ms()
        return self._deadline_ms

    @abstractmethod
    def _due_ms(self) -> int:
        """When something is due, as things are."""

    def look_anew(self) -> None:
        """Something may be due at any moment."""
        self._deadline_ms = 0

    def _wait_began(self) -> None:
        """A fetch was parked, or a flush begun. A leader waits for nothing shorter than a fetch waits for it."""
        due_ms = self._state.now_ms + self._state.settings.fetch_wait_ms
        if due_ms < self._deadline_ms:
            self._deadline_ms = due_ms

    def answer_fetch(self, fetch: Fetch) -> Progress | None:
        """What is known of the follower now; None when its log has to be corrected first."""
        state = self._state
        progress = self._followers.get(fetch.sender)
        if progress is None:
            progress = self._followers[fetch.sender] = Progress(state.now_ms)
        correction = self._correction(fetch)
        if correction is not None:
            progress.corrected(fetch, state.now_ms, is_snapshot=correction.snapshot is not None)
            state.send(fetch.sender.broker, correction)
            return None
        progress.asked(fetch, state.log.position, state.now_ms)
        progress.park(fetch, state.now_ms + state.settings.fetch_wait_ms)
        self._wait_began()
        return progress

    @property
    def followers(self) -> Mapping[ReplicaId, Progress]:
        return self._followers

    @property
    def quiesced_with(self) -> tuple[ReplicaId, ...]:
        return tuple(replica for replica, progress in self._followers.items() if progress.is_quiesced)

    def quiesce(self, fetch: Fetch) -> None:
        """It is asked until further notice, so it waits until then."""
        if fetch.epoch == self._state.epoch:
            self._followers.setdefault(fetch.sender, Progress(self._state.now_ms)).quiesce(fetch)

    def unquiesced(self, replica: ReplicaId, at_ms: int) -> None:
        if replica in self._followers:
            self._followers[replica].unquiesced(at_ms)

    def tell_news(self) -> None:
        """Answer the parked fetches of followers for whom there is something new."""
        for progress in self._followers.values():
            if progress.parked is not None:
                self.tell(progress)

    def tell(self, progress: Progress) -> None:
        """Answer its parked fetch if there is something new for it."""
        if progress.parked is None:
            return
        state, fetch = self._state, progress.parked[0]
        log = state.log
        if fetch.position != log.position or progress.told_start < log.start_offset > fetch.log_start:
            self._answer(progress, fetch)
        elif progress.told_high_watermark < state.high_watermark:
            progress.told_high_watermark = state.high_watermark
            news = HighWatermark(state.id, state.epoch, fetch.fetch_id, state.high_watermark)
            state.send(fetch.sender.broker, news)

    def answer_overdue(self) -> None:
        for progress in self._followers.values():
            if progress.parked is not None and self._state.now_ms >= progress.parked[1]:
                self._answer(progress, progress.parked[0])

    def forget_silent(self, expected: Collection[ReplicaId]) -> None:
        """One that nobody counts and that has not asked for long is forgotten; if it comes back, it is as if new."""
        limit_ms = self._state.now_ms - self._state.settings.forget_ms
        self._followers = {
            replica: progress
            for replica, progress in self._followers.items()
            if replica in expected or progress.asked_ms > limit_ms
        }

    def parked_until_ms(self) -> tuple[int, bool]:
        """When the first parked fetch is overdue, and whether every follower is quiescent."""
        until_ms, is_quiescent = NEVER_MS, True
        for progress in self._followers.values():
            parked = progress.parked
            if parked is None:
                is_quiescent = False
            elif not progress.is_quiesced:
                is_quiescent = False
                until_ms = min(until_ms, parked[1])
        return until_ms, is_quiescent

    @property
    def low_watermark(self) -> Offset:
        """What is below this is deleted on this leader and on every follower that it knows."""
        starts = [progress.log_start for progress in self._followers.values() if progress.has_fetched]
        return min([self._state.log.start_offset, *starts])

    def stored_by(self, replica: ReplicaId) -> Offset:
        """How far a replica counts, this one included: only what it has stored, and only behind this leader's mark."""
        state = self._state
        if replica != state.id:
            return self._followers[replica].stored_in(state.epoch)
        stored = state.stored
        return stored.offset if stored.epoch == state.epoch else -1

    def _correction(self, fetch: Fetch) -> Fetched | None:
        """What to answer to a follower whose log is not a beginning of this one."""
        log = self._state.log
        if fetch.position.epoch == log.position.epoch and log.start_offset <= fetch.position.offset <= log.end_offset:
            return None  # it holds this leader's mark: nearly every fetch
        first = log.epochs.marks[0]
        begins_too_late = fetch.position.offset < log.start_offset or fetch.position.epoch < first.epoch
        if log.start_offset > 0 and begins_too_late:
            mark = EpochMark(first.epoch, log.start_offset)
            return self._fetched(fetch, snapshot=SnapshotPoint(mark, self._state.membership.first))
        diverging = log.where_diverging(fetch.position)
        return self._fetched(fetch, diverging=diverging) if diverging is not None else None

    def _answer(self, progress: Progress, fetch: Fetch) -> None:
        state = self._state
        progress.answered(state.now_ms)
        progress.told_start = state.log.start_offset
        log, position = state.log, fetch.position
        marks = log.epochs.after(position.epoch)
        answer = Fetched(
            state.id, state.epoch, fetch.fetch_id, state.high_watermark, marks, (), None, None, log.start_offset
        )
        state.effects.append(
            ReadAndSend(
                fetch.sender.broker,
                answer,
                position.offset,
                log.end_offset,
                state.settings.fetch_max_bytes,
            )
        )

    def _fetched(
        self,
        fetch: Fetch,
        *,
        diverging: Position | None = None,
        snapshot: SnapshotPoint | None = None,
    ) -> Fetched:
        state = self._state
        return Fetched(
            state.id,
            state.epoch,
            fetch.fetch_id,
            state.high_watermark,
            diverging=diverging,
            snapshot=snapshot,
            log_start=state.log.start_offset,
        )
