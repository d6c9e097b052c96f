"""From a request to its answer: who asks, which route it is, what it says, and what it is refused with."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from itertools import count

import msgspec

from zurau.api.client import Client
from zurau.api.http.browsers import refuse_pages_of_others
from zurau.api.http.decoding import decode_asked
from zurau.api.http.messages import Asked, Call, HttpAnswer, HttpRequest
from zurau.api.http.refusals import refusal
from zurau.api.http.routes import Found, MethodNotAllowed, Route, Routes
from zurau.broker.authorization import authorize
from zurau.broker.broker import Broker
from zurau.errors import DiskFault, Refused, raise_if_broken
from zurau.wire.kafka.error_codes import ErrorCode

log = logging.getLogger("zurau.http")


class Door:
    """What all HTTP clients of a broker have in common."""

    def __init__(self, broker: Broker, routes: Sequence[Route], body_max_bytes: int, names: Sequence[str] = ()) -> None:
        self._broker = broker
        self._routes = Routes(routes)
        self._names = names
        self._spread = count()
        self.body_max_bytes = body_max_bytes

    async def answer(self, request: HttpRequest, client: Client) -> HttpAnswer:
        """Every request has one: what a handler fails with becomes one too."""
        try:
            return await self._answer(request, Call(self._broker, client, self._spread))
        except MethodNotAllowed as refused:
            return refusal(refused, headers=(("Allow", refused.allow),))
        except Refused as refused:
            return refusal(refused)
        except DiskFault as fault:
            return refusal(Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))
        except Exception as error:
            raise_if_broken(error)
            log.exception("%s %s failed; please report this", request.method, request.target)
            return refusal(Refused(ErrorCode.UNKNOWN_SERVER_ERROR))

    async def _answer(self, request: HttpRequest, call: Call) -> HttpAnswer:
        refuse_pages_of_others(request, self._names)
        found = self._routes.find(request.method, request.target)
        asked = decode_asked(found.asks, request, found.in_path)
        _authorize(found, asked, call)
        told = await found.route.handle(asked, call)
        if isinstance(told, HttpAnswer):
            return told
        if told is None:
            return HttpAnswer(HTTPStatus.NO_CONTENT)
        return HttpAnswer(told.own_status or found.route.status, msgspec.json.encode(told))


def _authorize(found: Found, asked: Asked, call: Call) -> None:
    route = found.route
    if route.permission is not None:
        resource = None if route.resource is None else getattr(asked, route.resource)
        authorize(call.client.caller, route.permission, resource)
