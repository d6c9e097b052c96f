"""Commands for the controller, wherever it is.

Any broker may be asked for what only the controller decides. The broker that leads the metadata log answers by itself;
another one passes the command on over its connection to that broker, and gives the answer when its own image holds what
was decided: whoever asked finds it there (read your writes). An answer that does not come, because a connection or a
leadership is lost, is a `NOT_CONTROLLER` to whoever asked; the command may have been carried out or not, as with Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import msgspec

from zurau.broker.cluster_view import ClusterView
from zurau.broker.waiting import pause, until
from zurau.errors import ProtocolViolation, Refused
from zurau.ids import BrokerId, Offset
from zurau.machines.controller.commands import CatchUp, ControllerCommand
from zurau.machines.machine import Command, Reply, reply_type
from zurau.partition.partition import Partition
from zurau.partition.runtime import MachineRuntime
from zurau.pending import Pending, any_of, start
from zurau.ports import Clock, Peers, Timer
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.peer.frames import Kind, decode_frame, encode_frame

#: How long an answer of another broker, and one's own image, are waited for.
ANSWER_MS = 3000
#: How long one's own image is waited for before something is said not to exist.
CATCH_UP_MS = 500
#: How often is looked whether there is a controller by now.
LOOK_EVERY_MS = 20

#: What may be passed on, and what is answered.
_REPLIES: dict[str, tuple[type[Command[Any]], Any]] = {
    command.__name__: (command, reply_type(command)) for command in get_args(ControllerCommand)
}


class _Question(msgspec.Struct, array_like=True):
    number: int
    command: str
    content: msgspec.Raw


class _Answer(msgspec.Struct, array_like=True):
    number: int
    #: Up to where the metadata has to be known to see what was decided.
    metadata_offset: int
    error_code: int
    text: str
    content: msgspec.Raw


class Forwarding:
    """The controller as this broker's handlers ask it."""

    def __init__(self, controller: MachineRuntime[Any], metadata: Partition, view: ClusterView, clock: Clock) -> None:
        self._controller = controller
        self._metadata = metadata
        self._view = view
        self._clock = clock
        self.peers: Peers | None = None
        #: Whether the connection with a broker has ended; set by whoever knows.
        self.is_lost: Callable[[BrokerId], bool] = lambda _: False
        self._last_number = 0
        #: What was passed on, by number: to whom, and who waits.
        self._open: dict[int, _Open] = {}
        #: How often the connection with a broker has ended. What it asked over an earlier one nobody waits for.
        self._losses: Counter[BrokerId] = Counter()
        #: Answers that wait for this broker's own image.
        self._unseen: list[tuple[Offset, Callable[[], None]]] = []

    async def ask(self, command: Command[Reply]) -> Reply:
        """As `submit`, for whoever asks once: while a controller is being elected, the next one is waited for."""
        await until(self._clock, self._has_controller, every_ms=LOOK_EVERY_MS, at_most_ms=ANSWER_MS)
        return await self.submit(command)

    async def catch_up(self) -> bool:
        """Return when this broker's image holds what anybody was told before; False after a moment if nobody tells it.
        For whoever is about to say that something does not exist: another broker may just have been asked for it."""
        if self._controller.is_loaded or self.peers is None:
            return True
        caught_up = self.submit(CatchUp())
        await any_of([caught_up, pause(self._clock, CATCH_UP_MS)])
        return caught_up.is_done and caught_up.error is None

    def _has_controller(self) -> bool:
        if self._controller.is_loaded or self.peers is None:
            return True
        leader = self._metadata.leader
        return leader is not None and not self._metadata.leads and not self.is_lost(leader.broker)

    def submit(self, command: Command[Reply]) -> Pending[Reply]:
        """The controller's reply; a refusal is raised to whoever awaits it."""
        if self._controller.is_loaded or self.peers is None:
            return self._controller.submit(command)
        leader = self._metadata.leader
        answer: Pending[Reply] = Pending()
        if leader is None or self._metadata.leads:
            answer.fail(_no_controller("nobody leads the metadata log at present"))
            return answer
        self._last_number += 1
        number = self._last_number
        timer = self._clock.call_later(ANSWER_MS, partial(self._give_up, number))
        self._open[number] = _Open(leader.broker, type(command).__name__, answer, timer)
        question = _Question(number, type(command).__name__, msgspec.Raw(msgspec.msgpack.encode(command)))
        self.peers.send(leader.broker, encode_frame(Kind.COMMAND, [msgspec.msgpack.encode(question)]))
        return answer

    def image_moved(self) -> None:
        """This broker's image holds more than before."""
        seen = self._view.next_offset
        ready = [deliver for offset, deliver in self._unseen if offset <= seen]
        self._unseen = [(offset, deliver) for offset, deliver in self._unseen if offset > seen]
        for deliver in ready:
            deliver()

    # What other brokers say

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        kind, head, _ = decode_frame(frame)
        try:
            if kind == Kind.COMMAND:
                self._asked(sender, msgspec.msgpack.decode(head, type=_Question))
            else:
                self._answered(msgspec.msgpack.decode(head, type=_Answer))
        except (msgspec.MsgspecError, KeyError) as error:
            raise ProtocolViolation(f"a command of broker {sender} cannot be read: {error}") from error

    def lost(self, broker: BrokerId) -> None:
        """What was asked there is not answered any more, and what it has asked here not decided any more: it may be
        another process that comes back, with a registration and with numbers of its own."""
        self._losses[broker] += 1
        for number in [number for number, each in self._open.items() if each.broker == broker]:
            self._give_up(number)

    def _asked(self, sender: BrokerId, question: _Question) -> None:
        command_type, _ = _REPLIES[question.command]
        command = msgspec.msgpack.decode(question.content, type=command_type)
        losses = self._losses[sender]

        def is_there() -> bool:
            return self._losses[sender] == losses

        start(self._decide(command, is_there)).then(partial(self._answer, sender, question.number, is_there))

    async def _decide(self, command: Command[Reply], is_there: Callable[[], bool]) -> Reply:
        """Whoever has just come to lead has to load first; to refuse would only make everybody ask again. What a
        process asked that has died meanwhile must not be decided after what the next one asks."""

        def is_loaded() -> bool:
            return self._controller.is_loaded or not self._metadata.leads or not is_there()

        await until(self._clock, is_loaded, every_ms=LOOK_EVERY_MS, at_most_ms=ANSWER_MS)
        if not is_there():
            raise _no_controller("whoever asked is gone")
        return await self._controller.submit(command)

    def _answer(self, to: BrokerId, number: int, is_there: Callable[[], bool], outcome: Pending[Any]) -> None:
        offset, code, text = self._metadata.high_watermark, 0, ""
        reply: Any = None
        try:
            reply = outcome.result()
        except Refused as refused:
            code, text = int(refused.code), refused.message or ""
        answer = _Answer(number, offset, code, text, msgspec.Raw(msgspec.msgpack.encode(reply)))
        if self.peers is not None and is_there():
            self.peers.send(to, encode_frame(Kind.REPLY, [msgspec.msgpack.encode(answer)]))

    def _answered(self, answer: _Answer) -> None:
        waiting = self._open.get(answer.number)
        if waiting is None:
            return  # given up
        if answer.error_code:
            self._finish(answer.number).fail(Refused(ErrorCode(answer.error_code), answer.text))
            return
        reply = msgspec.msgpack.decode(answer.content, type=_REPLIES[waiting.command][1])

        def deliver() -> None:
            if answer.number in self._open:
                self._finish(answer.number).resolve(reply)

        if answer.metadata_offset <= self._view.next_offset:
            deliver()
        else:
            self._unseen.append((answer.metadata_offset, deliver))

    def _give_up(self, number: int) -> None:
        if number in self._open:
            self._finish(number).fail(_no_controller("the controller does not answer; it may have done it or not"))

    def _finish(self, number: int) -> Pending[Any]:
        done = self._open.pop(number)
        done.timer.cancel()
        return done.answer


class _Open:
    """A command that was passed on."""

    __slots__ = ("answer", "broker", "command", "timer")

    def __init__(self, broker: BrokerId, command: str, answer: Pending[Any], timer: Timer) -> None:
        self.broker = broker
        self.command = command
        self.answer = answer
        self.timer = timer


def _no_controller(reason: str) -> Refused:
    return Refused(ErrorCode.NOT_CONTROLLER, reason)
