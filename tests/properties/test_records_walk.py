"""Both walkers say the same of every batch, and never call sound what the decoder cannot read."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zurau.errors import CorruptData
from zurau.log.settings import LogSettings
from zurau.partition.admission import Admission, read_header
from zurau.records import pure_walk
from zurau.records.batch import HEADER_BYTES, parse_header, seal
from zurau.records.builder import NO_TIMESTAMP, NewRecord, build_batch, write_varint
from zurau.records.record import iter_records
from zurau.settings import INT64_MAX

native = pytest.importorskip("zurau.records._walk", reason="the walker was not compiled here")

#: Later than all records.
NOW_MS = 2**48

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        HEADERS,
        timestamp=st.integers(-5, 2**48),
    ),
    min_size=1,
    max_size=8,
)
#: What a walk is asked beside the records: count, base timestamp, earliest, latest, whether keys are needed.
INT64 = st.integers(-INT64_MAX - 1, INT64_MAX)
QUESTIONS = st.tuples(st.integers(-2, 12), INT64, INT64, INT64, st.booleans())
#: Numbers at the edges of what a field takes, of all lengths and longer than need be.
EDGES = st.sampled_from([0, 1, -1, -2, 63, 64, 2**31 - 1, -(2**31), 2**31, 2**32, 2**62, INT64_MAX, -INT64_MAX - 1])


def both(payload: bytes, *question) -> pure_walk.Walked:
    found = native.walk(payload, *question)
    assert found == pure_walk.walk(payload, *question)
    return found


@given(RECORDS, st.sampled_from([{}, {"cleanup_policy": ("compact",)}, {"max_message_bytes": 200}]), st.data())
def test_what_is_taken_at_one_look_passes_every_rule_by_itself(records, rules, data):
    batch = build_batch(records, producer_id=data.draw(st.integers(-1, 1)), base_sequence=data.draw(st.integers(-1, 3)))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, HEADER_BYTES - 1))
        batch[at] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    seal(batch)
    admission, view = Admission(LogSettings(**rules)), memoryview(batch)
    at_one_look = admission.read_plain(view, NOW_MS)
    if at_one_look is not None:
        header = read_header(view)
        admission.check(view, header)
        assert admission.examine(view, header, NOW_MS) == (view, at_one_look)


@given(RECORDS)
def test_what_is_built_is_taken_at_one_look(records):
    assume(all(record.timestamp >= NO_TIMESTAMP for record in records))  # others take the longer way
    batch = memoryview(build_batch(records))
    assert Admission(LogSettings()).read_plain(batch, NOW_MS) == parse_header(batch)


@given(RECORDS, st.data())
def test_what_does_not_match_its_checksum_is_not_taken_at_one_look(records, data):
    batch = build_batch(records)
    batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] ^= 1
    assert Admission(LogSettings()).read_plain(memoryview(batch), NOW_MS) is None


@given(RECORDS)
def test_what_is_built_is_sound(records):
    batch = build_batch(records)
    header = parse_header(batch)
    largest = max(-1, *(record.timestamp for record in records))
    payload = batch[HEADER_BYTES:]
    assert both(payload, len(records), header.base_timestamp, -10, INT64_MAX, False) == (0, (), largest)


@given(RECORDS, QUESTIONS, st.data())
def test_of_damaged_batches_both_say_the_same(records, question, data):
    payload = build_batch(records)[HEADER_BYTES:]
    for _ in range(data.draw(st.integers(0, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    both(payload, *question)
    both(payload, len(records), *question[1:])


@given(st.binary(max_size=200), QUESTIONS)
def test_of_nonsense_both_say_the_same(payload, question):
    both(payload, *question)


@given(st.lists(EDGES, max_size=8), st.integers(0, 3), QUESTIONS)
def test_of_numbers_of_all_lengths_both_say_the_same(numbers, padding, question):
    body = bytearray(1)
    for number in numbers:
        write_varint(body, number)
        for _ in range(padding):  # the same number in more bytes
            body[-1] |= 0x80
            body.append(0)
    payload = bytearray()
    write_varint(payload, len(body))
    both(bytes(payload + body), 1, *question[1:])


@given(RECORDS, st.data())
def test_what_is_sound_can_be_decoded(records, data):
    batch = build_batch(records)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    seal(batch)
    header = parse_header(batch)
    fault, _, largest = both(batch[HEADER_BYTES:], len(records), header.base_timestamp, -INT64_MAX, INT64_MAX, False)
    if fault:
        return
    try:
        decoded = list(iter_records(batch))
    except CorruptData as error:
        pytest.fail(f"sound, and yet: {error}")
    assert [record.offset for record in decoded] == list(range(len(records)))
    assert max(-1, *(record.timestamp for record in decoded)) == largest


@given(RECORDS, st.integers(-3, 10), st.integers(-3, 10), st.integers(-10, 2**48), st.booleans(), st.data())
def test_both_find_the_same_record_by_time(records, first, end, at_least, latest, data):
    batch = build_batch(records)
    for _ in range(data.draw(st.integers(0, 2))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    question = (batch[HEADER_BYTES:], len(records), records[0].timestamp, first, end, at_least)
    assert native.find_time(*question, latest=latest) == pure_walk.find_time(*question, latest=latest)


@given(RECORDS, st.integers(-10, 2**48))
def test_the_record_that_is_found_by_time_is_the_right_one(records, at_least):
    payload = build_batch(records)[HEADER_BYTES:]
    late = [(offset, one.timestamp) for offset, one in enumerate(records) if one.timestamp >= at_least]
    base = records[0].timestamp
    assert native.find_time(payload, len(records), base, 0, 100, at_least, latest=False) == (late[0] if late else None)
    latest = max(late, key=lambda pair: pair[1], default=None)
    assert native.find_time(payload, len(records), base, 0, 100, at_least, latest=True) == latest
