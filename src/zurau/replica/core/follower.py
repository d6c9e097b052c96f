"""A follower has one fetch open, and sends the next one when it has stored the last answer.

So a fetch is also an acknowledgement: everything before its position is as durable here as the topic asks. Without a
leader it asks anybody, to hear who leads. A learner is a follower that does not vote: it never stands for election.
"""

from __future__ import annotations

from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import BeginEpoch, EndEpoch, Fetched, FetchRefused, HighWatermark, Message
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.settings import NEVER_MS
from zurau.replica.core.state import ReplicaState


class Follower:
    role = Role.FOLLOWER

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        #: How long it waits for its leader, drawn once, and when it stops to.
        self._patience_ms = state.randomized_deadline(state.settings.fetch_timeout_ms) - state.now_ms
        self._patience_ends_ms = state.now_ms + self._patience_ms
        self._fetch_id: int | None = None
        self._ask_again_ms = 0
        #: The leader has answered, and its session goes on saying so: there is nothing to wait for.
        self._is_quiesced = False
        #: Only a leader that has answered is a reason to refuse somebody else a pre-vote. Refusing for one that was
        #: merely heard of could keep a partition without a leader: two that know of each other, neither alive.
        self.has_fetched = False
        #: The connection to the leader has ended, and it was not heard since.
        self.is_disconnected = False
        self._heard_ms = state.now_ms

    def enter(self) -> Cause | None:
        if self._state.voters == (self._state.id,):
            return Cause.LEADER_SILENT  # nobody else could lead
        self._ask()
        return None

    @property
    def deadline_ms(self) -> int:
        if self._is_quiesced:
            return NEVER_MS
        return min(self._patience_ends_ms, self._ask_again_ms)

    def time_passed(self) -> Cause | None:
        state = self._state
        if self._is_quiesced:
            return None
        if state.now_ms >= self._patience_ends_ms:
            if state.may_stand:
                return Cause.LEADER_SILENT
            state.leader = None
            self._hear_again()
        if state.now_ms >= self._ask_again_ms:
            self._ask()
        return None

    def flushed(self) -> Cause | None:
        if self._state.follow_start() or self._fetch_id is None:
            self._ask()
        return None

    def vote_granted(self) -> None:
        """Give the one it voted for the time to win."""
        self._hear_again()

    def fetch_progressed(self) -> None:
        if self._fetch_id is not None and self._state.leader is not None:
            self._hear_again()

    def disconnected(self) -> None:
        """Wait a moment, for it may be back, and keep nobody from standing for election meanwhile. The followers stand
        one after the other, in an order that all of them know, so that they do not take each other's votes."""
        state = self._state
        self.has_fetched, self.is_disconnected = False, True
        if state.is_voter and state.leader is not None:
            followers = [voter for voter in state.voters if voter != state.leader]
            rank = (followers.index(state.id) + state.epoch) % len(followers)
            soon_ms = state.now_ms + (2 * rank + 1) * state.settings.stagger_ms // 2
            self._patience_ends_ms = min(self._patience_ends_ms, soon_ms)

    @property
    def hears_leader(self) -> bool:
        """It was answered, and that is not longer ago than anybody waits for."""
        is_recent = self._is_quiesced or self._state.now_ms < self._heard_ms + self._state.settings.fetch_timeout_ms
        return self.has_fetched and self._state.leader is not None and is_recent

    # Quiescence: the session between the brokers speaks for the other side

    @property
    def quiesced_with(self) -> tuple[ReplicaId, ...]:
        return (self._state.leader,) if self._is_quiesced and self._state.leader is not None else ()

    def quiesce(self, answer: Fetched) -> None:
        state = self._state
        self._is_quiesced = self._fetch_id is not None and (answer.sender, answer.epoch) == (state.leader, state.epoch)

    def unquiesced(self, replica: ReplicaId, at_ms: int) -> None:
        if self._is_quiesced and replica == self._state.leader:
            self._is_quiesced = False
            self._ask_again_ms = self._state.now_ms + self._state.settings.retry_ms
            self._hear_again(at_ms)

    # What comes in

    def receive(self, message: Message) -> Cause | None:
        if type(message) is Fetched:
            if message.fetch_id == self._fetch_id and message.sender == self._state.leader:
                self._fetched(message)
            return None
        if type(message) is HighWatermark:
            if message.fetch_id == self._fetch_id and message.sender == self._state.leader:
                self._committed(message)
            return None
        match message:
            case FetchRefused() if message.fetch_id == self._fetch_id:
                self._state.leader = None
                self._is_quiesced = False
            case BeginEpoch() if self._fetch_id is None:
                self._ask()
            case EndEpoch() if message.sender == self._state.leader:
                return self._leader_resigned(message)
        return None

    def snapshot_stored(self) -> None:
        self._ask()

    # Asking

    def _ask(self) -> None:
        state = self._state
        self._ask_again_ms = state.now_ms + state.settings.retry_ms
        self._fetch_id = None
        if state.stored != state.log.position:
            state.flush()
            return  # asking would promise what a crash could take back
        to = state.leader.broker if state.leader is not None else state.random_peer()
        if to is None:
            return
        self._fetch_id = state.ask(to)
        if state.leader is not None:
            self._ask_again_ms += state.settings.fetch_wait_ms

    def _fetched(self, answer: Fetched) -> None:
        state = self._state
        self._fetch_id = None
        self.has_fetched, self.is_disconnected = True, False
        self._hear_again()
        if answer.snapshot is not None:
            state.fetch_snapshot(answer.sender, answer.snapshot)
            self._ask_again_ms = state.now_ms + state.settings.retry_ms  # each wants to know that the other is there
            return
        if answer.diverging is not None:
            # Its high watermark says nothing about a log that is about to be truncated.
            state.truncate(answer.diverging)
        else:
            state.appended(state.log.merge(answer.marks, answer.batches))
            state.raise_high_watermark(min(answer.high_watermark, state.log.end_offset))
            if answer.log_start > state.leader_start:
                state.leader_start = answer.log_start
            state.follow_start()
        self._ask()

    def _committed(self, news: HighWatermark) -> None:
        """Its fetch waits on. The leader compared it with its own log, and nothing was appended here since."""
        state = self._state
        self._hear_again()
        state.raise_high_watermark(min(news.high_watermark, state.log.end_offset))
        if state.follow_start():
            self._ask()

    # Patience

    def _hear_again(self, at_ms: int | None = None) -> None:
        self._heard_ms = self._state.now_ms if at_ms is None else at_ms
        self._patience_ends_ms = self._heard_ms + self._patience_ms

    def _leader_resigned(self, message: EndEpoch) -> Cause | None:
        state = self._state
        state.leader = None
        self.has_fetched = False
        self._is_quiesced = False
        if not state.is_voter or state.id not in message.successors:
            return None
        rank = message.successors.index(state.id)
        if rank == 0:
            return Cause.NAMED_SUCCESSOR
        self._patience_ends_ms = state.now_ms + rank * state.settings.stagger_ms
        return None
