"""The document says what is done: it is made of what does it."""

from __future__ import annotations

import re

from zurau.api.http.table import ROUTES


def test_every_route_is_described_with_what_it_asks_and_answers(ask):
    document = ask("GET", "/openapi.json").json
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    made = document["paths"]["/topics"]["post"]
    assert made["summary"] == "Make a topic; it can be used when this is answered."
    assert made["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/NewTopic"}
    assert set(made["responses"]) == {"201", "default"}
    assert set(document["paths"]["/topics/{topic}"]["delete"]["responses"]) == {"204", "default"}
    assert set(document["paths"]["/health/ready"]["get"]["responses"]) == {"200", "503", "default"}


def test_limits_are_in_the_document(ask):
    new_topic = ask("GET", "/openapi.json").json["components"]["schemas"]["NewTopic"]
    assert new_topic["properties"]["topic"]["maxLength"] == 249
    assert new_topic["additionalProperties"] is False
    assert new_topic["required"] == ["topic"]


def test_a_part_of_the_path_is_a_parameter(ask):
    (parameter,) = ask("GET", "/openapi.json").json["paths"]["/topics/{topic}/partitions"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("topic", "path", True)


def test_every_reference_leads_somewhere_and_nothing_is_left_over(ask):
    answer = ask("GET", "/openapi.json")
    referred = set(re.findall(r"#/components/schemas/([\w.]+)", answer.body.decode()))
    assert referred == set(answer.json["components"]["schemas"])
