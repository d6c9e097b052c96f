"""From a request to its answer: routes, values wherever they are, refusals and defects."""

from __future__ import annotations

import pytest
from tests.unit.api.http.conftest import request

from zurau.api.http.decoding import FIELDS_MAX, FORM_BYTES_MAX, decode_asked
from zurau.api.http.messages import Asked, Call, HttpRequest, Told
from zurau.api.http.routes import Route
from zurau.errors import DiskFault, Refused
from zurau.wire.kafka.error_codes import ErrorCode

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class Two(Asked):
    text: str
    number: int = 0


class Sum(Told):
    text: str
    number: int


async def echo(request: Two, call: Call) -> Sum:
    return Sum(request.text, request.number)


async def fails(request: Two, call: Call) -> Sum:
    raise ERRORS[request.text]


async def says_nothing(request: Two, call: Call) -> None:
    return None


ERRORS = {
    "refused": Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic"),
    "without words": Refused(ErrorCode.NOT_CONTROLLER),
    "too large": Refused(ErrorCode.MESSAGE_TOO_LARGE),
    "disk": DiskFault("the disk is full"),
    "defect": KeyError("a defect"),
    "unheard of": Refused(ErrorCode.INVALID_PARTITIONS, "no"),
}
ROUTES = [
    Route("POST", "/echo", echo),
    Route("GET", "/echo", echo),
    Route("GET", "/echo/{text}", echo),
    Route("POST", "/echo/{text}/more", echo),
    Route("GET", "/fails/{text}", fails),
    Route("DELETE", "/echo/{text}", says_nothing),
]


@pytest.fixture
def ask(connect):
    def ask(method, target, body=b"", **headers):
        client = connect(ROUTES)
        client.send(request(method, target, body, **headers))
        (answer,) = client.answers(method)
        return answer

    return ask


@pytest.mark.parametrize(
    ("method", "target", "body", "content_type"),
    [
        ("POST", "/echo", '{"text":"a b","number":7}', JSON),
        ("POST", "/echo", '{"text":"a b","number":"7"}', "application/vnd.zurau+json; charset=utf-8"),
        ("POST", "/echo", ' {"text":"a b","number":7}', FORM),
        ("POST", "/echo", "text=a+b&number=7", FORM),
        ("POST", "/echo?text=a+b&number=7", "", ""),
        ("POST", "/echo?number=7", '{"text":"a b"}', JSON),
        ("POST", "/echo/a%20b/more", '{"number":7}', JSON),
        ("POST", "/echo/a%20b/more?number=7", "", ""),
        ("GET", "/echo/a%20b?number=7", "", ""),
        ("GET", "/echo?text=a%20b&number=7", "", ""),
    ],
)
def test_a_value_may_be_in_the_path_the_query_a_form_or_json(ask, method, target, body, content_type):
    answer = ask(method, target, body, **({"Content_Type": content_type} if content_type else {}))
    assert (answer.status, answer.json) == (200, {"text": "a b", "number": 7})


@pytest.mark.parametrize(
    ("target", "body", "content_type", "words"),
    [
        ("/echo", "{}", JSON, "missing required field `text`"),
        ("/echo", '{"text":1}', JSON, "Expected `str`"),
        ("/echo", '{"text":"a","number":"x"}', JSON, "Expected `int`"),
        ("/echo", '{"text":"a","colour":"red"}', JSON, "unknown field `colour`"),
        ("/echo", "[" * 2000, JSON, "the request does not say"),
        ("/echo?number=1", '{"a":' + "[" * 1500, JSON, "the request does not say"),
        ("/echo", '{"text":"\xff"}'.encode("latin-1"), JSON, "the request does not say"),
        ("/echo", '{"text"', JSON, "the request does not say"),
        ("/echo", b"text=\xff", FORM, "the request does not say"),
        ("/echo?text=%ff", "", "", "the query cannot be read"),
        ("/echo?text=a&text=b", "", "", "names something twice"),
        ("/echo/%ff/more", "", "", "the path is not UTF-8"),
    ],
)
def test_a_request_that_does_not_say_what_it_should_is_refused_with_the_reason(ask, target, body, content_type, words):
    answer = ask("POST", target, body, **({"Content_Type": content_type} if content_type else {}))
    assert (answer.status, answer.json["code"]) == (400, "BAD_REQUEST")
    assert words in answer.json["message"]


def test_a_body_of_another_type_is_refused(ask):
    answer = ask("POST", "/echo", "<text>a</text>", Content_Type="application/xml")
    assert (answer.status, answer.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(("size", "is_refused"), [(FORM_BYTES_MAX, False), (FORM_BYTES_MAX + 1, True)])
def test_a_form_has_a_limit_of_its_own(size, is_refused):
    body = b"text=" + b"x" * (size - 5)
    asked = HttpRequest("POST", "/echo", {"content-type": FORM}, body)
    if is_refused:
        with pytest.raises(Refused, match="REQUEST_ENTITY_TOO_LARGE"):
            decode_asked(Two, asked, {})
    else:
        assert len(decode_asked(Two, asked, {}).text) == size - 5


@pytest.mark.parametrize(("count", "words"), [(FIELDS_MAX, "unknown field"), (FIELDS_MAX + 1, "Max number of fields")])
def test_a_query_has_so_many_names_at_most(ask, count, words):
    answer = ask("GET", "/echo?" + "&".join(f"f{number}=1" for number in range(count)))
    assert answer.status == 400
    assert words in answer.json["message"]


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        ("refused", 404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("without%20words", 503, "NOT_CONTROLLER"),
        ("too%20large", 413, "MESSAGE_TOO_LARGE"),
        ("disk", 503, "KAFKA_STORAGE_ERROR"),
        ("unheard%20of", 400, "INVALID_PARTITIONS"),
    ],
)
def test_a_refusal_has_a_status_a_code_and_a_sentence(ask, what, status, code):
    answer = ask("GET", f"/fails/{what}")
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.json["message"]
    assert answer.headers["content-type"] == JSON


def test_a_defect_costs_one_answer_and_is_logged(connect, caplog):
    client = connect(ROUTES)
    client.send(request("GET", "/fails/defect") + request("GET", "/echo/a"))
    assert [answer.status for answer in client.answers()] == [500, 200]
    assert "KeyError" in caplog.text


def test_a_broken_invariant_is_not_answered(connect):
    ERRORS["broken"] = AssertionError("an invariant")
    client = connect(ROUTES)
    with pytest.raises(AssertionError, match="an invariant"):
        client.send(request("GET", "/fails/broken"))


def test_where_there_is_nothing_to_say_nothing_is_sent(ask):
    answer = ask("DELETE", "/echo/a")
    assert (answer.status, answer.body) == (204, b"")
    assert "content-length" not in answer.headers


@pytest.mark.parametrize("target", ["/", "", "/nothing", "/echo/", "/echo/a/b", "//echo", "*"])
def test_a_path_without_anything_is_not_found(ask, target):
    answer = ask("GET", target or "/?")
    assert (answer.status, answer.json["code"]) == (404, "NOT_FOUND")
    assert "/openapi.json" in answer.json["message"]


def test_another_method_is_told_which_ones_there_are(ask):
    answer = ask("PUT", "/echo")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
