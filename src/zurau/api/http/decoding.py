"""From a request to the struct that its route asks for.

A value may be in the path, the query, a form or a JSON object, under one name everywhere. All of them become one JSON
object, which is decoded in one go: what is wrong with it is said in one way, and a JSON value that a struct takes as it
is (`msgspec.Raw`) stays the bytes that came.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from zurau.api.http.messages import Asked, HttpRequest
from zurau.errors import Refused
from zurau.settings import KIB

#: Names in a query or a form: no route has as many.
FIELDS_MAX = 64
#: Three bytes of a form may stand for one, and are taken apart one by one: what is larger has to be JSON.
FORM_BYTES_MAX = 64 * KIB

A = TypeVar("A", bound=Asked)

_FORM = "application/x-www-form-urlencoded"
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_asked(asked: type[A], request: HttpRequest, in_path: Mapping[str, str]) -> A:
    """Raises `Refused` with 400 or 415 where that cannot be done."""
    query = request.target.partition("?")[2]
    named = _fields(query, "query") | dict(in_path)
    try:
        if request.body and _is_json(request):
            content = request.body
            if named:
                content = msgspec.json.encode(_OBJECT.decode(content) | {name: _text(named[name]) for name in named})
        else:
            if request.body:
                named = _form(request) | named
            content = msgspec.json.encode(named)
        # Not strict: in a path, a query and a form everything is text, numbers too.
        return msgspec.json.decode(content, type=asked, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the request does not say what it should: {error}") from error


def _is_json(request: HttpRequest) -> bool:
    content_type = _content_type(request)
    if content_type == "application/json" or content_type.endswith("+json"):
        return True
    # `curl -d '{...}'` calls everything a form. No field of ours begins with a brace.
    return content_type in ("", _FORM) and request.body.lstrip()[:1] == b"{"


def _form(request: HttpRequest) -> dict[str, str]:
    content_type = _content_type(request)
    if content_type != _FORM:
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"a body is application/json or {_FORM}, not {content_type or 'without a type'}",
        )
    if len(request.body) > FORM_BYTES_MAX:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a form may have {FORM_BYTES_MAX} bytes; send JSON instead",
        )
    return _fields(request.body.decode(), "form")


def _content_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _fields(text: str, where: str) -> dict[str, str]:
    """Names and values. One that comes twice is refused: which of the two was meant?"""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the {where} cannot be read: {error}") from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Refused(HTTPStatus.BAD_REQUEST, f"the {where} names something twice")
    return fields


def _text(value: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
