"""Whether this broker lives, can be used, and what is wrong, for whoever restarts or warns."""

from __future__ import annotations

from http import HTTPStatus

from zurau.api.http.messages import Asked, Call, Told
from zurau.broker.health import Problem
from zurau.broker.leadership import controller_of


class NoQuestion(Asked):
    """Nothing is asked."""


class Live(Told):
    status: str = "live"


class Ready(Told):
    is_ready: bool
    #: Why it is not.
    reasons: list[str] = []

    @property
    def own_status(self) -> HTTPStatus | None:
        return None if self.is_ready else HTTPStatus.SERVICE_UNAVAILABLE


class BrokerHealth(Told):
    broker_id: int
    is_there: bool
    rack: str | None = None


class ClusterHealth(Told):
    cluster_id: str
    #: The broker that answers.
    broker_id: int
    controller_id: int
    #: There are no problems, and all brokers are there.
    is_healthy: bool
    brokers: list[BrokerHealth]
    #: Those of the broker that answers; the controller's are the cluster's.
    problems: list[Problem]


async def live(request: NoQuestion, call: Call) -> Live:  # noqa: ARG001 - as all handlers
    """The process runs, and its loop answers."""
    return Live()


async def ready(request: NoQuestion, call: Call) -> Ready:  # noqa: ARG001 - as all handlers
    """Clients can be sent here: this broker is a member of its cluster, and hears the controller."""
    broker, reasons = call.broker, []
    registration = broker.image.brokers.get(broker.broker_id)
    if registration is None or not registration.is_active:
        reasons.append("the controller has fenced this broker, or it is about to stop")
    if broker.heartbeats.unheard_since_ms is not None:
        reasons.append("the controller does not answer this broker")
    return Ready(is_ready=not reasons, reasons=reasons)


async def cluster(request: NoQuestion, call: Call) -> ClusterHealth:  # noqa: ARG001 - as all handlers
    """Which brokers are there, and what is wrong, with what to do about it."""
    broker = call.broker
    brokers = [
        BrokerHealth(broker_id=each.broker_id, is_there=each.is_active, rack=each.rack)
        for each in broker.image.brokers.values()
    ]
    problems = broker.health.problems()
    return ClusterHealth(
        cluster_id=broker.cluster_id,
        broker_id=broker.broker_id,
        controller_id=controller_of(broker),
        is_healthy=not problems and all(each.is_there for each in brokers),
        brokers=brokers,
        problems=problems,
    )
