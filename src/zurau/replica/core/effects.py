"""What a replica wants done, in the order in which it says it.

The order is the contract. `SaveVote` is durable before the next effect is begun: no vote is sent that a crash could
take back. `Append` and `Truncate` reach the disk in their order, but need not be durable until `Flushed` says so, and
whatever rests on durability is said only in answer to that: a follower's next fetch, a leader's count of itself. After
a crash a log is some beginning of the sequence of its appends and truncations, with everything that was flushed.
"""

from __future__ import annotations

import msgspec

from zurau.epochs import Position
from zurau.ids import BrokerId, Epoch, Offset
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Item
from zurau.replica.core.messages import Fetched, Message, SnapshotPoint
from zurau.replica.core.partition_state import InSyncProposal
from zurau.replica.core.roles import Role


class SaveVote(msgspec.Struct, gc=False):
    """Durable before anything that follows."""

    epoch: Epoch
    voted_for: ReplicaId | None


class Append(msgspec.Struct, gc=False):
    items: tuple[Item, ...]


class Truncate(msgspec.Struct, gc=False):
    """Drop marks of epochs later than the point's, and everything from its offset on."""

    point: Position


class AdvanceStart(msgspec.Struct, gc=False):
    """Remove what is below `offset`, as the leader has: committed, and flushed here. The new start is durable before
    the records are gone; when they go is the shell's business."""

    offset: Offset


class StartFlush(msgspec.Struct, gc=False):
    """In the background; then say `Flushed(number)`. A flush that fails is the end of this replica."""

    number: int


class Send(msgspec.Struct, gc=False):
    to: BrokerId
    message: Message


class ReadAndSend(msgspec.Struct, gc=False):
    """Send `message` with batches read from `from_offset`, whole ones, below `upto_offset`: as many as `max_bytes` has
    room for, and at least one.

    If the read takes a while, ask afterwards whether this replica still leads in the message's epoch.
    """

    to: BrokerId
    message: Fetched
    from_offset: Offset
    upto_offset: Offset
    max_bytes: int


class FetchSnapshot(msgspec.Struct, gc=False):
    """Get a snapshot of what the leader had before this point, store it, then say `SnapshotStored`; meanwhile
    `SnapshotProgressed`. It takes the place of any that was asked for before."""

    leader: ReplicaId
    point: SnapshotPoint


class RestartLog(msgspec.Struct, gc=False):
    """Replace the log by an empty one that begins here; durable before anything that follows."""

    point: SnapshotPoint


class AdvanceHighWatermark(msgspec.Struct, gc=False):
    """The high watermark is here now: whoever waits for an offset below it is done.

    It may be written down for the next start, but then as `safe_high_watermark`.
    """

    high_watermark: Offset


class AdvanceReplicated(msgspec.Struct, gc=False):
    """What is below this is committed, and stored by so many voters: as many as `min.insync.replicas` asks for, where
    that is more than two. Whoever waits for them is done."""

    offset: Offset
    voter_count: int


class LeadershipEstablished(msgspec.Struct, gc=False):
    """The leader's mark is committed, so its high watermark is the true one: end offsets may be told from now on, and
    what was written before this epoch may be loaded. Said once in a leadership, also when no high watermark moves."""

    epoch: Epoch


class Refuse(msgspec.Struct, gc=False):
    """What was asked in this step is not done."""

    reason: str


class RoleChanged(msgspec.Struct, gc=False):
    """The replica's role has changed. Whoever waits for a leader that is none any more has no answer to expect."""

    role: Role
    epoch: Epoch
    leader: ReplicaId | None


class AlterPartition(msgspec.Struct, gc=False):
    """It will answer with the state of the partition, changed or not."""

    proposal: InSyncProposal


Effect = (
    SaveVote
    | Append
    | Truncate
    | AdvanceStart
    | StartFlush
    | Send
    | ReadAndSend
    | FetchSnapshot
    | RestartLog
    | AdvanceHighWatermark
    | AdvanceReplicated
    | LeadershipEstablished
    | Refuse
    | RoleChanged
    | AlterPartition
)
