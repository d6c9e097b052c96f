"""Sends snapshots of the metadata to brokers that have fallen behind the start of the log, and fetches them.

A snapshot goes in pieces, each asked for when the one before it has come: so it may have any size, delays nothing else
on the connection for long, and goes on where it was when the connection breaks. Each piece has a checksum, and the
whole is read before it is stored, all of it or nothing.

Logs of records have no snapshots: what was before the start of such a log was deleted, and a replica that asks for it
begins there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from fastcrc import crc32

from zurau.errors import CorruptData, DiskFault, ProtocolViolation
from zurau.ids import BrokerId, Offset
from zurau.partition.shell import Shell
from zurau.partition.snapshots import Snapshot, SnapshotId, list_snapshots, parse, store
from zurau.pending import Pending
from zurau.ports import Peers, World
from zurau.replica.core.events import SnapshotProgressed, SnapshotStored
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import SnapshotPoint
from zurau.settings import KIB
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

log = logging.getLogger("zurau.snapshots")

#: How much is sent at once.
PIECE_BYTES = 256 * KIB


class _Ask(msgspec.Struct, array_like=True, frozen=True):
    number: int
    offset: int
    position: int


class _Piece(msgspec.Struct, array_like=True, frozen=True):
    """Its bytes are the data of the frame."""

    number: int
    position: int
    #: Of the whole; 0: there is no such snapshot here (any more).
    total: int
    epoch: int
    checksum: int


class _Fetch:
    """A snapshot that is on its way here."""

    __slots__ = ("content", "leader", "number", "point", "total")

    def __init__(self, number: int, leader: BrokerId, point: SnapshotPoint) -> None:
        self.number = number
        self.leader = leader
        self.point = point
        self.content = bytearray()
        self.total = -1

    @property
    def offset(self) -> Offset:
        return self.point.mark.start_offset


class SnapshotTransfer:
    """`directory`: of the metadata log."""

    def __init__(
        self, world: World, metadata: PartitionId, directory: str, shells: Mapping[PartitionId, Shell]
    ) -> None:
        self._world = world
        self._metadata = metadata
        self._directory = directory
        self._shells = shells
        self.peers: Peers | None = None
        self._last_number = 0
        self._fetch: _Fetch | None = None
        #: Called with a snapshot that was fetched and stored, before the log is begun anew behind it.
        self.on_fetched: Callable[[Snapshot], None] = _nobody_waits

    # Fetching

    def fetch(self, partition: PartitionId, leader: ReplicaId, point: SnapshotPoint) -> None:
        if partition != self._metadata:
            self._world.clock.call_later(0, partial(self._stored, partition, point))
            return
        under_way = self._fetch
        if under_way is None or (under_way.leader, under_way.point) != (leader.broker, point):
            self._last_number += 1
            under_way = self._fetch = _Fetch(self._last_number, leader.broker, point)
            log.info("fetching a snapshot of the metadata at offset %d from broker %d", under_way.offset, leader.broker)
        self._ask(under_way)

    def _ask(self, fetch: _Fetch) -> None:
        if self.peers is not None:
            ask = _Ask(fetch.number, fetch.offset, len(fetch.content))
            self.peers.send(fetch.leader, encode_frame(Kind.SNAPSHOT_ASK, [msgspec.msgpack.encode(ask)]))

    def _stored(self, partition: PartitionId, point: SnapshotPoint) -> None:
        shell = self._shells.get(partition)
        if shell is not None:
            shell.tell(SnapshotStored(point))

    # What other brokers say

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        kind, head, data = decode_frame(frame)
        try:
            if kind == Kind.SNAPSHOT_ASK:
                asked = msgspec.msgpack.decode(head, type=_Ask)
                self._world.workers.run(partial(self._read, asked)).then(partial(self._send, sender))
            else:
                self._take(msgspec.msgpack.decode(head, type=_Piece), data)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"what broker {sender} says of a snapshot cannot be read: {error}") from error

    def _take(self, piece: _Piece, data: memoryview) -> None:
        fetch = self._fetch
        if fetch is None or piece.number != fetch.number or piece.position != len(fetch.content):
            return  # asked for twice, or not any more
        if crc32.iscsi(bytes(data)) != piece.checksum or not data or piece.total < piece.position + len(data):
            # It is gone there, or was damaged on its way: the replica hears nothing, and asks its leader again.
            self._fetch = None
            return
        fetch.content += data
        shell = self._shells.get(self._metadata)
        if shell is not None:
            shell.tell(SnapshotProgressed(len(fetch.content)))
        if len(fetch.content) < piece.total:
            self._ask(fetch)
            return
        self._fetch = None
        work = partial(self._store, fetch, SnapshotId(fetch.offset, piece.epoch))
        self._world.background.run(work).then(partial(self._fetched, fetch))

    def _store(self, fetch: _Fetch, snapshot: SnapshotId) -> Snapshot:
        """In a worker."""
        content = bytes(fetch.content)
        records = parse(content)
        store(self._world.disk, self._directory, snapshot, content)
        return Snapshot(fetch.offset, records)

    def _fetched(self, fetch: _Fetch, outcome: Pending[Snapshot]) -> None:
        try:
            snapshot = outcome.result()
        except CorruptData as fault:
            log.warning("the snapshot that broker %d has sent is damaged (%s); it is asked again", fetch.leader, fault)
        except DiskFault as fault:
            log.warning("the snapshot of broker %d cannot be stored (%s); it is asked again", fetch.leader, fault)
        else:
            self.on_fetched(snapshot)
            self._stored(self._metadata, fetch.point)

    # Sending

    def _read(self, asked: _Ask) -> tuple[_Piece, bytes]:
        """In a worker."""
        disk = self._world.disk
        found = next((each for each in list_snapshots(disk, self._directory) if each.offset == asked.offset), None)
        if found is None:
            return _Piece(asked.number, asked.position, 0, 0, 0), b""
        file = disk.open(f"{self._directory}/{found.file_name}", create=False)
        try:
            data = file.read(asked.position, PIECE_BYTES)
            return _Piece(asked.number, asked.position, file.size, found.epoch, crc32.iscsi(data)), data
        finally:
            file.close()

    def _send(self, to: BrokerId, outcome: Pending[tuple[_Piece, bytes]]) -> None:
        try:
            piece, data = outcome.result()
        except DiskFault as fault:
            log.warning("a snapshot for broker %d cannot be read: %s", to, fault)
            return
        if self.peers is not None:
            self.peers.send(to, encode_frame(Kind.SNAPSHOT_PIECE, [msgspec.msgpack.encode(piece)], [data]))


def _nobody_waits(snapshot: Snapshot) -> None:
    """Until the metadata log is open."""
