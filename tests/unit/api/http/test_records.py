"""Reading over HTTP, on a real broker."""

from __future__ import annotations

import pytest
from tests.unit.api.http.conftest import LONG_MS, Driver, request

from zurau.api.http.door import Door
from zurau.api.http.records import ANSWERED_MAX, RECORD_BYTES_MAX, WAIT_MS_MAX
from zurau.api.http.table import ROUTES
from zurau.api.response_memory import SMALL_BYTES, ResponseMemory, ResponseShare
from zurau.counters import Counters
from zurau.ids import TopicPartition
from zurau.pending import start
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression

RECORDS = "/topics/t/partitions/0/records"
TIME = 1_767_657_600_000


@pytest.fixture
def partition(ask, simulated):
    ask("POST", "/topics?topic=t")
    return simulated.broker.partitions[TopicPartition("t", 0)]


@pytest.fixture
def store(partition, simulated):
    def store(*values: bytes | None, key: bytes | None = None, **batch) -> None:
        records = [NewRecord(key, value, timestamp=TIME) for value in values]
        partition.append_own(build_batch(records, **batch))
        simulated.clock.advance(1000)

    return store


def values(answer) -> list[tuple[int, str]]:
    assert answer.status == 200, answer
    return [(record["offset"], record["message"]) for record in answer.json["records"]]


def test_records_are_read_from_the_start_or_from_any_offset(ask, store):
    store(b"a", b"b", key=b"k")
    store(b"c", compression=Compression.GZIP)
    whole = ask("GET", RECORDS).json
    first = {"offset": 0, "timestamp": TIME, "key": "k", "message": "a", "encoding": "utf-8"}
    assert whole["records"][0] == first
    assert (whole["next_offset"], whole["high_watermark"]) == (3, 3)
    assert values(ask("GET", f"{RECORDS}?offset=1")) == [(1, "b"), (2, "c")]
    assert values(ask("GET", f"{RECORDS}?offset=3")) == []


def test_as_many_are_read_as_are_asked_for_and_it_is_said_where_to_go_on(ask, store):
    store(*(b"%d" % number for number in range(5)))
    answer = ask("GET", f"{RECORDS}?max=2&offset=1")
    assert values(answer) == [(1, "1"), (2, "2")]
    assert answer.json["next_offset"] == 3


def test_what_is_no_text_is_told_in_base64(ask, store):
    store(b"\xff", key=b"k")
    store(None)
    binary, without = ask("GET", RECORDS).json["records"]
    assert (binary["key"], binary["message"], binary["encoding"]) == ("aw==", "/w==", "base64")
    assert (without["key"], without["message"], without["encoding"]) == (None, None, "utf-8")


def test_a_large_record_is_read_alone_and_others_only_as_far_as_they_fit(ask, store):
    store(b"x" * (RECORD_BYTES_MAX + 1), b"y")
    assert [offset for offset, _ in values(ask("GET", RECORDS))] == [0]
    assert values(ask("GET", f"{RECORDS}?offset=1")) == [(1, "y")]
    store(b"x" * (RECORD_BYTES_MAX // 2), b"x" * (RECORD_BYTES_MAX // 2), b"z")
    assert [offset for offset, _ in values(ask("GET", f"{RECORDS}?offset=2"))] == [2, 3]


def test_what_brokers_write_for_themselves_is_passed_over(ask, store):
    store(b"a")
    store(b"\x00\x00\x00\x00", key=b"\x00\x00\x00\x01", is_control=True)
    answer = ask("GET", f"{RECORDS}?offset=1")
    assert values(answer) == []
    assert answer.json["next_offset"] == 2


@pytest.mark.parametrize("offset", [4, 2**63 - 1])
def test_an_offset_that_the_log_does_not_hold_is_out_of_range(ask, store, offset):
    store(b"a", b"b", b"c")
    answer = ask("GET", f"{RECORDS}?offset={offset}")
    assert (answer.status, answer.json["code"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert "from offset 0 to 3" in answer.json["message"]


def test_what_was_deleted_is_out_of_range_and_the_start_is_what_is_left(ask, store, partition, simulated):
    store(b"a", b"b", b"c")
    simulated.wait(start(partition.delete_records_before(2)))
    assert ask("GET", f"{RECORDS}?offset=1").status == 416
    assert values(ask("GET", RECORDS)) == [(2, "c")]


def test_whoever_waits_is_answered_when_there_is_something(connect, store, simulated):
    store(b"a")
    client = connect()
    client.send(request("GET", f"{RECORDS}?offset=1&wait_ms=20000"))
    assert not client.sent
    store(b"b")
    (answer,) = client.answers()
    assert values(answer) == [(1, "b")]


def test_whoever_waits_in_vain_is_told_that_there_is_nothing(ask, store):
    store(b"a")
    answer = ask("GET", f"{RECORDS}?offset=1&wait_ms={WAIT_MS_MAX}")
    assert values(answer) == []
    assert answer.json["next_offset"] == 1


def test_nothing_waits_any_more_for_a_client_that_has_gone(connect, store, partition):
    store(b"a")
    client = connect()
    client.send(request("GET", f"{RECORDS}?offset=1&wait_ms=20000"))
    assert len(partition._readers) == 1
    client.session.end()
    assert len(partition._readers) == 0


@pytest.mark.parametrize(
    "query",
    [
        "offset=-1",
        f"offset={2**63}",
        "max=0",
        f"max={ANSWERED_MAX + 1}",
        f"wait_ms={WAIT_MS_MAX + 1}",
        "wait_ms=-1",
        "max=x",
    ],
)
def test_what_is_beyond_the_limits_is_refused(ask, store, query):
    store(b"a")
    assert ask("GET", f"{RECORDS}?{query}").status == 400


def test_the_limits_themselves_are_taken(ask, store):
    store(b"a")
    assert values(ask("GET", f"{RECORDS}?max={ANSWERED_MAX}&wait_ms={WAIT_MS_MAX}")) == [(0, "a")]


@pytest.mark.parametrize(("path", "status"), [
    ("/topics/nothing/partitions/0/records", 404), ("/topics/t/partitions/1/records", 404),
    ("/topics/t/partitions/x/records", 400), ("/topics/t/partitions/-1/records", 400),
])  # fmt: skip
def test_a_partition_that_is_not_there_is_not_found(ask, partition, path, status):
    assert ask("GET", path).status == status


def test_with_little_memory_for_answers_less_is_read_and_with_none_nothing(simulated, store):
    store(*[b"x" * (SMALL_BYTES // 2)] * 4)
    memory = ResponseMemory(SMALL_BYTES * 4, Counters())
    door = Door(simulated.broker, ROUTES, 2048)
    client = Driver(door, ResponseShare(memory))
    memory.changed(SMALL_BYTES * 3 + 1)
    client.send(request("GET", RECORDS))
    simulated.clock.advance(LONG_MS)
    assert len(client.answers()[0].json["records"]) == 2
    client = Driver(door, ResponseShare(memory))
    memory.changed(SMALL_BYTES * 4)
    client.send(request("GET", RECORDS))
    simulated.clock.advance(LONG_MS)
    assert client.answers()[0].status == 503
