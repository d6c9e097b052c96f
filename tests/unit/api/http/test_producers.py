"""Producing over HTTP, on a real broker."""

from __future__ import annotations

import json

import pytest
from tests.unit.api.http.conftest import BODY_MAX_BYTES

from zurau.api.http.decoding import decode_asked
from zurau.api.http.messages import HttpRequest
from zurau.api.http.producers import KEY_CHARACTERS_MAX, MESSAGES_MAX, Produce
from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.log.settings import LogSettings
from zurau.records.batch import iter_batches
from zurau.records.partitioner import partition_for_key
from zurau.records.record import iter_records


@pytest.fixture
def stored(simulated):
    """Keys and values in a partition."""

    def stored(topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
        found = simulated.broker.partitions[TopicPartition(topic, partition)]
        content = found.read(0, 1 << 20, found.high_watermark)
        return [(record.key, record.value) for _, batch in iter_batches(content) for record in iter_records(batch)]

    return stored


@pytest.fixture
def register(ask):
    def register(topic: str) -> str:
        answer = ask("POST", "/producer/register", json.dumps({"topic": topic}))
        assert answer.status == 200
        return answer.json["producer_id"]

    return register


@pytest.fixture
def produce(ask):
    def produce(**values):
        return ask("POST", "/producer/produce", json.dumps(values), Content_Type="application/json")

    return produce


def test_a_producer_registers_and_its_message_is_stored(register, produce, stored):
    producer = register("orders")
    answer = produce(topic="orders", producer_id=producer, message="one", key="k")
    assert (answer.status, answer.json) == (200, {"partition": 0, "offset": 0})
    assert produce(topic="orders", producer_id=producer, message="two").json == {"partition": 0, "offset": 1}
    assert stored("orders") == [(b"k", b"one"), (None, b"two")]


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ('"zwölf \\u00e9 \\n"', "zwölf é \n".encode()),
        ('{"b": 1.10,  "a": [null]}', b'{"b": 1.10,  "a": [null]}'),
        ("12345678901234567890123", b"12345678901234567890123"),
        ("null", None),
        ("false", b"false"),
        ('""', b""),
    ],
)
def test_text_is_stored_as_it_reads_and_other_json_as_it_was_written(ask, register, stored, message, value):
    body = f'{{"topic":"t","producer_id":"{register("t")}","message":{message}}}'
    assert ask("POST", "/producer/produce", body, Content_Type="application/json").status == 200
    assert stored("t") == [(None, value)]


def test_the_names_are_taken_from_a_query_or_a_form_too(ask, register, stored):
    producer = register("t")
    query = f"topic=t&producer_id={producer}&message=12&key=a%20b&partition=0"
    assert ask("POST", f"/producer/produce?{query}").status == 200
    form = "application/x-www-form-urlencoded"
    assert ask("POST", "/producer/produce", query, Content_Type=form).status == 200
    assert stored("t") == [(b"a b", b"12")] * 2


def test_several_messages_are_stored_together_and_their_places_told_in_their_order(ask, register, produce, stored):
    ask("POST", "/topics?topic=t&partitions=3")
    messages = [{"message": "a", "partition": 2}, {"message": "b", "partition": 0}, {"message": "c", "partition": 2}]
    answer = produce(topic="t", producer_id=register("t"), messages=messages)
    places = [(place["partition"], place["offset"]) for place in answer.json["messages"]]
    assert places == [(2, 0), (0, 0), (2, 1)]
    assert [value for _, value in stored("t", 2)] == [b"a", b"c"]


def test_a_key_decides_as_it_does_for_kafkas_clients_and_without_one_all_get_their_share(
    connect, ask, register, stored
):
    ask("POST", "/topics?topic=t&partitions=3")
    messages = [{"message": "x", "key": key} for key in ("a", "b", "c")] + [{"message": "y"}] * 6
    body = json.dumps({"topic": "t", "producer_id": register("t"), "messages": messages})
    places = ask("POST", "/producer/produce", body, Content_Type="application/json").json["messages"]
    assert [place["partition"] for place in places[:3]] == [partition_for_key(key, 3) for key in (b"a", b"b", b"c")]
    assert sorted(place["partition"] for place in places[3:]) == [0, 0, 1, 1, 2, 2]


def test_an_id_is_known_for_its_topic_at_every_start_of_the_broker_and_for_no_other(simulated, register, produce):
    producer = register("orders")
    register("payments")
    simulated.lose_power()
    simulated.start()
    for topic, producer_id, status in [
        ("orders", producer, 200),
        ("payments", producer, 404),
        ("orders", producer + "0", 404),
        ("orders", "12", 404),
        ("orders", "", 404),
        ("orders", "9" * 10_00, 404),
    ]:
        answer = produce(topic=topic, producer_id=producer_id, message="x")
        assert answer.status == status, producer_id
    assert answer.json["code"] == "UNKNOWN_PRODUCER_ID"
    assert "/producer/register" in answer.json["message"]


def test_every_registration_has_an_id_of_its_own(register):
    assert len({register("t") for _ in range(5)}) == 5


def test_a_topic_or_a_partition_that_is_not_there_is_not_found(ask, register, produce):
    producer = register("t")
    missing = produce(topic="t", producer_id=producer, message="x", partition=1)
    assert (missing.status, missing.json["code"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert "partitions 0 to 0" in missing.json["message"]
    ask("DELETE", "/topics/t")
    assert produce(topic="t", producer_id=producer, message="x").status == 404


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "neither `message` nor `messages`"),
        ({"message": "a", "messages": [{"message": "b"}]}, "said for each"),
        ({"key": "a", "messages": [{"message": "b"}]}, "said for each"),
        ({"messages": []}, "length >= 1"),
        ({"messages": [{}]}, "missing required field `message`"),
        ({"message": "a", "partition": -1}, ">= 0"),
        ({"message": "a", "delay_ms": 5}, "unknown field `delay_ms`"),
    ],
)
def test_what_cannot_be_meant_is_refused(register, produce, values, words):
    answer = produce(topic="t", producer_id=register("t"), **values)
    assert answer.status == 400
    assert words in answer.json["message"]


@pytest.mark.parametrize(("count", "key", "is_refused"), [
    (MESSAGES_MAX, "", False), (MESSAGES_MAX + 1, "", True),
    (1, "k" * KEY_CHARACTERS_MAX, False), (1, "k" * (KEY_CHARACTERS_MAX + 1), True),
])  # fmt: skip
def test_messages_of_a_call_and_characters_of_a_key_have_limits(count, key, is_refused):
    messages = [{"message": "x", "key": key}] * count
    body = json.dumps({"topic": "t", "producer_id": "1-a", "messages": messages}).encode()
    asked = HttpRequest("POST", "/producer/produce", {"content-type": "application/json"}, body)
    if is_refused:
        with pytest.raises(Refused, match="length <="):
            decode_asked(Produce, asked, {})
    else:
        assert len(decode_asked(Produce, asked, {}).messages) == count


def test_what_is_larger_than_the_topic_allows_is_refused_and_nothing_of_it_is_stored(
    ask, simulated, register, produce, stored
):
    producer = register("t")
    partition = simulated.broker.partitions[TopicPartition("t", 0)]
    size = BODY_MAX_BYTES // 2
    partition.settings_changed(LogSettings(max_message_bytes=size))
    assert produce(topic="t", producer_id=producer, message="x" * (size // 2)).status == 200
    answer = produce(topic="t", producer_id=producer, message="x" * size)
    assert (answer.status, answer.json["code"]) == (413, "MESSAGE_TOO_LARGE")
    assert len(stored("t")) == 1


def test_the_brokers_own_topics_are_not_written(register, ask):
    answer = ask("POST", "/producer/register?topic=__consumer_offsets")
    refused = ask(
        "POST", f"/producer/produce?topic=__consumer_offsets&message=x&producer_id={answer.json['producer_id']}"
    )
    assert (refused.status, refused.json["code"]) == (400, "INVALID_TOPIC_EXCEPTION")


def test_where_topics_are_not_made_by_themselves_registering_makes_none(ask, simulated):
    simulated.lose_power()
    simulated._broker_settings = BrokerSettings(offsets_topic_num_partitions=1, auto_create_topics_enable=False)
    simulated.start()
    assert ask("POST", "/producer/register?topic=t").status == 404
    assert ask("POST", "/producer/register?topic=a/b").json["code"] == "INVALID_TOPIC_EXCEPTION"


def test_a_producer_is_seen(simulated, register, produce):
    producer = register("t")
    produce(topic="t", producer_id=producer, message="x")
    assert producer in simulated.broker.last_seen.text()
