"""What replicas of one partition say to each other.

Every message carries its sender and the sender's epoch. Whoever hears of a larger epoch adopts it first, and whoever
hears of a smaller one answers with its own; the request for a pre-vote is the exception, because it must not disturb.
Messages are addressed to brokers; a vote also names the replica that it is for, since a broker may have lost its disk.

Messages are values, and nobody changes one that was made. They are msgspec's structs, as events and effects are:
commits are made of little else, and a dataclass takes four times as long to make.
"""

from __future__ import annotations

import msgspec

from zurau.epochs import EpochMark, Position
from zurau.ids import Epoch, Offset
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import Voters


class Fetch(msgspec.Struct, gc=False):
    """I have flushed everything up to `position`: what comes next? Also the way to ask who leads."""

    sender: ReplicaId
    epoch: Epoch
    #: Answers to older fetches are stale: the log may have been truncated meanwhile.
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


class Fetched(msgspec.Struct, gc=False):
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


class SnapshotPoint(msgspec.Struct, frozen=True, gc=False):
    """Where a log begins: the epoch of the last record before it, and who voted then."""

    mark: EpochMark
    voters: Voters


class FetchRefused(msgspec.Struct, gc=False):
    """I do not lead in your epoch. This one does, if I know."""

    sender: ReplicaId
    epoch: Epoch
    fetch_id: int
    leader: ReplicaId | None


class HighWatermark(msgspec.Struct, gc=False):
    """News for a fetch that waits: more is committed. The fetch goes on waiting, from the higher high watermark on."""

    sender: ReplicaId
    epoch: Epoch
    fetch_id: int
    high_watermark: Offset


class Vote(msgspec.Struct, gc=False):
    """Would you have me lead (`is_pre`), or: have me lead."""

    sender: ReplicaId
    #: The epoch to lead in; for a pre-vote, the one that the asker would leave.
    epoch: Epoch
    voter: ReplicaId
    position: Position
    is_pre: bool


class VoteAnswer(msgspec.Struct, gc=False):
    sender: ReplicaId
    epoch: Epoch
    is_granted: bool
    is_pre: bool
    #: The leader that the voter still hears.
    leader: ReplicaId | None = None


class BeginEpoch(msgspec.Struct, gc=False):
    """I lead; fetch from me. Repeated until every voter has; said once where the controller names leaders."""

    sender: ReplicaId
    epoch: Epoch


class EndEpoch(msgspec.Struct, gc=False):
    """I lead no more. The first of the successors may stand for election at once, the others one after the other."""

    sender: ReplicaId
    epoch: Epoch
    successors: Voters


Message = Fetch | Fetched | FetchRefused | HighWatermark | Vote | VoteAnswer | BeginEpoch | EndEpoch


def with_high_watermark(fetch: Fetch, high_watermark: Offset) -> Fetch:
    return Fetch(
        fetch.sender,
        fetch.epoch,
        fetch.fetch_id,
        fetch.position,
        high_watermark,
        fetch.broker_epoch,
        fetch.log_start,
        fetch.loaded,
    )


def for_fetch(message: Fetched | FetchRefused | HighWatermark, fetch_id: int) -> Fetched | FetchRefused | HighWatermark:
    """The same, as an answer to another fetch that asks the same."""
    match message:
        case Fetched():
            return Fetched(
                message.sender,
                message.epoch,
                fetch_id,
                message.high_watermark,
                message.marks,
                message.batches,
                message.diverging,
                message.snapshot,
                message.log_start,
            )
        case FetchRefused():
            return FetchRefused(message.sender, message.epoch, fetch_id, message.leader)
    return HighWatermark(message.sender, message.epoch, fetch_id, message.high_watermark)


def leader_named_by(message: Message) -> ReplicaId | None:
    """Who leads in the message's epoch, as far as it says."""
    match message:
        case Fetched() | HighWatermark() | BeginEpoch():
            return message.sender
        case FetchRefused() | VoteAnswer():
            return message.leader
        case _:
            return None
