"""Whatever sessions say arrives as it was sent; whatever arrives is understood or refused."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from zurau.broker.peers.connections import PeerConnections
from zurau.broker.peers.decoding import decode_session
from zurau.broker.peers.encoding import encode_session
from zurau.counters import Counters
from zurau.epochs import EpochMark, Position
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId
from zurau.ports import Advertised, Handshake
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    FetchRefused,
    HighWatermark,
    SnapshotPoint,
    Vote,
    VoteAnswer,
)
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.simulation.world import SeededRandomness, VirtualClock
from zurau.wire.peer.frame_reader import HANDSHAKE_BYTES_MAX, PeerFrameReader
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame
from zurau.wire.peer.handshake import decode_goodbye, decode_handshake, encode_handshake

epochs = st.integers(-1, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
counts = st.integers(1, 2**63 - 1)
numbers = st.integers(0, 2**62)
flags = st.booleans()
texts = st.text(max_size=8)
replicas = st.builds(ReplicaId, st.integers(0, 2**31 - 1), st.sampled_from(["", "a", "Zürau"]) | texts)
voters = st.lists(replicas, max_size=3).map(tuple)
partitions = st.builds(PartitionId, st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1))
positions = st.builds(Position, epochs, offsets)
marks = st.builds(EpochMark, epochs, offsets)
batches = st.builds(Batch, epochs, offsets, counts, st.binary(max_size=20), st.none() | voters)
snapshots = st.builds(SnapshotPoint, marks, voters)
messages = st.one_of(
    st.builds(Fetch, replicas, epochs, numbers, positions, offsets, st.integers(-1, 2**63 - 1), offsets, offsets),
    st.builds(
        Fetched,
        replicas,
        epochs,
        numbers,
        offsets,
        st.lists(marks, max_size=3).map(tuple),
        st.lists(batches, max_size=3).map(tuple),
        st.none() | positions,
        st.none() | snapshots,
        offsets,
    ),
    st.builds(FetchRefused, replicas, epochs, numbers, st.none() | replicas),
    st.builds(HighWatermark, replicas, epochs, numbers, offsets),
    st.builds(Vote, replicas, epochs, replicas, positions, flags),
    st.builds(VoteAnswer, replicas, epochs, flags, flags, st.none() | replicas),
    st.builds(BeginEpoch, replicas, epochs),
    st.builds(EndEpoch, replicas, epochs, voters),
)
addressed = st.lists(st.tuples(partitions, messages), max_size=6).map(tuple)
closed = st.lists(partitions, max_size=3).map(tuple)
sessions = st.one_of(
    st.builds(SessionRequest, numbers, numbers, addressed, closed, st.none() | numbers),
    st.builds(SessionResponse, numbers, numbers, addressed, closed, flags, st.none() | numbers),
)
ids = st.binary(min_size=16, max_size=16)
listeners = st.lists(st.builds(Advertised, texts, texts, st.integers(0, 65535)), max_size=3).map(tuple)
handshakes = st.builds(
    Handshake,
    st.integers(0, 2**31 - 1),
    texts,
    ids,
    ids,
    flags,
    listeners,
    st.none() | texts,
    st.integers(0, 65535),
)


def arrived(pieces) -> memoryview:
    return memoryview(b"".join(pieces))[4:]


def understood_or_refused(decode, frame: memoryview) -> None:
    with suppress(ProtocolViolation):
        decode(frame)


@given(sessions)
def test_whatever_a_session_says_arrives_as_it_was_sent(it):
    assert decode_session(arrived(encode_session(it))) == it


@given(handshakes)
def test_any_handshake_arrives_as_it_was_sent(handshake):
    assert decode_handshake(arrived(encode_handshake(handshake))) == handshake


@given(sessions, st.data())
def test_a_frame_with_a_valid_checksum_and_any_content_is_understood_or_refused(it, data):
    """The checksum protects from damage, not from a broker that makes frames in another way."""
    kind, head, records = decode_frame(arrived(encode_session(it)))
    changed = bytearray(head)
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
        changed[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)) | st.just(len(changed)))
    understood_or_refused(decode_session, arrived(encode_frame(Kind(kind), [changed[:cut]], [records])))


@given(st.sampled_from(Kind), st.binary(max_size=200), st.binary(max_size=20))
def test_any_head_is_understood_or_refused(kind, head, records):
    frame = arrived(encode_frame(kind, [head], [records]))
    for decode in (decode_session, decode_handshake, decode_goodbye):
        understood_or_refused(decode, frame)


@given(st.binary(max_size=100))
def test_any_bytes_are_understood_or_refused(frame):
    for decode in (decode_session, decode_handshake, decode_goodbye, decode_frame):
        understood_or_refused(decode, memoryview(frame))


def read(reader: PeerFrameReader, stream: bytes, sizes: list[int]) -> list[bytes]:
    frames: list[bytes] = []
    turn = 0
    while stream:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(stream), sizes[turn % len(sizes)])
        buffer[:count] = stream[:count]
        stream, turn = stream[count:], turn + 1
        frames += map(bytes, reader.received(count))
        if frames:
            frames += map(bytes, reader.handshake_done())
    return frames


@given(handshakes, st.lists(sessions, max_size=4), st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_however_a_stream_is_cut_the_same_frames_come_out_of_it(handshake, said, sizes):
    frames = [b"".join(pieces) for pieces in (encode_handshake(handshake), *map(encode_session, said))]
    reader = PeerFrameReader(bytearray(64), max_frame_bytes=1 << 20)
    assert read(reader, b"".join(frames), sizes) == [frame[4:] for frame in frames]


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_any_stream_is_cut_or_refused_and_little_is_held_of_it(stream, sizes):
    reader = PeerFrameReader(bytearray(64), max_frame_bytes=1 << 20)
    understood_or_refused(lambda stream: read(reader, stream, sizes), stream)
    assert reader.held_bytes <= HANDSHAKE_BYTES_MAX


class Strict:
    """A listener that knows only sessions."""

    def connected(self, peer: Handshake) -> None: ...

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        decode_session(frame)

    def progressed(self, broker: BrokerId) -> None: ...

    def lost(self, broker: BrokerId) -> None: ...


class Silent:
    """A transport of which nothing comes back."""

    def write(self, pieces) -> None: ...

    def queued_bytes(self) -> int:
        return 0

    def unsent_bytes(self) -> int:
        return 0

    def close(self) -> None: ...

    def abort(self) -> None: ...


@given(
    st.lists(handshakes.map(encode_handshake) | sessions.map(encode_session), max_size=3).map(
        lambda frames: b"".join(map(b"".join, frames))
    ),
    st.binary(max_size=100),
    st.lists(st.integers(1, 100), min_size=1, max_size=5),
)
def test_whatever_somebody_sends_costs_its_connection_at_most(sound, rest, sizes):
    mine = Handshake(BrokerId(0), "", bytes(16), b"mine".ljust(16), is_metadata_empty=True)
    peers = PeerConnections(
        lambda: mine, Strict(), VirtualClock(), SeededRandomness(0), lambda *_: None, Counters(), 1 << 20
    )
    connection, stream, turn = peers.accepted("somewhere"), sound + rest, 0
    connection.made(Silent())
    while stream and not connection.is_closed:
        buffer = connection.get_buffer()
        count = min(len(buffer), len(stream), sizes[turn % len(sizes)])
        buffer[:count] = stream[:count]
        connection.received(count)
        stream, turn = stream[count:], turn + 1
    connection.gone("enough")
    assert peers.connected == {}
