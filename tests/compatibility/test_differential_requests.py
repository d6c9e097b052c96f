"""The same odd questions to Zurau and to Apache Kafka: both answer the same, or both hang up.

Everything in an answer is compared but what belongs to each broker: addresses, ids that it made up, its words for
people. Where we differ on purpose the reason stands here and in docs/compatibility.md; a difference that is listed and
is none any more fails too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from broker_process import ZurauBroker
from odd_admin_requests import admin_questions
from odd_requests import FIRST_MS, Question, all_questions
from peers import PATIENCE_S, HungUp, NoAnswer, Peer, produce_request

from zurau.errors import CorruptData
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.messages.fetch import PartitionData
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest
from zurau.wire.kafka.schema import Message

pytestmark = pytest.mark.xdist_group("apache-kafka")

QUESTIONS = all_questions() | admin_questions()
#: What each broker has of its own.
OWN = {
    "throttle_time_ms", "error_message", "topic_id", "cluster_id", "controller_id", "host", "port", "brokers",
    "producer_id", "member_id", "session_id", "records", "configs", "documentation", "rack",
    "node_endpoints", "current_leader",
}  # fmt: skip

#: Ours are told, Kafka's are -1, when a partition cannot be read.
OF_A_READABLE_PARTITION = ("high_watermark", "last_stable_offset", "log_start_offset")

#: Where we differ on purpose, by reason. docs/compatibility.md says the same in one table.
REASONS = {
    "an epoch that cannot be is told": ["Fetch: epoch -2"],
    "an empty name says that the topic is asked for by id": ["Fetch: topic ''"],
    "the brokers' own topic is the brokers' to make": ["CreateTopics: the name '__consumer_offsets'18"],
    "what has no meaning is no setting": ["CreateTopics: 'retention.bytes' = -2"],
    "levels of features are our own: only what holds can be asked for": [
        *(f"UpdateFeatures {version} in way 1: [('metadata.version', 7)]" for version in (0, 1, 2)),
        "UpdateFeatures 2 in way 2: [('metadata.version', 7)]",
        *(f"UpdateFeatures {version} in way 1: [('group.version', 1)]" for version in (1, 2)),
        "UpdateFeatures 2 in way 2: [('group.version', 1)]",
    ],
    "there is no transaction that a pattern could match": ["ListTransactions 2: like '['"],
    "only -1 stands for null": ["Frame: Metadata with a count of -2"],
}  # fmt: skip
INTENDED = {name: reason for reason, names in REASONS.items() for name in names}


@pytest.fixture(scope="module")
def peers(apache_kafka, tmp_path_factory) -> Iterator[tuple[Peer, Peer]]:
    """Zurau and Apache Kafka, which hold the same."""
    with ZurauBroker(tmp_path_factory.mktemp("zurau"), flush="os") as zurau:
        pair = Peer(zurau.port), Peer(apache_kafka.port)
        for peer in pair:
            furnish(peer)
        yield pair
        for peer in pair:
            peer.close()


def furnish(peer: Peer) -> None:
    peer.create_topic("ten")
    peer.create_topic("empty")
    peer.create_topic("two", 2)
    for number in range(10):
        batch = build_batch([NewRecord(b"k", b"v", timestamp=FIRST_MS + 1000 * number)])
        peer.ask(produce_request("ten", 0, bytes(batch)), 9)
    # Kafka makes the topic of the groups and reserves ids when it is first asked.
    wait_until_ready(peer, FindCoordinatorRequest(key="g"), 3)
    wait_until_ready(peer, OffsetFetchRequest(group_id="g", topics=None), 7)
    wait_until_ready(peer, InitProducerIdRequest(transaction_timeout_ms=1000), 4)


def wait_until_ready(peer: Peer, request: Message, version: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while code := peer.ask(request, version).error_code:
        assert time.monotonic() < deadline, f"{request} is answered with {code}"
        time.sleep(0.05)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_odd_question_is_answered_as_kafka_answers_it(peers, name):
    ours, theirs = (answer(peer, QUESTIONS[name]) for peer in peers)
    if name in INTENDED:
        assert ours != theirs, f"no difference any more: {INTENDED[name]}"
    elif not has_failed(theirs):
        assert ours == theirs


def test_the_table_of_differences_names_questions_that_exist():
    assert INTENDED.keys() <= QUESTIONS.keys()


def answer(peer: Peer, question: Question) -> Any:
    connection = peer.another()
    try:
        if isinstance(question.request, bytes):
            connection.send_bytes(question.request)
            return connection.receive_frame()[:6].hex()
        return plain(connection.ask(question.request, question.version))
    except (HungUp, NoAnswer) as reaction:
        return type(reaction).__name__
    finally:
        connection.close()


def plain(value: Any) -> Any:
    """An answer without what belongs to the broker that gave it."""
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__ if name not in OWN}
        return fields | _read(value)
    return [plain(each) for each in value] if isinstance(value, list) else value


def _read(value: msgspec.Struct) -> dict[str, Any]:
    """Of a fetched partition: whether it failed, or how many whole batches it has. Kafka cuts the last one short."""
    if not isinstance(value, PartitionData):
        return {}
    facts = {"batches": _whole_batches(value.records or b""), "aborted_transactions": value.aborted_transactions or []}
    return facts if value.error_code == 0 else facts | dict.fromkeys(OF_A_READABLE_PARTITION)


def _whole_batches(records: bytes) -> int:
    count = 0
    with suppress(CorruptData):
        for header, batch in iter_batches(records):
            count += header.length == len(batch)
    return count


def has_failed(answered: Any) -> bool:
    """Whether Kafka answered with UNKNOWN_SERVER_ERROR, or not at all."""
    if isinstance(answered, dict):
        return answered.get("error_code") == -1 or any(map(has_failed, answered.values()))
    return any(map(has_failed, answered)) if isinstance(answered, list) else answered == "NoAnswer"
