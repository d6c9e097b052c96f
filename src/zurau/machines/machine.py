"""The shape that the controller and the consumer groups share.

A machine is state that is replayed from one partition's log. `decide` answers a command with the records that make
it true and the replies to give once those records are committed; `apply` changes the state by one record. The runtime
(`partition/runtime.py`) appends what was decided, applies it, and releases replies and effects when the high watermark
has passed.

Laws:
- Durable state changes only in `apply`. What `decide` may change is volatile: who is waiting, whose session runs out.
- `decide` is pure otherwise: time comes in as an argument, nothing is random, no set is iterated unsorted.
- After a crash or a change of leader a fresh machine is built by `apply`ing the whole log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, NewType, Protocol, TypeVar, dataclass_transform, get_args

import msgspec

from zurau.ids import Offset

#: Names one command that was submitted, so that its reply can come later than others'.
RequestId = NewType("RequestId", int)

#: For whoever takes a command and gives its reply.
Reply = TypeVar("Reply")
_Reply = TypeVar("_Reply", covariant=True)
AnyCommand = TypeVar("AnyCommand", contravariant=True)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True):
    """A command, a reply, a change: never changed once made, and equal when its fields are.

    A dataclass would do, but there are some forty of these, and each takes half a millisecond of every start to make.
    """


class Command(Value, Generic[_Reply]):
    """What a machine can be asked, and in brackets what it answers: `class CreateTopic(Command[TopicImage])`."""


def reply_type(command: type[Command[Any]]) -> Any:
    """What stands in the brackets."""
    (declared,) = get_args(command.__orig_bases__[0])  # type: ignore[attr-defined]
    return declared


class StateRecord(NamedTuple):
    """What a machine writes to its log. On a compacted log a None value removes the key."""

    key: bytes | None
    value: bytes | None


class OffsetOf(NamedTuple):
    """A reply that is known only when its records are written: the offset that one of them was given."""

    #: Which one of the decision, counted from 0.
    record: int


class Decision(Value):
    """Records to append, and what to release once those are committed: replies (`Refused` errors among them), and
    effects, which somebody else has to carry out.

    A crash may leave the first few of the records alone: they are in such an order that this is lawful. It may come
    before an effect is carried out, too: so `loaded` decides those again whose end the log does not tell.
    """

    records: Sequence[StateRecord] = ()
    replies: Sequence[tuple[RequestId, Any]] = ()
    effects: Sequence[Any] = ()


NOTHING = Decision()


class Machine(Protocol[AnyCommand]):
    def decide(self, request_id: RequestId, command: AnyCommand, now_ms: int) -> Decision:
        """Answer a command, now or (if no reply carries its request id) in a later decision."""

    def apply(self, record: StateRecord, offset: Offset) -> None:
        """Change the state by one record of the log, or of a snapshot, whose records all have the last offset in it."""

    def loaded(self, now_ms: int) -> Decision:
        """The whole log has been applied and this replica leads: start whatever depends on time, and decide what the
        leader before may not have come to."""

    def next_deadline_ms(self) -> int | None:
        """When `time_passed` wants to be called, or None while nothing is timed."""

    def time_passed(self, now_ms: int) -> Decision:
        """Sessions that ran out, barriers whose time is over."""
