"""What a replica is told. All in the past tense: nothing here can be refused, only answered."""

from __future__ import annotations

import msgspec

from zurau.epochs import Position
from zurau.ids import BrokerId, Epoch, Offset
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.messages import Fetch, Fetched, Message, SnapshotPoint
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.settings import ReplicaSettings


class Received(msgspec.Struct, gc=False):
    message: Message


class FollowerQuiesced(msgspec.Struct, gc=False):
    """A follower asks this from now on without saying so, until `Unquiesced`. Replicas that have nothing to tell each
    other quiesce: the session between their brokers is the sign of life of all of them, and they have no deadlines."""

    fetch: Fetch


class LeaderQuiesced(msgspec.Struct, gc=False):
    """The leader answers from now on that there is nothing new, without saying so, until `Unquiesced`."""

    answer: Fetched


class Unquiesced(msgspec.Struct, gc=False):
    """The session does not speak for that replica any more. It was last heard of at that time."""

    replica: ReplicaId
    at_ms: int


class FetchProgressed(msgspec.Struct, gc=False):
    """Bytes are arriving from the leader's broker while this replica waits for an answer: it may be a large one on a
    slow link, and is not given up for lost."""


class LeaderDisconnected(msgspec.Struct, gc=False):
    """The connection to the leader's broker has ended: most often because its process has. It may be back at once, but
    a follower need not wait as long as for one of which nothing is known but silence."""


class TimePassed(msgspec.Struct, gc=False):
    """The deadline that the replica named has come. Coming early or late does no harm."""


class Flushed(msgspec.Struct, gc=False):
    """Everything that was appended before `StartFlush(number)` survives a power failure; or everything up to where the
    log ended when that flush was begun, which may be later."""

    number: int
    upto: Position | None = None


class RecordsWritten(msgspec.Struct, gc=False):
    """A leader's shell has written a batch of `count` offsets at the end of the log. It asks `refusal` first, and
    writes before it says so: a disk without room then costs one refused batch, not the replica."""

    count: int


class BrokersKnown(msgspec.Struct, gc=False):
    """Other brokers that may hold the partition: who follows nobody asks them who leads."""

    brokers: tuple[BrokerId, ...]


class SettingsChanged(msgspec.Struct, gc=False):
    settings: ReplicaSettings


class VoterChangeAsked(msgspec.Struct, gc=False):
    """One voter more, or one less."""

    add: ReplicaId | None = None
    remove: ReplicaId | None = None


class TransferAsked(msgspec.Struct, gc=False):
    """Another voter shall lead."""

    to: ReplicaId


class ShutdownAsked(msgspec.Struct, gc=False):
    """This broker is about to stop, or has no room for records any more."""


class LogStartMoved(msgspec.Struct, gc=False):
    """Retention has removed what was below `offset`. Never above `safe_high_watermark`: a log that loses what was not
    flushed must not end before its start."""

    offset: Offset


class SnapshotProgressed(msgspec.Struct, gc=False):
    """So many bytes of the snapshot that `FetchSnapshot` asked for have come. Say it now and then while they come: a
    replica that hears nothing for the fetch timeout takes the transfer for broken off, and asks anew."""

    loaded: int


class SnapshotStored(msgspec.Struct, gc=False):
    """The snapshot that `FetchSnapshot` asked for is on disk, flushed."""

    point: SnapshotPoint


class PartitionChanged(msgspec.Struct, gc=False):
    """What the metadata says of this partition, in in-sync mode.

    Heard only from metadata that knows this very start of the broker: what was decided before the controller counted it
    does not know what the start has lost. A broker that replays its own metadata at a start would else lead on in an
    epoch of which it has forgotten records.
    """

    partition: PartitionState
    #: The epoch under which the same metadata has registered this broker.
    broker_epoch: Epoch


class BrokerRegistered(msgspec.Struct, gc=False):
    """The controller has counted this start of the broker."""

    broker_epoch: Epoch


Event = (
    Received
    | FollowerQuiesced
    | LeaderQuiesced
    | Unquiesced
    | FetchProgressed
    | LeaderDisconnected
    | TimePassed
    | Flushed
    | RecordsWritten
    | BrokersKnown
    | SettingsChanged
    | VoterChangeAsked
    | TransferAsked
    | ShutdownAsked
    | LogStartMoved
    | SnapshotProgressed
    | SnapshotStored
    | PartitionChanged
    | BrokerRegistered
)
