"""Health over HTTP, on a real broker."""

from __future__ import annotations

from msgspec.structs import replace


def test_a_broker_that_serves_is_live_ready_and_healthy(ask):
    assert ask("GET", "/health/live").json == {"status": "live"}
    assert ask("GET", "/health/ready").json == {"is_ready": True, "reasons": []}
    cluster = ask("GET", "/health/cluster").json
    assert cluster["is_healthy"]
    assert cluster["brokers"] == [{"broker_id": 1, "is_there": True, "rack": None}]
    assert (cluster["broker_id"], cluster["controller_id"], cluster["problems"]) == (1, 1, [])


def test_a_broker_that_is_fenced_is_live_and_not_ready(ask, simulated):
    image = simulated.broker.image
    image.brokers[1] = replace(image.brokers[1], is_fenced=True)
    answer = ask("GET", "/health/ready")
    assert (answer.status, answer.json["is_ready"]) == (503, False)
    assert "fenced" in answer.json["reasons"][0]
    assert ask("GET", "/health/live").status == 200
    assert not ask("GET", "/health/cluster").json["is_healthy"]


def test_a_problem_is_told_with_what_to_do_about_it(ask, simulated):
    simulated.broker.unexplained.append("lost-0")
    cluster = ask("GET", "/health/cluster").json
    assert not cluster["is_healthy"]
    (problem,) = cluster["problems"]
    assert (problem["kind"], problem["partition"]) == ("unexplained", "lost-0")
    assert problem["advice"]
