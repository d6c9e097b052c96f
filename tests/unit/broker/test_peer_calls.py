"""Questions between brokers: answered, refused, lost, and never too many at a time."""

from __future__ import annotations

import msgspec
import pytest

from zurau.broker.peer_calls import ANSWER_WITHIN_MS, CALLS_SINCE, UNDER_WAY_BYTES, PeerCalls
from zurau.errors import ProtocolViolation, Refused
from zurau.ids import BrokerId
from zurau.machines.machine import Command
from zurau.pending import Pending
from zurau.ports import Handshake
from zurau.simulation.world import VirtualClock
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.peer.frames import Kind, encode_frame

HERE, THERE = BrokerId(1), BrokerId(2)


class Reverse(Command[str]):
    text: str


def handshake(broker: BrokerId, minor_version: int = CALLS_SINCE) -> Handshake:
    return Handshake(broker, "c", bytes(16), bytes(16), is_metadata_empty=False, minor_version=minor_version)


class Wire:
    """Carries frames between two brokers, or keeps them while it is held."""

    def __init__(self, minor_version: int = CALLS_SINCE) -> None:
        self.clock = VirtualClock()
        self.asked: list[tuple[str, bytes]] = []
        self.waiting: dict[str, Pending[None]] = {}
        self.is_held = False
        self.held: list[tuple[BrokerId, memoryview]] = []
        self.sides = {broker: PeerCalls(self.clock, self._answer) for broker in (HERE, THERE)}
        for broker, calls in self.sides.items():
            calls.peers = self
            calls.connected(handshake(THERE if broker == HERE else HERE, minor_version))

    def send(self, to, frame) -> None:
        self.held.append((to, memoryview(b"".join(frame))[4:]))

    def carry(self) -> None:
        while self.held and not self.is_held:
            to, frame = self.held.pop(0)
            self.sides[to].received(HERE if to == THERE else THERE, frame)

    def ask(self, text: str, data: bytes = b"") -> Pending[str]:
        answer = self.sides[HERE].ask(THERE, Reverse(text), data, timeout_ms=1000)
        self.carry()
        return answer

    async def _answer(self, name: str, content: msgspec.Raw, data: memoryview) -> str:
        asked = msgspec.msgpack.decode(content, type=Reverse)
        self.asked.append((asked.text, bytes(data)))
        if asked.text in self.waiting:
            await self.waiting[asked.text]
        if asked.text == "refused":
            raise Refused(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
        if asked.text == "defect":
            raise KeyError("a defect")
        return asked.text[::-1]


@pytest.fixture
def wire():
    return Wire()


def code_of(answer: Pending[str]) -> ErrorCode:
    assert isinstance(answer.error, Refused)
    return answer.error.code


def test_a_question_is_answered_with_what_was_sent_beside_it(wire):
    assert wire.ask("abc", b"data").result() == "cba"
    assert wire.asked == [("abc", b"data")]


def test_a_refusal_keeps_its_code_and_its_words(wire):
    answer = wire.ask("refused")
    assert code_of(answer) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "too few" in str(answer.error)


def test_a_defect_there_is_told_and_logged_there(wire, caplog):
    assert code_of(wire.ask("defect")) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "KeyError" in caplog.text


def test_a_broker_that_would_not_understand_is_not_asked():
    wire = Wire(minor_version=CALLS_SINCE - 1)
    assert code_of(wire.ask("abc")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert wire.asked == []


def test_what_is_lost_on_its_way_may_have_been_done(wire):
    wire.is_held = True
    answer = wire.ask("abc")
    wire.sides[HERE].lost(THERE)
    assert code_of(answer) is ErrorCode.REQUEST_TIMED_OUT
    assert code_of(wire.ask("again")) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody is there"


def test_what_was_not_sent_yet_was_not_done(wire):
    wire.is_held = True
    sent = wire.ask("first", bytes(UNDER_WAY_BYTES))
    waits = [wire.ask("second", b"x"), wire.ask("third", b"x")]
    wire.sides[HERE].lost(THERE)
    assert code_of(sent) is ErrorCode.REQUEST_TIMED_OUT
    assert [code_of(each) for each in waits] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert len(wire.held) == 1


def test_only_so_much_is_under_way_and_the_rest_keeps_its_order(wire):
    wire.waiting = {"0": Pending(), "1": Pending()}
    half = bytes(UNDER_WAY_BYTES // 2)
    answers = [wire.ask(str(number), half if number < 3 else b"x") for number in range(5)]
    assert [text for text, _ in wire.asked] == ["0", "1"], "both halves are under way, and the small ones wait too"
    wire.waiting["1"].resolve(None)
    wire.carry()
    assert [text for text, _ in wire.asked] == ["0", "1", "2", "3", "4"]
    assert [answer.is_done for answer in answers] == [False, True, True, True, True]


def test_a_question_that_is_larger_than_that_is_sent_alone(wire):
    assert wire.ask("abc", bytes(UNDER_WAY_BYTES + 1)).result() == "cba"


def test_an_answer_that_does_not_come_is_not_waited_for_for_ever(wire):
    wire.waiting = {"abc": Pending()}
    answer = wire.ask("abc", bytes(UNDER_WAY_BYTES))
    wire.clock.advance(2)
    behind = wire.ask("def", b"x")
    wire.clock.advance(1000 + ANSWER_WITHIN_MS - 3)
    assert not answer.is_done
    wire.clock.advance(1)
    assert code_of(answer) is ErrorCode.REQUEST_TIMED_OUT
    wire.carry()
    assert behind.result() == "fed"
    wire.waiting["abc"].resolve(None)  # too late, and nobody minds


def test_an_answer_to_a_process_that_has_died_does_not_reach_the_next_one(wire):
    wire.waiting = {"abc": Pending()}
    wire.ask("abc")
    wire.sides[THERE].lost(HERE)
    wire.sides[THERE].connected(handshake(HERE))
    wire.is_held = True
    wire.waiting["abc"].resolve(None)
    assert wire.held == []


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.CALL_ANSWER])
@pytest.mark.parametrize("head", [b"", b"\x00", msgspec.msgpack.encode([1, 2, 3]), msgspec.msgpack.encode([1, "a"])])
def test_what_cannot_be_read_ends_the_connection(wire, kind, head):
    with pytest.raises(ProtocolViolation):
        wire.sides[HERE].received(THERE, memoryview(b"".join(encode_frame(kind, [head])))[4:])


def test_an_answer_that_nobody_asked_for_is_passed_over(wire):
    head = msgspec.msgpack.encode([7, 0, "", "x"])
    wire.sides[HERE].received(THERE, memoryview(b"".join(encode_frame(Kind.CALL_ANSWER, [head])))[4:])
