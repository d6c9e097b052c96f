"""All routes. What a route says of permissions is what Kafka's door asks for the same (`api/kafka/handlers.py`)."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from zurau.api.http import consumers, health, producers, records, topics
from zurau.api.http.health import NoQuestion
from zurau.api.http.messages import Call, HttpAnswer
from zurau.api.http.openapi import describe
from zurau.api.http.routes import Route
from zurau.broker.authorization import Operation, Permission, ResourceType


async def openapi(request: NoQuestion, call: Call) -> HttpAnswer:  # noqa: ARG001 - as all handlers
    """This document."""
    return HttpAnswer(HTTPStatus.OK, _document())


@cache
def _document() -> bytes:
    return describe(ROUTES)


def _on_topic(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.TOPIC)


DESCRIBE_CLUSTER = Permission(Operation.DESCRIBE, ResourceType.CLUSTER)

ROUTES = (
    Route("GET", "/openapi.json", openapi),
    Route("GET", "/health/live", health.live),
    Route("GET", "/health/ready", health.ready, also=(HTTPStatus.SERVICE_UNAVAILABLE,)),
    Route("GET", "/health/cluster", health.cluster, DESCRIBE_CLUSTER),
    Route("GET", "/topics", topics.list_topics, _on_topic(Operation.DESCRIBE)),
    Route("POST", "/topics", topics.create_topic, _on_topic(Operation.CREATE), "topic", HTTPStatus.CREATED),
    Route("DELETE", "/topics/{topic}", topics.delete_topic, _on_topic(Operation.DELETE), "topic"),
    Route("GET", "/topics/{topic}/partitions/{partition}/records", records.read, _on_topic(Operation.READ), "topic"),
    Route("POST", "/producer/register", producers.register, _on_topic(Operation.WRITE), "topic"),
    Route("POST", "/producer/produce", producers.produce, _on_topic(Operation.WRITE), "topic"),
    Route("POST", "/consumer/register", consumers.register, _on_topic(Operation.READ), "topic"),
    Route(
        "GET", "/consumer/consume", consumers.consume, _on_topic(Operation.READ), "topic", also=(HTTPStatus.NO_CONTENT,)
    ),
    Route("POST", "/consumer/ack", consumers.acknowledge, _on_topic(Operation.READ), "topic"),
    Route("POST", "/consumer/nack", consumers.give_back, _on_topic(Operation.READ), "topic"),
    Route("GET", "/size", consumers.size, _on_topic(Operation.READ), "topic"),
    Route("GET", "/topics/{topic}/partitions", topics.list_partitions, _on_topic(Operation.DESCRIBE), "topic"),
)
