"""What replicas of one partition say to each other.

Every message carries its sender and the sender's epoch. Whoever hears of a larger epoch adopts it first, and whoever
hears of a smaller one answers with its own; the question for a pre-vote is the exception, because it must not disturb.
Messages are addressed to brokers; a vote also names the replica that it is for, since a broker may have lost its disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from zurau.epochs import EpochMark, Position
from zurau.ids import Epoch, Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.membership import Voters
from zurau.replica.position import Batch


@dataclass(frozen=True, slots=True)
class Fetch:
    """I have flushed everything up to `position`: what comes next? Also the way to ask who leads."""

    sender: ReplicaId
    epoch: Epoch
    #: Answers to older questions are stale: the log may have been cut meanwhile.
    fetch_id: int
    position: Position
    #: Where the asker believes the high watermark to be; news of a higher one are worth an answer.
    high_watermark: Offset
    #: Which start of the asker's broker this is, as the controller counts. Of no interest where replicas vote.
    broker_epoch: Epoch = -1
    #: Where the asker's log begins: what is deleted is deleted when every replica has said so.
    log_start: Offset = 0
    #: How many bytes have come of a snapshot that the asker is loading: it moves on, although its position does not.
    loaded: int = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    sender: ReplicaId
    epoch: Epoch
    fetch_id: int
    high_watermark: Offset
    #: All marks later than the asker's last one.
    marks: tuple[EpochMark, ...] = ()
    #: Filled in by whoever reads the log.
    batches: tuple[Batch, ...] = ()
    #: Set when the asker's log has something that the leader's has not: the last that they have in common.
    diverging: Position | None = None
    #: Set when the leader's log begins too late for the asker: begin anew here, with a snapshot of what was before.
    snapshot: SnapshotPoint | None = None
    #: Where the leader's log begins: what was deleted there is to be deleted everywhere, or it would come back with the
    #: next leader.
    log_start: Offset = 0


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """Where a log begins: the epoch of the last record before it, and who voted then."""

    mark: EpochMark
    voters: Voters


@dataclass(frozen=True, slots=True)
class FetchRefused:
    """I do not lead in your epoch. This one does, if I know."""

    sender: ReplicaId
    epoch: Epoch
    fetch_id: int
    leader: ReplicaId | None


@dataclass(frozen=True, slots=True)
class Vote:
    """Would you have me lead (`is_pre`), or: have me lead."""

    sender: ReplicaId
    #: The epoch to lead in; for a pre-vote, the one that the asker would leave.
    epoch: Epoch
    voter: ReplicaId
    position: Position
    is_pre: bool


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    sender: ReplicaId
    epoch: Epoch
    is_granted: bool
    is_pre: bool
    #: The leader that the voter still hears.
    leader: ReplicaId | None = None


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """I lead; fetch from me. Repeated until every voter has."""

    sender: ReplicaId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """I lead no more. The first of the successors may stand for election at once, the others one after the other."""

    sender: ReplicaId
    epoch: Epoch
    successors: Voters


Message = Fetch | Fetched | FetchRefused | Vote | VoteAnswer | BeginEpoch | EndEpoch


def leader_named_by(message: Message) -> ReplicaId | None:
    """Who leads in the message's epoch, as far as it says."""
    match message:
        case Fetched() | BeginEpoch():
            return message.sender
        case FetchRefused() | VoteAnswer():
            return message.leader
        case _:
            return None
