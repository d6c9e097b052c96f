"""What can go wrong for a client. Each text is one line, and says what to do next."""

from __future__ import annotations

from typing import ClassVar

from zurau.errors import ZurauError
from zurau.ids import Offset
from zurau.wire.kafka.error_codes import ErrorCode


class ClientError(ZurauError):
    """Parent of every error a client sees. A retriable one may pass by itself, perhaps after new metadata."""

    retriable: ClassVar[bool] = False


class BrokerUnreachable(ClientError):
    """None of the bootstrap addresses answers."""

    def __init__(self, addresses: str, reason: str, *, may_be_starting: bool) -> None:
        super().__init__(
            f"no broker at {addresses} ({reason}); start one with `zurau serve` or pass --bootstrap HOST:PORT"
        )
        #: One of the hosts is there, and nothing listens on it yet.
        self.may_be_starting = may_be_starting


class ConnectionLost(ClientError):
    """A broker that was there hung up, or could not be dialled again."""

    retriable = True


class TimedOut(ClientError):
    """A broker took the request and did not answer in time."""

    retriable = True


class NotTrusted(ClientError):
    """A broker was reached, and it does not trust this client, or this client does not trust it."""


class BrokerTooOld(ClientError):
    """There is no version of a request that both sides know."""


class NoLeader(ClientError):
    """A partition has no leader at the moment."""

    retriable = True


class CorruptRecords(ClientError):
    """What was stored cannot be read any more: a checksum or a length does not fit. Asking again does not help."""

    @classmethod
    def at(cls, where: str, reason: object, next_offset: Offset | None = None) -> CorruptRecords:
        """`where` names partition and offset; `next_offset` is where good records begin again, if that is known."""
        go_on = "behind the damage" if next_offset is None else f"from offset {next_offset}"
        return cls(
            f"{where}: {reason}; read on {go_on} (`zurau log check DIR` on the broker names the damaged offsets), "
            "restore the file from a copy, or stop the broker and run `zurau log repair DIR`"
        )


class ProduceFailed(ClientError):
    """Records were given up on. They may or may not be in the log."""


class BrokerRefused(ClientError):
    """The broker understood, and answered with an error code."""

    def __init__(self, code: ErrorCode, what: str, detail: str | None = None) -> None:
        advice = None if detail and code in _BROKER_ADVISES else _ADVICE.get(code)
        reason = (detail or code.message).strip().rstrip(".")
        super().__init__(f"{what}: {reason} [{code.name}]" + (f"; {advice}" if advice else ""))
        self.code = code

    @property
    def retriable(self) -> bool:  # type: ignore[override]
        return self.code.retriable


class UnknownTopic(BrokerRefused):
    """No broker knows the topic. Waiting does not make one, so this is not tried again."""

    retriable = False

    def __init__(self, topic: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r}", "there is no such topic")


def check(code: int, what: str, detail: str | None = None) -> None:
    """Raise `BrokerRefused` unless the answer is that all is well. `what` says what was being done."""
    if code:
        raise BrokerRefused(error_code(code), what, detail)


def may_pass(error: ClientError) -> bool:
    """Whether to try again with a topic that was there before: brokers learn of a change one after the other."""
    return error.retriable or isinstance(error, UnknownTopic)


def error_code(code: int) -> ErrorCode:
    """The named code; a number newer than our table counts as an unknown error."""
    known = ErrorCode._value2member_map_.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(known, ErrorCode)
    return known


_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "see `zurau topic list`, or make it with `zurau topic create NAME`",
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or look at it with `zurau topic describe NAME`",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "use letters, digits, `.`, `_` and `-`, at most 249 of them",
    ErrorCode.INVALID_REPLICATION_FACTOR: "use at most as many replicas as there are brokers; see `zurau cluster`",
    ErrorCode.INVALID_PARTITIONS: "partitions can be added but never taken away; use a larger number",
    ErrorCode.INVALID_CONFIG: "`zurau topic config NAME` shows what can be set",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller batches, or raise `max.message.bytes` with `zurau topic config`",
    ErrorCode.RECORD_LIST_TOO_LARGE: "send smaller batches, or raise `max.message.bytes` with `zurau topic config`",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync; see `zurau topic describe`, or use --acks 1",
    ErrorCode.OFFSET_OUT_OF_RANGE: "see `zurau topic describe` for what it holds",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; see `zurau group describe`",
    ErrorCode.GROUP_ID_NOT_FOUND: "see `zurau group list`",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members; stop them first, see `zurau group describe`",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "its members use another protocol or assignor; join with a new group name",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this client may not use the topic; ask whoever runs the cluster",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this client may not use the group; ask whoever runs the cluster",
    ErrorCode.INVALID_RECORD: "a compacted topic takes only records with a key",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "choose another --compression",
}
#: Where a broker says more than the code, it says this too.
_BROKER_ADVISES = {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_REPLICATION_FACTOR}
