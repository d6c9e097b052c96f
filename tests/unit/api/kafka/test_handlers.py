"""The table of handlers: complete, and as the handlers themselves say."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from zurau.api import kafka
from zurau.api.kafka import dispatch
from zurau.api.kafka.call import Call
from zurau.api.kafka.handlers import HANDLERS, Handler
from zurau.broker.authorization import Operation, Permission, ResourceType
from zurau.broker.caller import Caller
from zurau.pending import start
from zurau.simulation.broker import CLIENT
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.frames import RequestHeader
from zurau.wire.kafka.messages.create_acls import CreateAclsRequest
from zurau.wire.kafka.schema import Message

#: Open to everybody, also to those who have not said yet who they are.
NEED_NOTHING = {"ApiVersions", "DescribeCluster"}


def test_every_api_has_exactly_one_handler_and_every_handler_its_api():
    assert HANDLERS.keys() == APIS.keys()
    assert all(handler.api is APIS[key] for key, handler in HANDLERS.items())


def test_every_file_with_a_handler_is_in_the_table():
    files = {file.stem for file in Path(kafka.__path__[0]).glob("*.py") if "\nasync def handle(" in file.read_text()}
    assert files == {handler.api.module for handler in HANDLERS.values()}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.api.name)
def test_a_handler_takes_the_request_of_its_api_and_gives_its_response(handler: Handler):
    types = typing.get_type_hints(handler.handle)
    assert (types["request"], types["call"]) == (handler.api.request, Call)
    assert types["return"] in (handler.api.response, handler.api.response | None)


def test_every_handler_says_what_a_caller_must_be_allowed_to_do():
    assert {handler.api.name for handler in HANDLERS.values() if not handler.needs} == NEED_NOTHING


def test_no_permission_is_named_twice():
    assert all(len(set(handler.needs)) == len(handler.needs) for handler in HANDLERS.values())


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.api.name)
def test_every_api_asks_whether_its_caller_may_before_it_is_handled(handler: Handler, broker, monkeypatch):
    asked: list[tuple[Caller, Permission]] = []

    async def handle(request: Message, call: Call) -> None:
        assert asked == [(CLIENT.caller, permission) for permission in handler.needs]

    monkeypatch.setitem(vars(handler), "handle", handle)
    monkeypatch.setattr(dispatch, "authorize", lambda caller, permission, _: asked.append((caller, permission)))
    header = RequestHeader(handler.api.key, handler.api.last, 1, "a client")
    assert start(dispatch._respond(header, Message(), Call(broker, header.api_version, None, CLIENT))).result() == []


def test_what_is_done_to_the_cluster_is_asked_of_the_cluster():
    (check,) = HANDLERS[CreateAclsRequest.api_key].checks
    assert check == (Permission(Operation.ALTER, ResourceType.CLUSTER), "kafka-cluster")
