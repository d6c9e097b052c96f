"""Five kinds of error, by whose fault it is and so by what happens next.

| kind                | whose fault           | what happens                                                 |
|---------------------|-----------------------|--------------------------------------------------------------|
| `Refused`           | nobody's: an answer   | becomes the protocol's error code in the response            |
| `ProtocolViolation` | the peer's            | that connection is closed, nothing else                      |
| `SettingsError`     | the operator's        | refuse to start; the message names the setting and the fix   |
| `DiskFault`         | the world's           | the operation fails, reads go on; what is stored stays true  |
| `AssertionError`    | ours                  | never handled: the process stops, or the replica it concerns |
"""

from __future__ import annotations

from enum import IntEnum


class ZurauError(Exception):
    """Parent of every error that Zurau raises on purpose."""


#: Of a message to a client: it may quote what the client sent, and a string of the protocol ends at 32 kB.
MESSAGE_CHARACTERS_MAX = 1000


class Refused(ZurauError):
    """A request that was understood and is answered with an error code."""

    def __init__(self, code: IntEnum, message: str | None = None) -> None:
        if message is not None and len(message) > MESSAGE_CHARACTERS_MAX:
            message = f"{message[:MESSAGE_CHARACTERS_MAX]}... ({len(message)} characters)"
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message


class ProtocolViolation(ZurauError):
    """The peer sent bytes that no correct peer sends."""


class SettingsError(ZurauError):
    """A setting is unknown, malformed or out of bounds. The message says how to mend it."""


class DiskFault(ZurauError):
    """The disk refused: full, failing or gone."""


class FlushFailed(DiskFault):
    """The disk could not keep what was written: it may be lost, and asking again would report success."""


class UnreadableData(DiskFault):
    """The disk cannot read what was written to this place (an input/output error)."""


class Abandoned(DiskFault):
    """A chore of upkeep was told to end before it was done; nothing has changed."""


class CorruptData(DiskFault):
    """Bytes came back from disk that are not the ones that were written (a checksum says so)."""


class ReleaseTooOld(CorruptData):
    """What is stored was written by a later release, and has to be understood."""


class OffsetOutOfRange(ZurauError):
    """A read was asked for an offset that the log does not hold (any more, or yet)."""


def raise_if_broken(error: BaseException) -> None:
    """For whoever carries errors on: an invariant that does not hold is not to be answered, logged and lived with."""
    if isinstance(error, AssertionError):
        raise error
