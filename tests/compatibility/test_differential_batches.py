"""The same odd batches to Zurau and to Apache Kafka: both say the same, and store the same.

Compared are the error codes, which records are named as wrong, the offsets, whether the broker hangs up, and what a
consumer gets afterwards, byte for byte but for what each leader writes itself. Where we differ on purpose the reason
stands here and in docs/compatibility.md; a difference that is listed and is none any more fails too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from broker_process import ZurauBroker
from odd_batches import PACKED_ANEW, TOPICS, Kind, all_kinds
from peers import HungUp, NoAnswer, Peer, produce_request

from zurau.records.batch import iter_batches
from zurau.records.record import iter_records
from zurau.wire.kafka.error_codes import ErrorCode

pytestmark = pytest.mark.xdist_group("apache-kafka")

KINDS = all_kinds()

#: Where we differ on purpose, by reason. docs/compatibility.md says the same in one table.
REASONS = {
    "there are no transactions yet": ["attribute bit 4"],
    "what follows a batch would be dropped in silence": [
        "length field 49", "length field one short", "a batch and half of one",
        *(f"{size} zeros behind the batch" for size in (1, 12, 16, 17, 60, 61)),
    ],
    "what follows a packed frame would be dropped in silence": [
        "gzip, a byte behind", "snappy, a byte behind", "lz4, a byte behind", "lz4, records twice, count once",
    ],
    "consumers would get offsets that are not the log's": [
        *(name for name in KINDS if name.startswith("offset deltas ")),
        *(f"offset delta with {top} as its fifth byte" for top in ("0x8", "0x10", "0x70", "0x7f")),
    ],
    "only -1 stands for null, and other clients stop at another negative length": [
        name for name in KINDS if name.endswith(("length -2", "length -3", "length of -2"))
        and "a name of" not in name
    ],
    "clients differ in what they make of more bits than a number has": [
        *(f"value length with {top} as its fifth byte" for top in ("0x10", "0x70")),
        *(f"timestamp delta with {top} as its tenth byte" for top in ("0x2", "0x7e", "0x7f")),
    ],
    "the length of a record is believed by consumers": [
        f"{codec}, record length too long by one" for codec in ("gzip", "snappy", "lz4", "zstd")
    ],
    "the name of a header is text": ["headers: a name that is not UTF-8", "gzip, headers: a name that is not UTF-8"],
    "a time that does not fit into 64 bits is none": ["append time, timestamp delta the largest"],
    "an idempotent producer has an epoch": ["producer: id without epoch"],
}  # fmt: skip
INTENDED = {name: reason for reason, names in REASONS.items() for name in names}
#: Kafka fails here, and its client learns nothing. Any refusal of ours is better, as long as nothing is stored.
KAFKA_FAILED = ("UNKNOWN_SERVER_ERROR", "NoAnswer")


@pytest.fixture(scope="module")
def peers(apache_kafka, tmp_path_factory) -> Iterator[tuple[Peer, Peer]]:
    """Zurau and Apache Kafka, with the same topics in both."""
    # Kafka lets consumers read what is not flushed; so do we when asked to.
    with ZurauBroker(tmp_path_factory.mktemp("zurau"), flush="os") as zurau:
        pair = Peer(zurau.port), Peer(apache_kafka.port)
        for peer in pair:
            for topic, configs in TOPICS.items():
                peer.create_topic(f"odd-{topic}", configs=configs)
        yield pair
        for peer in pair:
            peer.close()


@pytest.mark.parametrize("name", KINDS)
def test_an_odd_batch_is_taken_as_kafka_takes_it(peers, name):
    ours, theirs = (what_happens(peer, KINDS[name]) for peer in peers)
    if name in INTENDED:
        assert ours != theirs, f"no difference any more: {INTENDED[name]}"
        assert not is_stored(ours)
    elif any(str(failure) in str(theirs[0]) for failure in KAFKA_FAILED):
        assert not is_stored(ours)
    else:
        assert ours == theirs


def test_the_table_of_differences_names_kinds_that_exist():
    assert INTENDED.keys() <= KINDS.keys()


def is_stored(happened: tuple[list[Any], Any]) -> bool:
    (*_, code), (_, grown_by, _) = (answer[0] for answer in happened[0]), happened[1]
    return code == ErrorCode.NONE.name or grown_by > 0


def what_happens(peer: Peer, kind: Kind, prefix: str = "odd-") -> tuple[list[Any], Any]:
    """The answer to each batch, and what can be fetched afterwards. Offsets count from where the log ended before."""
    topic = prefix + kind.topic
    end = peer.fetch(topic, 0).high_watermark
    answers = []
    connection = peer.another()
    for batch in kind.batches:
        try:
            answers.append(_produce(connection, topic, batch, kind, end))
        except (HungUp, NoAnswer) as reaction:
            answers.append(type(reaction).__name__)
            connection.close()
            connection = peer.another()
    connection.close()
    return answers, _stored(peer, topic, kind, end)


def _produce(connection: Peer, topic: str, batch: bytes | None, kind: Kind, end: int) -> Any:
    request = produce_request(topic, 0, batch, kind.acks)
    if kind.acks == 0:
        connection.send(request, kind.version)
        connection.fetch(topic, 0)  # answered after it, unless the broker hangs up
        return "nothing, as asked"
    answer = connection.ask(request, kind.version).responses[0].partition_responses[0]
    places = [each.batch_index for each in answer.record_errors]
    offset = answer.base_offset - end if answer.base_offset >= 0 else None
    return ErrorCode(answer.error_code).name, offset, places, answer.log_append_time_ms != -1


def _stored(peer: Peer, topic: str, kind: Kind, end: int) -> Any:
    answer = peer.fetch(topic, 0, end)
    stored: list[Any] = []
    for header, batch in iter_batches(bytes(answer.records or b"")):
        if kind.topic in PACKED_ANEW:
            records = [record._replace(offset=record.offset - end) for record in iter_records(batch)]
            stored.append((header.compression, header.base_offset - end, header.max_timestamp, records))
            continue
        plain = bytearray(batch)
        struct.pack_into(">q", plain, 0, header.base_offset - end)
        struct.pack_into(">i", plain, 12, 0)  # the leader's epoch
        if kind.topic == "append-time":
            struct.pack_into(">q", plain, 35, 0)  # its time, and the checksum over it
            struct.pack_into(">I", plain, 17, 0)
        stored.append(bytes(plain).hex())
    return ErrorCode(answer.error_code).name, answer.high_watermark - end, stored
