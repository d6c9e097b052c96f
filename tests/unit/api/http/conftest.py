"""A real broker in an invented world, and a client that speaks HTTP with it, both without sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import h11
import msgspec
import pytest

from zurau.api.client import Client, ConnectionState
from zurau.api.http.door import Door
from zurau.api.http.routes import Route
from zurau.api.http.session import HttpSession
from zurau.api.http.table import ROUTES
from zurau.api.response_memory import ResponseShare
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.broker.settings import BrokerSettings
from zurau.ids import Address
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker

BODY_MAX_BYTES = 2048
#: Longer than anything that is waited for in these tests.
LONG_MS = 60_000


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return msgspec.json.decode(self.body)


class Driver:
    """Gives a session its bytes as a connection would, and reads what it answers as a client would."""

    def __init__(self, door: Door, responses: ResponseShare | None = None) -> None:
        state = ConnectionState()
        caller = Caller(ANONYMOUS, "127.0.0.1", "HTTP", state)
        client = Client(caller, Address("127.0.0.1", 8080), responses=responses, connection=state)
        self.session = HttpSession(client, self, door, bytearray(1 << 18))
        #: As they left.
        self.sent = b""
        self.is_finished = False
        #: How often the session gave way to others while it took bytes apart.
        self.steps = 0

    def send(self, content: bytes) -> None:
        if self.session.inbox:
            raise AssertionError("a connection does not read meanwhile")
        self.session.get_buffer()[: len(content)] = content
        self.session.received(len(content))
        self._go_on()

    def answers(self, *methods: str) -> list[Answer]:
        """Those to requests of these methods, GET unless it is said."""
        client = h11.Connection(h11.CLIENT)
        received, self.sent = self.sent, b""
        client.receive_data(received)
        found: list[Answer] = []
        while client.trailing_data[0]:
            method = methods[len(found)] if len(found) < len(methods) else "GET"
            client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
            client.send(h11.EndOfMessage())
            found.append(self._answer(client))
            if client.our_state is not h11.DONE or client.their_state is not h11.DONE:
                break
            client.start_next_cycle()
        return found

    def _answer(self, client: h11.Connection) -> Answer:
        answer = Answer(0, {}, b"")
        while True:
            event = client.next_event()
            if isinstance(event, h11.Response):
                answer.status = event.status_code
                answer.headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                answer.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return answer
            else:
                assert isinstance(event, h11.InformationalResponse), event

    # What the session asks of its connection

    def answer_is_ready(self) -> None:
        while (pieces := self.session.next_answer()) is not None:
            self.sent += b"".join(pieces)
        self._go_on()

    def after_this_read(self, work: Callable[[], None]) -> None:
        work()

    def finish(self) -> None:
        self.is_finished = True

    def _go_on(self) -> None:
        while self.session.inbox and self.session.may_start():
            self.steps += 1
            pieces = self.session.start_next()
            if pieces is not None:
                self.sent += b"".join(pieces)


@pytest.fixture
def simulated() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.fixture
def connect(simulated):
    """A client of a door with these routes."""

    def connect(routes: Sequence[Route] = ROUTES, names: Sequence[str] = ()) -> Driver:
        return Driver(Door(simulated.broker, routes, BODY_MAX_BYTES, names))

    return connect


@pytest.fixture
def ask(connect, simulated):
    """The answer to one request."""

    def ask(method: str, target: str, body: bytes | str = b"", **headers: str) -> Answer:
        client = connect()
        client.send(request(method, target, body, **headers))
        simulated.clock.advance(LONG_MS)
        (answer,) = client.answers(method)
        return answer

    return ask


def request(method: str, target: str, body: bytes | str = b"", **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    lines = {"Host": "localhost:8080"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if content and "Transfer-Encoding" not in lines:
        lines |= {"Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + content
