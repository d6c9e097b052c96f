"""Questions to another broker about what that one leads, so that any broker can be asked for anything.

A question is a struct, and perhaps bytes beside it; so is its answer. What is not answered because a connection or a
leadership is lost may have been done or not, and whoever asked is told so. The same connection carries what replicas
say to each other, so only so much is under way to a broker at a time; the rest waits here, in its order.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from zurau.broker.outcomes import report
from zurau.errors import ProtocolViolation, Refused
from zurau.ids import BrokerId
from zurau.machines.machine import Command, Reply, reply_type
from zurau.pending import Pending, start
from zurau.ports import Buffer, Clock, Handshake, Peers, Timer
from zurau.settings import MIB, SECOND_MS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: The first minor version of the protocol between brokers that knows questions.
CALLS_SINCE = 1
#: Of questions to one broker that are not answered yet, unless a single one is larger.
UNDER_WAY_BYTES = 4 * MIB
#: How long an answer is waited for, besides what the question allows.
ANSWER_WITHIN_MS = 5 * SECOND_MS

#: Answers a question, by its name: content and bytes beside it.
Answer = Callable[[str, msgspec.Raw, memoryview], Coroutine[Any, None, Any]]


class _Question(msgspec.Struct, array_like=True):
    number: int
    name: str
    content: msgspec.Raw


class _Answer(msgspec.Struct, array_like=True):
    number: int
    error_code: int
    text: str
    content: msgspec.Raw


class _Asked(msgspec.Struct, eq=False):
    """A question that waits for its answer, or for its turn to be sent."""

    to: BrokerId
    reply_type: Any
    frame: list[Buffer]
    size: int
    answer: Pending[Any]
    timer: Timer | None = None
    is_sent: bool = False


class PeerCalls:
    def __init__(self, clock: Clock, answer: Answer) -> None:
        self._clock = clock
        self._answer = answer
        self.peers: Peers | None = None
        #: Who is connected, and would understand.
        self._reachable: set[BrokerId] = set()
        #: How often the connection with a broker has ended: what it asked over an earlier one nobody waits for.
        self._losses: Counter[BrokerId] = Counter()
        self._last_number = 0
        self._asked: dict[int, _Asked] = {}
        self._under_way_bytes: Counter[BrokerId] = Counter()
        #: Their numbers, by broker.
        self._in_line: defaultdict[BrokerId, deque[int]] = defaultdict(deque)

    def ask(self, to: BrokerId, question: Command[Reply], data: Buffer, timeout_ms: int) -> Pending[Reply]:
        """The answer of a broker. A refusal with NOT_LEADER_OR_FOLLOWER says that nothing was done."""
        answer: Pending[Reply] = Pending()
        if to not in self._reachable:
            answer.fail(
                Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {to} is not connected, or of an old release")
            )
            return answer
        self._last_number += 1
        number, name = self._last_number, type(question).__name__
        head = msgspec.msgpack.encode(_Question(number, name, msgspec.Raw(msgspec.msgpack.encode(question))))
        asked = _Asked(to, reply_type(type(question)), encode_frame(Kind.CALL, [head], [data]), len(data), answer)
        asked.timer = self._clock.call_later(timeout_ms + ANSWER_WITHIN_MS, partial(self._give_up, number))
        self._asked[number] = asked
        self._in_line[to].append(number)
        self._send_next(to)
        return answer

    def connected(self, peer: Handshake) -> None:
        if peer.minor_version >= CALLS_SINCE:
            self._reachable.add(peer.broker)

    def lost(self, broker: BrokerId) -> None:
        self._reachable.discard(broker)
        self._losses[broker] += 1
        for number in [number for number, asked in self._asked.items() if asked.to == broker]:
            self._give_up(number)

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        kind, head, data = decode_frame(frame)
        try:
            if kind == Kind.CALL:
                self._called(sender, msgspec.msgpack.decode(head, type=_Question), data)
            else:
                self._answered(sender, msgspec.msgpack.decode(head, type=_Answer))
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise ProtocolViolation(f"a question or answer of broker {sender} cannot be read: {error}") from error

    # Asking

    def _send_next(self, to: BrokerId) -> None:
        line = self._in_line[to]
        while line and to in self._reachable:
            assert self.peers is not None, "who is reachable is reached through it"
            asked = self._asked[line[0]]
            under_way = self._under_way_bytes[to]
            if under_way and under_way + asked.size > UNDER_WAY_BYTES:
                return
            line.popleft()
            asked.is_sent = True
            self._under_way_bytes[to] += asked.size
            self.peers.send(to, asked.frame)
            asked.frame = []

    def _answered(self, sender: BrokerId, answer: _Answer) -> None:
        asked = self._asked.get(answer.number)
        if asked is None or asked.to != sender:
            return  # given up
        if answer.error_code:
            self._finish(answer.number).fail(Refused(ErrorCode(answer.error_code), answer.text))
        else:
            reply = msgspec.msgpack.decode(answer.content, type=asked.reply_type)
            self._finish(answer.number).resolve(reply)

    def _give_up(self, number: int) -> None:
        asked = self._asked[number]
        refused = (
            Refused(ErrorCode.REQUEST_TIMED_OUT, f"broker {asked.to} does not answer; it may have done it or not")
            if asked.is_sent
            else Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {asked.to} was not asked yet, and is gone")
        )
        self._finish(number).fail(refused)

    def _finish(self, number: int) -> Pending[Any]:
        asked = self._asked.pop(number)
        assert asked.timer is not None, "it was set when it was asked"
        asked.timer.cancel()
        if asked.is_sent:
            self._under_way_bytes[asked.to] -= asked.size
        else:
            self._in_line[asked.to].remove(number)
        self._send_next(asked.to)
        return asked.answer

    # Being asked

    def _called(self, sender: BrokerId, question: _Question, data: memoryview) -> None:
        losses = self._losses[sender]
        # Copied: the frame is gone when this returns.
        answer = start(self._answer(question.name, question.content, memoryview(bytearray(data))))
        answer.then(partial(self._reply, sender, question.number, losses))

    def _reply(self, to: BrokerId, number: int, losses: int, outcome: Pending[Any]) -> None:
        code, text, reply = ErrorCode.NONE, "", msgspec.msgpack.encode(None)
        if isinstance(outcome.error, Refused):
            code, text = ErrorCode(outcome.error.code), outcome.error.message or ""
        elif outcome.error is not None:
            report(f"a question of broker {to} was not answered", outcome.error)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            reply = msgspec.msgpack.encode(outcome.result())
        if self.peers is not None and self._losses[to] == losses:
            answer = _Answer(number, code, text, msgspec.Raw(reply))
            self.peers.send(to, encode_frame(Kind.CALL_ANSWER, [msgspec.msgpack.encode(answer)]))
