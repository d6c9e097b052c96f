"""Topics over HTTP, on a real broker."""

from __future__ import annotations

import pytest

from zurau.machines.controller.names import NAME_CHARACTERS_MAX
from zurau.machines.controller.topics import PARTITIONS_MAX


def test_a_topic_is_made_listed_described_and_deleted(ask):
    made = ask("POST", "/topics", '{"topic":"orders","partitions":2}')
    assert (made.status, made.json) == (201, {"topic": "orders", "partitions": 2, "replication_factor": 1})
    assert ask("GET", "/topics").json == {"topics": ["orders"]}
    described = ask("GET", "/topics/orders/partitions").json
    assert described["topic"] == "orders"
    assert described["partitions"][1] == {"partition": 1, "leader": 1, "replicas": [1], "in_sync_replicas": [1]}
    assert ask("DELETE", "/topics/orders").status == 204
    assert ask("GET", "/topics").json == {"topics": []}


def test_a_topic_that_says_nothing_more_is_made_as_the_settings_say(ask):
    assert ask("POST", "/topics?topic=orders").json == {"topic": "orders", "partitions": 1, "replication_factor": 1}


@pytest.mark.parametrize(("method", "target"), [("DELETE", "/topics/nothing"), ("GET", "/topics/nothing/partitions")])
def test_a_topic_that_is_not_there_is_not_found_and_what_to_do_is_said(ask, method, target):
    answer = ask(method, target)
    assert (answer.status, answer.json["code"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert "GET /topics" in answer.json["message"]


def test_a_topic_that_is_there_already_is_a_conflict(ask):
    ask("POST", "/topics?topic=orders")
    answer = ask("POST", "/topics?topic=orders")
    assert (answer.status, answer.json["code"]) == (409, "TOPIC_ALREADY_EXISTS")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"topic":"a/b"}', "INVALID_TOPIC_EXCEPTION"),
        ('{"topic":""}', "BAD_REQUEST"),
        (f'{{"topic":"{"x" * (NAME_CHARACTERS_MAX + 1)}"}}', "BAD_REQUEST"),
        ('{"topic":"a","partitions":0}', "BAD_REQUEST"),
        (f'{{"topic":"a","partitions":{PARTITIONS_MAX + 1}}}', "BAD_REQUEST"),
        ('{"topic":"a","replication_factor":0}', "BAD_REQUEST"),
        ('{"topic":"a","replication_factor":2}', "INVALID_REPLICATION_FACTOR"),
        ('{"topic":"a","replication_factor":1e400}', "BAD_REQUEST"),
        ('{"topic":"__consumer_offsets"}', "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_is_refused(ask, body, code):
    answer = ask("POST", "/topics", body, Content_Type="application/json")
    assert answer.json["code"] == code
    assert 400 <= answer.status < 500


def test_a_name_may_be_as_long_as_a_topics_name_may_be(ask):
    assert ask("POST", f"/topics?topic={'x' * NAME_CHARACTERS_MAX}").status == 201


def test_the_brokers_own_topics_are_described_and_not_deleted(ask):
    assert ask("GET", "/topics/__consumer_offsets/partitions").status == 200
    assert ask("DELETE", "/topics/__consumer_offsets").status == 400
