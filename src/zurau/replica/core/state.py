"""What a replica keeps through all its roles, and the effects that it is about to say."""

from __future__ import annotations

import msgspec

from zurau.epochs import Position
from zurau.ids import BrokerId, Epoch, Offset
from zurau.ports import Randomness
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceStart,
    Append,
    Effect,
    FetchSnapshot,
    RestartLog,
    SaveVote,
    Send,
    StartFlush,
    Truncate,
)
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership, Voters
from zurau.replica.core.messages import Fetch, FetchRefused, Message, SnapshotPoint
from zurau.replica.core.settings import ReplicaSettings


class ReplicaState(msgspec.Struct):
    id: ReplicaId
    #: Other brokers that may hold the partition: whom to ask who leads.
    brokers: tuple[BrokerId, ...]
    log: LogView
    membership: Membership
    settings: ReplicaSettings
    randomness: Randomness
    #: Durable, both: they change only together with a `SaveVote`. Invariant: the epoch only grows, and within an epoch
    #: the vote is given once.
    epoch: Epoch = 0
    voted_for: ReplicaId | None = None
    #: Who leads in this epoch, if known.
    leader: ReplicaId | None = None
    #: Invariant: only grows, and is never behind the log's end.
    high_watermark: Offset = 0
    #: Where a leader's log begins, as far as it was said: this one shall not begin earlier when that is safe.
    leader_start: Offset = 0
    #: A snapshot is on its way, so much of it has come, and it is given up for lost then.
    is_loading: bool = False
    loaded: int = 0
    load_stalled_ms: int = 0
    now_ms: int = 0
    effects: list[Effect] = msgspec.field(default_factory=list)
    #: They begin at a random number, so that an answer from before a restart fits no fetch after it.
    last_fetch_id: int = 0
    #: The number of this broker's start, where a controller counts them.
    broker_epoch: Epoch = -1
    #: The voters for which the two below were made.
    _voters: Voters | None = None
    _other_voters: Voters = ()
    _is_voter: bool = False

    @property
    def voters(self) -> Voters:
        return self.membership.voters

    @property
    def is_voter(self) -> bool:
        if self.membership.voters is not self._voters:
            self._look_at_voters()
        return self._is_voter

    @property
    def other_voters(self) -> Voters:
        if self.membership.voters is not self._voters:
            self._look_at_voters()
        return self._other_voters

    @property
    def may_stand(self) -> bool:
        """It votes; or it did until a change that may not be committed. Perhaps nobody else has that change: then the
        others' logs are too short to win its vote, and nobody but this one could lead (Ongaro's thesis, 4.2.2)."""
        membership = self.membership
        is_removal_open = not membership.is_settled(self.high_watermark) and self.id in membership.before_last_change
        return self.is_voter or is_removal_open

    def _look_at_voters(self) -> None:
        self._voters = self.membership.voters
        self._other_voters = tuple(voter for voter in self._voters if voter != self.id)
        self._is_voter = self.id in self._voters

    @property
    def stored(self) -> Position:
        """How much of its log this replica may be counted for."""
        return self.log.flushed if self.settings.waits_for_flush else self.log.position

    @property
    def safe_high_watermark(self) -> Offset:
        return min(self.high_watermark, self.log.flushed.offset)

    def randomized_deadline(self, duration_ms: int) -> int:
        """A moment between one and two durations from now."""
        return self.now_ms + duration_ms + self.randomness.below(duration_ms)

    def random_peer(self) -> BrokerId | None:
        """Some other broker that may know who leads."""
        known = sorted({*self.brokers, *(voter.broker for voter in self.voters)} - {self.id.broker})
        return known[self.randomness.below(len(known))] if known else None

    # Effects that go with a change of state

    def send(self, to: BrokerId, message: Message) -> None:
        self.effects.append(Send(to, message))

    def ask(self, to: BrokerId) -> int:
        """Fetch from there; returns the number that the answer will have."""
        self.last_fetch_id += 1
        fetch = Fetch(
            self.id,
            self.epoch,
            self.last_fetch_id,
            self.stored,
            self.high_watermark,
            self.broker_epoch,
            self.log.start_offset,
            self.loaded,
        )
        self.send(to, fetch)
        return self.last_fetch_id

    def refuse_fetch(self, to: BrokerId, fetch_id: int, *, hears_leader: bool = True) -> None:
        """Says who leads: but to name one that is not heard any more would keep the asker from looking for another."""
        self.send(to, FetchRefused(self.id, self.epoch, fetch_id, self.leader if hears_leader else None))

    def save_vote(self, epoch: Epoch, voted_for: ReplicaId | None) -> None:
        assert epoch >= self.epoch, f"epoch {epoch} after {self.epoch}"
        if epoch > self.epoch:
            self.leader = None
        self.epoch = epoch
        self.voted_for = voted_for
        self.effects.append(SaveVote(epoch, voted_for))

    def append(self, *items: Item) -> None:
        for item in items:
            self.log.append(item)
        self.appended(items)

    def appended(self, items: tuple[Item, ...]) -> None:
        """The log view has these already."""
        if items:
            self.membership.appended(items)
            self.effects.append(Append(items))
            self.flush()

    def flush(self) -> None:
        number = self.log.begin_flush()
        if number is not None:
            self.effects.append(StartFlush(number))

    def truncate(self, diverging: Position) -> None:
        point = self.log.truncation_point(diverging)
        known = self.high_watermark
        assert point.offset >= known, f"truncating at {point}, below the high watermark {known}"
        self.log.truncate(point)
        self.membership.truncate(point.offset)
        self.effects.append(Truncate(point))

    def start_moved(self, offset: Offset) -> None:
        """The log begins here now. No news if it was decided meanwhile that it begins later, as the leader's does."""
        if offset <= self.log.start_offset:
            return
        assert offset <= self.safe_high_watermark, "what is not committed and flushed may still be needed"
        self.log.advance_start(offset)
        self.membership.advance_start(offset)

    def follow_start(self) -> bool:
        """Delete what the leader has deleted, as far as it is committed and flushed here; true when that is more."""
        if self.leader_start <= self.log.start_offset:
            return False
        offset = min(self.leader_start, self.safe_high_watermark)
        if offset <= self.log.start_offset or not self.settings.follows_start:
            return False
        self.start_moved(offset)
        self.effects.append(AdvanceStart(offset))
        return True

    # Snapshots: they may take longer than anybody's patience, and outlast the role that asked for them

    def fetch_snapshot(self, leader: ReplicaId, point: SnapshotPoint) -> None:
        """Unless one is on its way: to begin again with every answer of a leader would be never to end."""
        if not self.is_loading or self.now_ms >= self.load_stalled_ms:
            self.is_loading = True
            self.snapshot_progressed(0)
            self.effects.append(FetchSnapshot(leader, point))

    def snapshot_progressed(self, loaded: int) -> None:
        self.loaded = loaded
        self.load_stalled_ms = self.now_ms + self.settings.fetch_timeout_ms

    def install_snapshot(self, point: SnapshotPoint) -> None:
        self.is_loading, self.loaded = False, 0
        position, mark = self.log.position, point.mark
        # It may come late, from a leader that was: what another one sent since may be promised, and must stay. What a
        # snapshot holds is committed, so a log that is shorter, or was written by older epochs there, has nothing that
        # is committed and not in the snapshot.
        if position.offset < mark.start_offset or position.epoch < mark.epoch:
            self.effects.append(RestartLog(point))
            self.log.restart(mark)
            self.membership.restart(point.voters)
            self.raise_high_watermark(mark.start_offset)

    def raise_high_watermark(self, offset: Offset) -> bool:
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log.position.offset, f"high watermark {offset} behind the end {self.log.end_offset}"
        self.high_watermark = offset
        self.effects.append(AdvanceHighWatermark(offset))
        return True
