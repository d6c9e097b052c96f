"""Records as lines of text, both ways."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from zurau.cli.record_text import ParsedRecord, parse_json, render_json, template_renderer
from zurau.client.errors import ClientError
from zurau.ids import TopicPartition
from zurau.records.record import Record

HERE = TopicPartition("t", 3)
content = st.none() | st.binary(max_size=40)


@given(content, content, st.lists(st.tuples(st.text(max_size=10), content), max_size=3), st.integers(-1, 2**62))
def test_json_gives_back_the_record(key, value, headers, timestamp):
    line = render_json(HERE, Record(7, timestamp, key, value, headers))
    assert line.count(b"\n") == 1
    assert parse_json(line) == ParsedRecord(key, value, headers, partition=3, timestamp_ms=timestamp)


def test_json_that_is_not_text_is_sent_as_json():
    assert parse_json(b'{"value": {"a": [1, null]}}').value == b'{"a": [1, null]}'


@pytest.mark.parametrize("line", [b"", b"nope", b"[1]", b'{"key": "k"}', b'{"value": {"base64": "?"}}'])
def test_lines_that_are_no_records_are_refused(line):
    with pytest.raises(ClientError):
        parse_json(line)


def test_a_template_fills_in_every_field():
    render = template_renderer(r"{topic} {partition} {offset} {timestamp} {time} {key}={value} {headers}\n", "--x")
    record = Record(7, 0, b"k", b"\xff", [("a", b"1"), ("b", None)])
    assert render(HERE, record) == b"t 3 7 0 1970-01-01T00:00:00.000Z k=\xff a=1,b=\n"


def test_an_unknown_field_is_named():
    with pytest.raises(typer.BadParameter, match=r"no field {size}; use topic, partition"):
        template_renderer("{size}", "--x")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"value": 1, "headers": 5}', '"headers" is an object'),
        (b'{"value": 1, "headers": ["a"]}', '"headers" is an object'),
        (b'{"value": 1, "headers": [["a", "b", "c"]]}', '"headers" is an object'),
        (b'{"value": 1, "partition": "1"}', '"partition" is a whole number'),
        (b'{"value": 1, "partition": 99999999999}', '"partition" is a whole number'),
        (b'{"value": 1, "timestamp": 1.5}', '"timestamp" is a whole number'),
        (b'{"value": "\\ud800"}', "half a character"),
        (b'{"value": 1, "headers": {"\\ud800": "x"}}', "half a character"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_a_line_that_is_no_record_says_what_is_wrong(line, words):
    with pytest.raises(ClientError, match=words):
        parse_json(line)
