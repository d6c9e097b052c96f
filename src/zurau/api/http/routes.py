"""How a route is declared, and found by its path.

    Route("GET", "/topics/{topic}/partitions", list_partitions, Permission(...))

What it asks for and what it answers is read off the handler's types, so that the handler, the decoding and the OpenAPI
document cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, get_args, get_type_hints
from urllib.parse import unquote

import msgspec

from zurau.api.http.messages import Asked, Call, HttpAnswer, Told
from zurau.broker.authorization import Permission
from zurau.errors import Refused

#: Answers with a struct, with None where there is nothing to say (204), or with a whole answer that is no struct.
Handler = Callable[[Any, Call], Coroutine[Any, None, Told | HttpAnswer | None]]


class Route(msgspec.Struct, frozen=True):
    method: str
    #: Parts in braces are fields of what the handler is asked.
    path: str
    handle: Handler
    #: What a caller must be allowed to do, and the field that names the resource; None: it concerns no single one.
    permission: Permission | None = None
    resource: str | None = None
    #: Of an answer, if nothing is wrong.
    status: HTTPStatus = HTTPStatus.OK
    #: Other statuses that what it tells may have (`Told.own_status`).
    also: tuple[HTTPStatus, ...] = ()

    @property
    def asks(self) -> type[Asked]:
        asks: type[Asked] = get_type_hints(self.handle)["request"]
        return asks

    @property
    def tells(self) -> tuple[type[Told | HttpAnswer], ...]:
        """One of these; none of them: nothing."""
        tells = get_type_hints(self.handle)["return"]
        return tuple(each for each in get_args(tells) or (tells,) if each is not type(None))


class Found(NamedTuple):
    route: Route
    asks: type[Asked]
    in_path: dict[str, str]


class Routes:
    """All of them, by method and path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._parts = [(tuple(route.path.split("/")), route, route.asks) for route in routes]

    def find(self, method: str, target: str) -> Found:
        """Raises `Refused` with 404 or 405. HEAD is answered as GET is."""
        sent = target.partition("?")[0].split("/")
        others = set()
        for parts, route, asks in self._parts:
            if len(parts) == len(sent) and all(map(_fits, parts, sent)):
                if method == route.method or (method == "HEAD" and route.method == "GET"):
                    return Found(route, asks, _in_path(parts, sent))
                others.add(route.method)
        if others:
            raise MethodNotAllowed(method, sorted(others))
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing at this path; GET /openapi.json lists what there is")


class MethodNotAllowed(Refused):
    def __init__(self, method: str, others: list[str]) -> None:
        super().__init__(HTTPStatus.METHOD_NOT_ALLOWED, f"there is no {method} here, but {' and '.join(others)}")
        self.allow = ", ".join(others)


def _fits(part: str, sent: str) -> bool:
    return part == sent or (part.startswith("{") and sent != "")


def _in_path(parts: Sequence[str], sent: Sequence[str]) -> dict[str, str]:
    try:
        return {
            part[1:-1]: unquote(value, errors="strict")
            for part, value in zip(parts, sent, strict=True)
            if part.startswith("{")
        }
    except UnicodeDecodeError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "the path is not UTF-8") from error
