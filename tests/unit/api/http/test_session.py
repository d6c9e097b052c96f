"""HTTP's side of a connection without a connection: bytes in, answers out, one after the other."""

from __future__ import annotations

import pytest
from tests.unit.api.http.conftest import BODY_MAX_BYTES, request

from zurau.api.http.messages import Asked, Call, Told
from zurau.api.http.routes import Route
from zurau.api.http.session import EVENTS_AT_ONCE, HEAD_BYTES_MAX
from zurau.pending import Pending


class Said(Asked):
    text: str = ""


class Heard(Told):
    text: str


class Waiting:
    """A handler that answers when it is told to."""

    def __init__(self) -> None:
        self.pendings: list[Pending[None]] = []
        self.ended = 0

    @property
    def route(self) -> Route:
        async def wait(request: Said, call: Call) -> Heard:
            self.pendings.append(Pending())
            try:
                await self.pendings[-1]
            except GeneratorExit:
                self.ended += 1
                raise
            return Heard(request.text)

        wait.__annotations__ = {"request": Said, "call": Call, "return": Heard}
        return Route("POST", "/wait", wait)


@pytest.fixture
def waiting():
    return Waiting()


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def json_of(size: int) -> bytes:
    """A body of so many bytes."""
    return b'{"text":"' + b"x" * (size - 11) + b'"}'


async def echo(request: Said, call: Call) -> Heard:
    return Heard(request.text)


ECHO = Route("POST", "/echo", echo)


def test_a_request_that_comes_byte_by_byte_is_answered(connect):
    client = connect()
    for byte in request("GET", "/health/live"):
        client.send(bytes([byte]))
    (answer,) = client.answers()
    assert (answer.status, answer.json) == (200, {"status": "live"})


def test_requests_that_come_together_are_answered_in_their_order(connect):
    client = connect([ECHO])
    client.send(b"".join(request("POST", f"/echo?text={number}") for number in range(20)))
    assert [answer.json["text"] for answer in client.answers(*["POST"] * 20)] == list(map(str, range(20)))
    assert not client.is_finished


def test_a_request_waits_until_the_one_before_it_is_answered(connect, waiting):
    client = connect([waiting.route, ECHO])
    client.send(request("POST", "/wait?text=first") + request("POST", "/echo?text=second"))
    assert not client.sent
    waiting.pendings[0].resolve(None)
    assert [answer.json["text"] for answer in client.answers("POST", "POST")] == ["first", "second"]


def test_what_arrives_while_a_request_waits_is_kept_counted_and_taken_later(connect, waiting):
    client = connect([waiting.route, ECHO])
    client.send(request("POST", "/wait", '{"text":"first"}', Content_Type="application/json"))
    before = client.session.held_bytes
    assert before >= len('{"text":"first"}')
    late = request("POST", "/echo?text=second")
    client.session.get_buffer()[: len(late)] = late
    client.session.received(len(late))
    assert client.session.held_bytes == before + len(late)
    assert client.session.inbox, "so that nothing more is read"
    waiting.pendings[0].resolve(None)
    assert [answer.json["text"] for answer in client.answers("POST", "POST")] == ["first", "second"]
    assert client.session.held_bytes == 0


def test_a_body_may_be_as_large_as_the_limit(connect):
    client = connect([ECHO])
    client.send(request("POST", "/echo", json_of(BODY_MAX_BYTES), Content_Type="application/json"))
    assert client.answers("POST")[0].status == 200
    assert not client.is_finished


def test_a_body_that_says_it_is_larger_is_refused_before_it_comes(connect):
    client = connect([ECHO])
    whole = request("POST", "/echo", json_of(BODY_MAX_BYTES + 1), Content_Type="application/json")
    client.send(whole[: whole.index(b"\r\n\r\n") + 4])
    (answer,) = client.answers("POST")
    assert (answer.status, answer.json["code"]) == (413, "REQUEST_ENTITY_TOO_LARGE")
    assert client.is_finished


@pytest.mark.parametrize(("size", "status"), [(BODY_MAX_BYTES, 200), (BODY_MAX_BYTES + 1, 413)])
def test_a_body_that_does_not_say_its_size_has_the_same_limit(connect, size, status):
    client = connect([ECHO])
    head = request("POST", "/echo", Transfer_Encoding="chunked", Content_Type="application/json")
    client.send(head + chunked(*[json_of(size)[at : at + 500] for at in range(0, size, 500)]))
    assert client.answers("POST")[0].status == status
    assert client.is_finished is (status == 413)
    assert client.session.held_bytes == 0


def test_a_body_in_chunks_of_a_byte_is_taken_apart_in_several_steps(connect):
    client = connect([ECHO])
    body = json_of(5 * EVENTS_AT_ONCE)
    head = request("POST", "/echo", Transfer_Encoding="chunked", Content_Type="application/json")
    client.send(head + chunked(*[bytes([byte]) for byte in body]))
    assert len(client.answers("POST")[0].json["text"]) == len(body) - 11
    assert client.steps >= 5


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
def test_a_head_has_a_limit_however_it_arrives(connect, more, status):
    # h11 would only notice one that is not complete.
    others = len("/health/live") + len("Hostlocalhost:8080") + len("X-Large")
    whole = request("GET", "/health/live", X_Large="x" * (HEAD_BYTES_MAX - others + more))
    client = connect()
    client.send(whole)
    assert client.answers()[0].status == status
    assert client.is_finished is (status == 431)


def test_a_head_that_does_not_end_is_refused_and_counted_until_then(connect):
    client = connect()
    client.send(b"GET /health/live HTTP/1.1\r\nX-Large: " + b"x" * 1000)
    assert client.session.held_bytes > 1000
    client.send(b"x" * HEAD_BYTES_MAX)
    assert client.answers()[0].status == 431
    assert client.session.held_bytes == 0


@pytest.mark.parametrize(
    "nonsense",
    [b"\x00\x00\x00\x10\x00\x12\x00\x03", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n"],
)
def test_what_is_not_http_is_told_so_and_nothing_more_is_heard(connect, nonsense):
    client = connect()
    client.send(nonsense + b"\r\n\r\n" + request("GET", "/health/live"))
    answers = client.answers()
    assert [answer.status for answer in answers] == [400]
    assert answers[0].headers["connection"] == "close"
    assert client.is_finished


def test_a_client_that_asks_whether_its_body_is_welcome_is_told(connect):
    client = connect([ECHO])
    body = json_of(100)
    whole = request("POST", "/echo", body, Content_Type="application/json", Expect="100-continue")
    client.send(whole[: -len(body)])
    assert client.sent.startswith(b"HTTP/1.1 100")
    client.send(body)
    assert client.answers("POST")[0].status == 200


def test_a_client_that_asks_and_does_not_wait_is_simply_answered(connect):
    client = connect([ECHO])
    whole = request("POST", "/echo", json_of(100), Content_Type="application/json", Expect="100-continue")
    client.send(whole + whole)
    assert b" 100 " not in client.sent
    assert [answer.status for answer in client.answers("POST", "POST")] == [200, 200]


def test_head_is_answered_as_get_is_without_the_body(connect):
    client = connect()
    client.send(request("HEAD", "/health/live") + request("GET", "/health/live"))
    without, whole = client.answers("HEAD", "GET")
    assert without.body == b""
    assert without.headers == whole.headers
    assert whole.body


@pytest.mark.parametrize(
    "last", [b"GET /health/live HTTP/1.0\r\n\r\n", request("GET", "/health/live", Connection="close")]
)
def test_a_connection_ends_where_its_client_says_so(connect, last):
    client = connect()
    client.send(last)
    assert client.answers()[0].status == 200
    assert client.is_finished


def test_when_the_client_has_gone_its_request_is_ended_and_nothing_is_held(connect, waiting):
    client = connect([waiting.route])
    client.send(request("POST", "/wait", json_of(500), Content_Type="application/json"))
    assert client.session.is_waiting
    client.session.end()
    assert waiting.ended == 1
    assert client.session.held_bytes == 0
    assert not client.session.is_waiting
    assert not client.sent
