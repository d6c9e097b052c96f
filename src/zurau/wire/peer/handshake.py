"""Who is at the other end of a connection between brokers, and the word of one that does not want it.

The first frame of either side is its handshake. It begins with the magic and the version in all versions to come. A
broker that refuses the other, or leaves, says why in a last frame: what is wrong is then told in both logs.
"""

from __future__ import annotations

import struct

from zurau.errors import MESSAGE_CHARACTERS_MAX, ProtocolViolation
from zurau.ids import BrokerId
from zurau.ports import Advertised, Buffer, Handshake
from zurau.wire.peer.fields import Fields, encode_text
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

MAGIC = b"ZURAUPEER"
#: Brokers talk to each other only in the same major version.
MAJOR_VERSION = 1
#: 1: brokers ask each other for what they lead.
MINOR_VERSION = 1

_MAGIC_AND_VERSION = struct.Struct(f">{len(MAGIC)}sHH")
#: Broker, directory, incarnation, whether its metadata is empty, whether it has a rack, how many listeners.
_FIXED = struct.Struct(">i16s16s??H")
_PORT = struct.Struct(">H")


def encode_handshake(handshake: Handshake) -> list[Buffer]:
    has_rack = handshake.rack is not None
    head = [
        _MAGIC_AND_VERSION.pack(MAGIC, MAJOR_VERSION, handshake.minor_version),
        _FIXED.pack(
            handshake.broker,
            handshake.directory_id,
            handshake.incarnation,
            handshake.is_metadata_empty,
            has_rack,
            len(handshake.listeners),
        ),
        encode_text(handshake.cluster_id),
        encode_text(handshake.rack or ""),
    ]
    for listener in handshake.listeners:
        head += (encode_text(listener.name), encode_text(listener.host), _PORT.pack(listener.port))
    return encode_frame(Kind.HANDSHAKE, head)


def decode_handshake(frame: memoryview) -> Handshake:
    kind, head, data = decode_frame(frame)
    if kind != Kind.HANDSHAKE or len(data) > 0:
        raise ProtocolViolation(f"a frame of kind {kind} before the handshake, or not a handshake alone")
    fields = Fields(head)
    magic, major, minor = fields.take(_MAGIC_AND_VERSION)
    if magic != MAGIC:
        raise ProtocolViolation("what is connected to the peer port is not a broker of Zurau")
    if major != MAJOR_VERSION:
        raise ProtocolViolation(
            f"the broker speaks version {major} of the protocol between brokers, this one {MAJOR_VERSION}; "
            "upgrade one of them so that they are at most one release apart"
        )
    broker, directory_id, incarnation, is_metadata_empty, has_rack, listener_count = fields.take(_FIXED)
    if broker < 0:
        raise ProtocolViolation(f"a broker with the id {broker}; ids are 0 or more")
    cluster_id, rack = fields.text(), fields.text()
    listeners = tuple(Advertised(fields.text(), fields.text(), *fields.take(_PORT)) for _ in range(listener_count))
    fields.tagged()
    return Handshake(
        BrokerId(broker),
        cluster_id,
        directory_id,
        incarnation,
        is_metadata_empty,
        listeners,
        rack if has_rack else None,
        minor,
    )


def encode_goodbye(reason: str) -> list[Buffer]:
    return encode_frame(Kind.GOODBYE, [encode_text(reason[:MESSAGE_CHARACTERS_MAX])])


def decode_goodbye(frame: memoryview) -> str:
    """The reason, for a log: short and in one line."""
    _, head, _ = decode_frame(frame)
    reason = Fields(head).text()
    return "".join(each if each.isprintable() else "?" for each in reason[:MESSAGE_CHARACTERS_MAX])
