"""What a replica wants done, in the order in which it says it.

The order is the contract. `SaveVote` is durable before the next effect is begun: no vote is sent that a crash could
take back. `Append` and `CutEnd` reach the disk in their order, but need not be durable until `Flushed` says so, and
whatever rests on durability is said only in answer to that: a follower's next fetch, a leader's count of itself. After
a crash a log is some beginning of the sequence of its appends and cuts, with everything that was flushed.
"""

from __future__ import annotations

from dataclasses import dataclass

from zurau.epochs import Position
from zurau.ids import BrokerId, Epoch, Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.messages import Fetched, Message, SnapshotPoint
from zurau.replica.partition_state import InSyncProposal
from zurau.replica.position import Item
from zurau.replica.roles import Role


@dataclass(frozen=True, slots=True)
class SaveVote:
    """Durable before anything that follows."""

    epoch: Epoch
    voted_for: ReplicaId | None


@dataclass(frozen=True, slots=True)
class Append:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class CutEnd:
    """Drop marks of epochs later than the point's, and everything from its offset on."""

    point: Position


@dataclass(frozen=True, slots=True)
class AdvanceStart:
    """Remove what is below `offset`, as the leader has: committed, and flushed here. The new start is durable before
    the records are gone; when they go is the shell's business."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class StartFlush:
    """In the background; then say `Flushed(number)`. A flush that fails is the end of this replica."""

    number: int


@dataclass(frozen=True, slots=True)
class Send:
    to: BrokerId
    message: Message


@dataclass(frozen=True, slots=True)
class ReadAndSend:
    """Send `message` with batches read from `from_offset`, whole ones, below `upto_offset`: as many as `max_bytes` has
    room for, and at least one.

    If the read takes a while, ask afterwards whether this replica still leads in the message's epoch.
    """

    to: BrokerId
    message: Fetched
    from_offset: Offset
    upto_offset: Offset
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    """Get a snapshot of what the leader had before this point, store it, then say `SnapshotStored`; meanwhile
    `SnapshotProgressed`. It takes the place of any that was asked for before."""

    leader: ReplicaId
    point: SnapshotPoint


@dataclass(frozen=True, slots=True)
class RestartLog:
    """Replace the log by an empty one that begins here; durable before anything that follows."""

    point: SnapshotPoint


@dataclass(frozen=True, slots=True)
class Release:
    """The high watermark is here now: whoever waits for an offset below it is done.

    It may be written down for the next start, but then as `safe_high_watermark`.
    """

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class LeadershipEstablished:
    """The leader's mark is committed, so its high watermark is the true one: end offsets may be told from now on, and
    what was written before this epoch may be loaded. Said once in a leadership, whether the high watermark moves or
    not."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Refuse:
    """What was asked in this step is not done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Announce:
    """The replica's role has changed. Whoever waits for a leader that is none any more has no answer to expect."""

    role: Role
    epoch: Epoch
    leader: ReplicaId | None


@dataclass(frozen=True, slots=True)
class AskController:
    """It will answer with the state of the partition, changed or not."""

    proposal: InSyncProposal


Effect = (
    SaveVote
    | Append
    | CutEnd
    | AdvanceStart
    | StartFlush
    | Send
    | ReadAndSend
    | FetchSnapshot
    | RestartLog
    | Release
    | LeadershipEstablished
    | Refuse
    | Announce
    | AskController
)
