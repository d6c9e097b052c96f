"""What a replica is told. All in the past tense: nothing here can be refused, only answered."""

from __future__ import annotations

from dataclasses import dataclass

from zurau.ids import Epoch, Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.messages import Fetch, Fetched, Message, SnapshotPoint
from zurau.replica.partition_state import PartitionState


@dataclass(frozen=True, slots=True)
class Received:
    message: Message


@dataclass(frozen=True, slots=True)
class FetchStands:
    """A follower asks this all the time from now on, although nobody says so, until `StoodUntil`. Replicas that have
    nothing to tell each other are at rest: the stream between their brokers is the sign of life of all of them."""

    fetch: Fetch


@dataclass(frozen=True, slots=True)
class AnswerStands:
    """The leader answers all the time from now on that there is nothing new, until `StoodUntil`."""

    answer: Fetched


@dataclass(frozen=True, slots=True)
class StoodUntil:
    """What that replica said stands no more. It was last heard of at that time."""

    replica: ReplicaId
    at_ms: int


@dataclass(frozen=True, slots=True)
class FetchProgressed:
    """Bytes are arriving from the leader's broker while this replica waits for an answer: it may be a large one on a
    slow link, and is not given up for lost."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The deadline that the replica named has come. Coming early or late does no harm."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """Everything that was appended before `StartFlush(number)` survives a power failure."""

    number: int


@dataclass(frozen=True, slots=True)
class RecordsOffered:
    """A producer wants `count` records written. They are appended or refused in the same step."""

    data: bytes
    count: int
    #: The producer waits until they are committed (`acks=all`). One that does not is also served while fewer replicas
    #: are in sync than `min.insync.replicas`.
    acks_all: bool = True


@dataclass(frozen=True, slots=True)
class VoterChangeAsked:
    """One voter more, or one less."""

    add: ReplicaId | None = None
    remove: ReplicaId | None = None


@dataclass(frozen=True, slots=True)
class TransferAsked:
    """Another voter shall lead."""

    to: ReplicaId


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """This broker is about to stop, or has no room for records any more."""


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Retention has removed what was below `offset`. Never above `safe_high_watermark`: a log that loses what was not
    flushed must not end before its start."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class SnapshotProgressed:
    """So many bytes of the snapshot that `FetchSnapshot` asked for have come. Say it now and then while they come: a
    replica that hears nothing for the fetch timeout takes the transfer for broken off, and asks anew."""

    loaded: int


@dataclass(frozen=True, slots=True)
class SnapshotStored:
    """The snapshot that `FetchSnapshot` asked for is on disk, flushed."""

    point: SnapshotPoint


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """What the metadata says of this partition, in in-sync mode.

    Heard only from metadata that knows this very start of the broker: what was decided before the controller counted it
    does not know what the start has lost. A broker that replays its own metadata at a start would else lead on in an
    epoch of which it has forgotten records.
    """

    partition: PartitionState
    #: The epoch under which the same metadata has registered this broker.
    broker_epoch: Epoch


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """The controller has counted this start of the broker."""

    broker_epoch: Epoch


Event = (
    Received
    | FetchStands
    | AnswerStands
    | StoodUntil
    | FetchProgressed
    | TimePassed
    | Flushed
    | RecordsOffered
    | VoterChangeAsked
    | TransferAsked
    | ShutdownAsked
    | LogStartMoved
    | SnapshotProgressed
    | SnapshotStored
    | PartitionChanged
    | BrokerRegistered
)
