"""The OpenAPI document: made of the routes and the structs of their handlers, so that it says what is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from inspect import getdoc
from typing import Any

import msgspec

from zurau import __version__
from zurau.api.http.messages import JSON, HttpAnswer, Refusal, Told
from zurau.api.http.routes import Route

OPENAPI = "3.1.0"
FORM = "application/x-www-form-urlencoded"
_REFERENCE = "#/components/schemas/{name}"

Json = dict[str, Any]


def describe(routes: Sequence[Route]) -> bytes:
    """The document, as JSON."""
    types: set[type[msgspec.Struct]] = {Refusal, *(route.asks for route in routes)}
    types |= {tells for route in routes for tells in route.tells if issubclass(tells, Told)}
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    references = dict(zip(types, schemas, strict=True))
    paths: dict[str, Json] = {}
    for route in routes:
        fields = components[route.asks.__name__]
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, fields, references)
    # What a GET asks for is in its parameters, and nothing refers to its struct.
    asked_in_body = {route.asks.__name__ for route in routes if route.method == "POST"}
    only_asked = {route.asks.__name__ for route in routes} - asked_in_body
    document = {
        "openapi": OPENAPI,
        "info": {"title": "Zurau", "version": __version__, "description": "A commit log, over HTTP."},
        "paths": paths,
        "components": {"schemas": {name: each for name, each in components.items() if name not in only_asked}},
    }
    return msgspec.json.encode(document)


def _operation(route: Route, fields: Json, references: dict[Any, Json]) -> Json:
    operation: Json = {
        "operationId": f"{route.handle.__module__.rpartition('.')[2]}.{route.handle.__name__}",
        "summary": (getdoc(route.handle) or "").partition("\n")[0],
        "parameters": list(_parameters(route, fields)),
        "responses": _responses(route, references),
    }
    if route.method == "POST":
        content = {"schema": references[route.asks]}
        operation["requestBody"] = {"required": True, "content": {JSON: content, FORM: content}}
    return operation


def _parameters(route: Route, fields: Json) -> Iterator[Json]:
    """Those in the path; and of what has no body, those in the query."""
    for name, schema in fields.get("properties", {}).items():
        in_path = f"{{{name}}}" in route.path
        if in_path or route.method != "POST":
            yield {
                "name": name,
                "in": "path" if in_path else "query",
                "required": in_path or name in fields.get("required", ()),
                "schema": schema,
            }


def _responses(route: Route, references: dict[Any, Json]) -> Json:
    problem = {"description": "What is wrong", "content": {JSON: {"schema": references[Refusal]}}}
    responses: Json = {"default": problem}
    for status in _statuses(route):
        response: Json = {"description": status.phrase}
        if route.tells and status != HTTPStatus.NO_CONTENT:
            schemas = [{} if issubclass(tells, HttpAnswer) else references[tells] for tells in route.tells]
            response["content"] = {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas}}}
        responses[str(int(status))] = response
    return responses


def _statuses(route: Route) -> Iterable[HTTPStatus]:
    return (route.status, *route.also) if route.tells else (HTTPStatus.NO_CONTENT,)
