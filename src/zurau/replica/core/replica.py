"""One replica of a partition: told what happened, it says what follows. What both modes share.

    effects = replica.step(event, now_ms)

The same events at the same times, with the same randomness, give the same effects. Carry the effects out in their
order (`effects.py` says what has to be durable when), and come back with `TimePassed` when `deadline_ms` has come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from zurau.epochs import Position
from zurau.ids import Epoch, Offset
from zurau.replica.core.effects import Effect, Refuse
from zurau.replica.core.events import (
    Event,
    FetchProgressed,
    Flushed,
    FollowerQuiesced,
    LeaderDisconnected,
    LeaderQuiesced,
    LogStartMoved,
    Received,
    RecordsWritten,
    SettingsChanged,
    ShutdownAsked,
    SnapshotProgressed,
    SnapshotStored,
    TimePassed,
    Unquiesced,
)
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership
from zurau.replica.core.messages import Message
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Cause, Role
from zurau.replica.core.serving import Serving
from zurau.replica.core.state import ReplicaState

#: What happens with every commit. Of these, only one that comes late can find something due.
_OFTEN = frozenset({Received, Flushed, RecordsWritten})


class RoleHandler(Protocol):
    """What a replica does in one role. Each handler may say why the role ends (`roles.py`)."""

    role: Role

    @property
    def deadline_ms(self) -> int:
        """Nothing is due before; it may be named early, and is looked at in every step."""

    def enter(self) -> Cause | None: ...
    def time_passed(self) -> Cause | None: ...
    def flushed(self) -> Cause | None: ...
    def receive(self, message: Message) -> Cause | None: ...


class ReplicaCore(ABC):
    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._role: RoleHandler | None = None
        self._is_in_step = False
        #: Come back with `TimePassed` then, unless something else happens.
        self.deadline_ms = 0
        self.id: ReplicaId = state.id
        #: Read only: whoever asks looks at it, and leaves it as it is.
        self.log: LogView = state.log

    # What may be asked of it. Nothing of it can be changed from outside

    @property
    def role(self) -> Role:
        return self._role.role if self._role is not None else Role.FOLLOWER

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
        """What may be stored for the next start, and what retention may remove. Not more than is flushed: a truncation
        that is not may come undone in a crash, and what was truncated must not pass for committed then."""
        return self._state.safe_high_watermark

    @property
    def membership(self) -> Membership:
        return self._state.membership

    @property
    def low_watermark(self) -> Offset | None:
        """What is below this is deleted on every replica that the leader knows; None when it does not lead."""
        if not isinstance(self._role, Serving):
            return None
        return self._role.low_watermark

    @property
    def followers(self) -> Mapping[ReplicaId, Progress]:
        """What a leader knows of those that follow it. Read only."""
        if not isinstance(self._role, Serving):
            return {}
        return self._role.followers

    @property
    def stored(self) -> Position:
        """How much of its log it may be counted for."""
        return self._state.stored

    @property
    def is_established(self) -> bool:
        """It leads, and knows the true high watermark: before that, an end offset told to a client might go back."""
        return isinstance(self._role, Serving) and self._role.is_established

    @property
    def quiesced_with(self) -> tuple[ReplicaId, ...]:
        """Whose sessions speak for them here."""
        return self._role.quiesced_with if isinstance(self._role, Follower | Serving) else ()

    @property
    def hears_leader(self) -> bool:
        """It leads, or follows somebody that has answered."""
        if isinstance(self._role, Serving):
            return True
        return isinstance(self._role, Follower) and self._role.hears_leader

    @property
    @abstractmethod
    def counted(self) -> tuple[ReplicaId, ...]:
        """Those that what is committed depends on, as far as this one knows."""

    @property
    @abstractmethod
    def in_step(self) -> tuple[ReplicaId, ...]:
        """Those that follow this leader and have what is committed, nearly; nobody when it does not lead."""

    @abstractmethod
    def refusal(self, *, acks_all: bool) -> str | None:
        """Why records cannot be written now; None if they can. Whoever does not wait until they are committed
        (`acks_all`) may write while fewer replicas are in sync than `min.insync.replicas`."""

    @property
    @abstractmethod
    def acknowledging(self) -> int:
        """How many replicas have a record for certain when it is acknowledged."""

    @property
    def replicated_offset(self) -> Offset:
        """What is below it is committed, and stored by as many replicas as `min.insync.replicas` asks for."""
        return self.high_watermark

    # What it is told

    def step(self, event: Event, now_ms: int) -> tuple[Effect, ...]:
        # An exception leaves the core ahead of its disk, with effects that nobody has heard of: there is no next step.
        assert not self._is_in_step, f"{self.id} broke off in the middle of a step: stop it, and start it from its disk"
        self._is_in_step = True
        state = self._state
        state.effects = []
        kind = type(event)
        if now_ms > state.now_ms:
            state.now_ms = now_ms
        if kind is RecordsWritten:
            # They are in the log already, so they count even if the leadership in which they were written is over now.
            # A leader is told of its own records most often of all, and nobody else knows what to do with them.
            cause = self._handle_own(event)
            if cause is not None:  # pragma: no cover - who is voted out has not its own records to wait for
                self._move(cause)
        if kind not in _OFTEN or state.now_ms >= self.deadline_ms:
            # Before anything else: one that was stopped for a while must not act on a leadership that is over.
            self._pass_time()
        if kind is not TimePassed and kind is not RecordsWritten:
            cause = self._receive(event.message) if kind is Received else self._handle(event)  # type: ignore[union-attr]
            if cause is not None:
                self._move(cause)
        self.deadline_ms = self._role.deadline_ms  # type: ignore[union-attr]
        self._is_in_step = False
        return tuple(state.effects)

    def _pass_time(self) -> None:
        if self._role is None:
            self._begin()
        assert self._role is not None
        cause = self._role.time_passed()
        if cause is not None:
            self._move(cause)

    def _handle(self, event: Event) -> Cause | None:
        assert self._role is not None
        kind = type(event)
        if kind is Flushed:
            log = self._state.log
            log.flush_done(event.number, event.upto)  # type: ignore[union-attr]
            if log.flushed != log.position:
                self._state.flush()
            return self._role.flushed()
        if isinstance(self._role, Serving):
            self._role.look_anew()
        return self._handle_rarely(event, self._role)

    def _handle_rarely(self, event: Event, role: RoleHandler) -> Cause | None:
        state = self._state
        match event:
            case FollowerQuiesced(fetch):
                if isinstance(role, Serving):
                    role.quiesce(fetch)
                return self._receive(fetch)
            case LeaderQuiesced(answer) if isinstance(role, Follower):
                role.quiesce(answer)
            case Unquiesced(replica, at_ms) if isinstance(role, Follower | Serving):
                role.unquiesced(replica, at_ms)
            case FetchProgressed() | LeaderDisconnected() if isinstance(role, Follower):
                role.fetch_progressed() if type(event) is FetchProgressed else role.disconnected()
            case LogStartMoved(offset):
                state.start_moved(offset)
                if isinstance(role, Serving):
                    role.tell_news()
            case SettingsChanged(settings):
                state.settings = settings
                return role.flushed()  # what counts as stored may be more now
            case SnapshotProgressed(loaded):
                state.snapshot_progressed(loaded)
            case SnapshotStored(point) if not isinstance(role, Serving):
                state.install_snapshot(point)
                if isinstance(role, Follower):
                    role.snapshot_stored()
            case _:
                return self._handle_own(event)
        return None

    def _refuse(self, event: Event) -> None:
        """Somebody wants something that only a leader does."""
        assert type(event) is not RecordsWritten, f"{self.id} wrote records of its own, and does not lead"
        passed_by = (LeaderQuiesced, Unquiesced, FetchProgressed, LeaderDisconnected, SnapshotStored, ShutdownAsked)
        if not isinstance(event, passed_by):
            self._state.effects.append(Refuse("this replica does not lead"))

    @abstractmethod
    def _begin(self) -> None:
        """The first step: take the first role."""

    @abstractmethod
    def _receive(self, message: Message) -> Cause | None: ...

    @abstractmethod
    def _handle_own(self, event: Event) -> Cause | None:
        """What only this mode knows."""

    @abstractmethod
    def _move(self, cause: Cause | None) -> None:
        """What becomes of the replica."""
