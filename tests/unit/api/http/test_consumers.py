"""Consuming over HTTP, on a real broker."""

from __future__ import annotations

import json

import pytest
from tests.unit.api.http.conftest import request

from zurau.broker import group_coordinators
from zurau.ids import TopicPartition
from zurau.pending import start
from zurau.records.builder import NewRecord, build_batch

TIME = 1_767_657_600_000


@pytest.fixture
def store(simulated):
    def store(*values: str, partition: int = 0) -> None:
        records = [NewRecord(b"k", value.encode(), timestamp=TIME) for value in values]
        simulated.broker.partitions[TopicPartition("t", partition)].append_own(build_batch(records))
        simulated.clock.advance(1000)

    return store


@pytest.fixture
def register(ask):
    def register(topic: str = "t") -> str:
        answer = ask("POST", "/consumer/register", json.dumps({"topic": topic}))
        assert answer.status == 200, answer
        return answer.json["consumer_id"]

    return register


@pytest.fixture
def consume(ask):
    def consume(consumer: str, topic: str = "t", **values):
        query = "".join(f"&{name}={value}" for name, value in values.items())
        return ask("GET", f"/consumer/consume?consumer_id={consumer}&topic={topic}{query}")

    return consume


@pytest.fixture
def tell(ask):
    def tell(what: str, consumer: str, method: str = "POST"):
        return ask(method, f"/{what}?consumer_id={consumer}&topic=t")

    return tell


def message(answer) -> str:
    assert answer.status == 200, answer
    return answer.json["message"]


def test_a_consumer_gets_every_message_in_order_and_then_nothing(register, store, consume):
    consumer = register()
    store("a", "b")
    assert consume(consumer).json == {
        "partition": 0, "offset": 0, "timestamp": TIME, "key": "k", "message": "a", "encoding": "utf-8"
    }  # fmt: skip
    assert message(consume(consumer)) == "b"
    nothing = consume(consumer)
    assert (nothing.status, nothing.body) == (204, b"")
    store("c")
    assert message(consume(consumer)) == "c"


def test_every_consumer_has_its_own_place_and_begins_at_the_start(register, store, consume):
    one = register()
    store("a", "b")
    assert message(consume(one)) == "a"
    two = register()
    assert [message(consume(two)), message(consume(two))] == ["a", "b"]
    assert message(consume(one)) == "b"


def test_what_was_not_acknowledged_is_delivered_again_after_a_restart_and_the_rest_is_not(
    simulated, register, store, consume, tell
):
    consumer = register()
    store("a", "b", "c")
    consume(consumer)
    assert message(consume(consumer)) == "b", "which acknowledges the first"
    simulated.lose_power()
    simulated.start()
    assert message(consume(consumer)) == "b", "that it was handed out is forgotten"
    assert tell("consumer/ack", consumer).status == 204
    simulated.lose_power()
    simulated.start()
    assert message(consume(consumer)) == "c"


def test_what_is_given_back_is_delivered_again(register, store, consume, tell):
    consumer = register()
    store("a", "b")
    consume(consumer)
    assert tell("consumer/nack", consumer).status == 204
    assert message(consume(consumer)) == "a"
    assert message(consume(consumer)) == "b"


def test_acknowledging_or_giving_back_nothing_changes_nothing(register, store, consume, tell):
    consumer = register()
    store("a")
    assert tell("consumer/ack", consumer).status == 204
    assert tell("consumer/nack", consumer).status == 204
    assert message(consume(consumer)) == "a"


def test_several_messages_come_as_a_list_and_are_acknowledged_together(register, store, consume):
    consumer = register()
    store("a", "b", "c")
    answer = consume(consumer, max=2)
    assert [each["message"] for each in answer.json["messages"]] == ["a", "b"]
    assert [each["message"] for each in consume(consumer, max=2).json["messages"]] == ["c"]
    assert consume(consumer, max=2).status == 204


def test_all_partitions_get_their_turn_and_one_alone_can_be_asked_for(ask, register, store, consume):
    ask("POST", "/topics?topic=t&partitions=3")
    consumer = register()
    for partition in range(3):
        store("x", "y", partition=partition)
    assert consume(consumer, partition=2).json["partition"] == 2
    found = [consume(consumer).json for _ in range(5)]
    assert sorted((each["partition"], each["offset"]) for each in found) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]
    assert consume(consumer, partition=2).status == 204
    assert consume(consumer, partition=3).status == 404


def test_size_is_what_is_left_for_this_consumer_until_it_is_acknowledged(ask, register, store, consume, tell):
    ask("POST", "/topics?topic=t&partitions=2")
    consumer = register()
    store("a", "b")
    store("c", partition=1)
    assert tell("size", consumer, "GET").json == {"size": 3}
    consume(consumer)
    assert tell("size", consumer, "GET").json == {"size": 3}
    tell("consumer/ack", consumer)
    assert tell("size", consumer, "GET").json == {"size": 2}


def test_whoever_waits_is_answered_when_a_message_comes_to_any_partition(ask, connect, register, store):
    ask("POST", "/topics?topic=t&partitions=3")
    consumer = register()
    client = connect()
    client.send(request("GET", f"/consumer/consume?consumer_id={consumer}&topic=t&wait_ms=20000"))
    assert not client.sent
    store("news", partition=1)
    (answer,) = client.answers()
    assert message(answer) == "news"


def test_whoever_waits_in_vain_is_told_that_there_is_nothing(register, consume):
    assert consume(register(), wait_ms=5000).status == 204


def test_a_client_that_left_while_it_waited_was_not_handed_anything(simulated, connect, register, store, consume):
    consumer = register()
    client = connect()
    client.send(request("GET", f"/consumer/consume?consumer_id={consumer}&topic=t&wait_ms=20000"))
    client.session.end()
    assert len(simulated.broker.partitions[TopicPartition("t", 0)]._readers) == 0
    store("a", "b")
    assert message(consume(consumer)) == "a"


def test_what_retention_has_removed_is_passed_over(simulated, register, store, consume):
    consumer = register()
    store("a", "b", "c")
    consume(consumer)
    partition = simulated.broker.partitions[TopicPartition("t", 0)]
    simulated.wait(start(partition.delete_records_before(2)))
    assert message(consume(consumer)) == "c"


def test_too_many_who_were_handed_something_are_handed_it_again(monkeypatch, register, store, consume):
    monkeypatch.setattr(group_coordinators, "DELIVERED_MAX", 2)
    consumers = [register() for _ in range(3)]
    store("a", "b")
    for consumer in consumers:
        assert message(consume(consumer)) == "a"
    assert [message(consume(consumer)) for consumer in reversed(consumers)] == ["b", "b", "a"]


@pytest.mark.parametrize("wrong", ["consumer-1-00000000", "", "producer-0-ffffffff", "x"])
def test_an_id_that_was_not_given_out_for_the_topic_is_not_found(ask, register, consume, tell, wrong):
    consumer = register()
    register("other")
    for answer in (
        consume(wrong), consume(consumer, topic="other"), tell("consumer/ack", wrong), tell("consumer/nack", wrong),
        tell("size", wrong, "GET"),
    ):  # fmt: skip
        assert (answer.status, answer.json["code"]) == (404, "UNKNOWN_MEMBER_ID")
        assert "/consumer/register" in answer.json["message"]


def test_a_producers_id_is_no_consumers_id(ask, register, consume):
    register()
    producer = ask("POST", "/producer/register?topic=t").json["producer_id"]
    assert consume(producer).status == 404


def test_a_topic_that_was_deleted_is_not_found_and_a_new_one_of_its_name_begins_anew(ask, register, store, consume):
    consumer = register()
    store("a", "b")
    consume(consumer)
    consume(consumer)
    ask("DELETE", "/topics/t")
    assert consume(consumer).status == 404
    ask("POST", "/topics?topic=t")
    store("new", "newer", "newest")
    assert [message(consume(consumer)) for _ in range(3)] == ["new", "newer", "newest"]
