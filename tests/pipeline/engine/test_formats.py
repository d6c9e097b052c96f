"""What each format makes of good values and of bad ones."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.engine.declaration import Source
from pyspark_zurau.engine.sources import NO_VALUE, pick_dead, pick_good

pytestmark = pytest.mark.xdist_group("spark")

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SCHEMA = {
    "type": "record",
    "name": "Goal",
    "fields": [
        {"name": "minute", "type": "int"},
        {"name": "player", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "odds", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "half", "type": {"type": "enum", "name": "Half", "symbols": ["FIRST", "SECOND"]}},
    ],
}


def source(form: str, **fields) -> Source:
    usual = {"bootstrap": "", "topics": ("t",), "topic_pattern": None, "starting": "earliest", "options": {}}
    return Source("words", format=form, **{"dead_letter": "dead", **usual, **fields})


@pytest.fixture
def judge(spark):
    """The good rows, and for each dead one the reason."""

    def judge(source: Source, *values: bytes | None) -> tuple[list[tuple], dict[bytes | None, str]]:
        rows = [(b"k", value, "t", 3, offset, NOON, 0, None) for offset, value in enumerate(values)]
        records = spark.createDataFrame(rows, topic_schema(with_headers=True))
        good = [tuple(row) for row in pick_good(records, source).collect()]
        dead = {
            row.value and bytes(row.value): headers(row)["zurau.reason"] for row in pick_dead(records, source).collect()
        }
        return good, dead

    return judge


def headers(row) -> dict[str, str]:
    return {header.key: bytes(header.value).decode() for header in row.headers}


def test_json_has_all_its_columns_or_is_dead(judge):
    parsed = source("json", schema="n INT NOT NULL, s STRING, a ARRAY<INT>, inner STRUCT<x: INT>")
    fine = b'{"n": 1, "s": "a", "a": [1, 2], "inner": {"x": 5}, "more": true}'
    bad = {
        b"nope": "the value is not JSON",
        b'{"n": 1': "the value is not JSON",
        b"[1]": "the value is not a JSON object",
        b"null": "the value is not a JSON object",
        b'{"s": "a"}': "column n is missing",
        b'{"n": "one"}': "column n: one is not int",
        b'{"n": 99999999999}': "column n: 99999999999 is not int",
        b'{"n": 1, "inner": {"x": "y"}}': "a value in it is not of its type",
    }
    good, dead = judge(parsed, fine, b'{"n": 2}', *bad)
    assert good == [(1, "a", [1, 2], (5,)), (2, None, None, None)]
    assert dead == bad


def test_csv_has_the_right_number_of_columns_or_is_dead(judge):
    parsed = source("csv", schema="n INT NOT NULL, s STRING, x DOUBLE", separator=";")
    bad = {
        b"1;a": "the value does not have 3 columns",
        b"1;a;2;3": "the value does not have 3 columns",
        b"one;a;2": "column n: one is not int",
        b";a;2": "column n is missing",
        b"": "the value is empty",
    }
    good, dead = judge(parsed, b'1;"a;b";2.5', b"2;;", b'3;"the ""old"" \\ one";1', *bad)
    assert good == [(1, "a;b", 2.5), (2, None, None), (3, 'the "old" \\ one', 1.0)]
    assert dead == bad


def test_a_pattern_matches_the_whole_value_or_it_is_dead(judge):
    parsed = source("regex", pattern=r"(?<host>\S+) (?P<code>\d+|-)(?: (?<rest_of_it>.*))?", schema="code INT")
    bad = {b"alone": "the value does not match the pattern", b"h - x": "column code: - is not int"}
    good, dead = judge(parsed, b"h 200 all of it", b"h 404", *bad)
    assert good == [("h", 200, "all of it"), ("h", 404, None)]
    assert dead == bad


def test_text_is_utf_8_or_dead(judge):
    good, dead = judge(source("text"), "grüße".encode(), b"", b"\xff\xfe")
    assert good == [("grüße",), ("",)]
    assert dead == {b"\xff\xfe": "the value is not UTF-8 text"}


@pytest.mark.parametrize("framing", ["none", "confluent"])
def test_avro_is_decoded_by_its_schema_or_dead(judge, tmp_path, framing):
    fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'zurau[avro]'")
    file = tmp_path / "goal.avsc"
    file.write_text(json.dumps(SCHEMA))
    row = (7, "Ada", NOON, ["header"], decimal.Decimal("1.25"), "5b0a7a0e-9c39-4b1c-9f0a-2f6c7d7f9d11", "SECOND")
    buffer = io.BytesIO()
    named = dict(zip((field["name"] for field in SCHEMA["fields"]), row, strict=True))
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(SCHEMA), named)
    value = (b"\0\0\0\0\7" if framing == "confluent" else b"") + buffer.getvalue()
    good, dead = judge(source("avro", schema_file=file, framing=framing), value, value + b"x", value[:9])
    assert good == [tuple(one.replace(tzinfo=None) if one == NOON else one for one in row)]
    assert dead[value + b"x"] == "the value is not Avro of this schema: 1 bytes are left over"
    assert dead[value[:9]].startswith("the value is not Avro of this schema")


def test_columns_of_the_record_go_along_when_asked_for(judge):
    good, _ = judge(source("text", record=("offset", "key")), b"a", b"b")
    assert good == [("a", 0, b"k"), ("b", 1, b"k")]


@pytest.mark.parametrize(
    ("null_values", "good", "dead"),
    [("dead_letter", [("a",)], {None: NO_VALUE}), ("keep", [("a",), (None,)], {}), ("skip", [("a",)], {})],
)
def test_what_becomes_of_tombstones_is_up_to_the_user(judge, null_values, good, dead):
    assert judge(source("text", null_values=null_values), b"a", None) == (good, dead)


def test_a_dead_letter_says_where_it_comes_from_and_keeps_its_own_headers(spark):
    rows = [(b"k", b"\xff", "t", 3, 8, NOON, 0, [("mine", b"x")])]
    (row,) = pick_dead(spark.createDataFrame(rows, topic_schema(with_headers=True)), source("text")).collect()
    assert (bytes(row.key), bytes(row.value)) == (b"k", b"\xff")
    assert headers(row) == {
        "mine": "x",
        "zurau.reason": "the value is not UTF-8 text",
        "zurau.source": "words",
        "zurau.topic": "t",
        "zurau.partition": "3",
        "zurau.offset": "8",
    }


def test_a_source_that_shall_fail_names_the_record(judge):
    with pytest.raises(Exception, match="source words: t partition 3 offset 1: the value is not UTF-8 text"):
        judge(source("text", dead_letter="fail"), b"a", b"\xff")


#: Lines of four real kinds, when they were written, and how their times are spoilt.
#: The record came in at noon of the first of January 2026.
LOGS = {
    "syslog": (
        r"(?<time>\w{3} [ \d]\d [\d:]{8}) (?<host>\S+) (?<line>.*)",
        b"Dec  9 06:55:46 LabSZ sshd[24200]: Invalid user webmaster from 173.234.31.186",
        dt.datetime(2025, 12, 9, 6, 55, 46),
        ("06:", "99:"),
    ),
    "apache": (
        r'\S+ \S+ \S+ \[(?<time>[^\]]+)\] "(?<line>[^"]*)".*',
        b'10.0.0.1 - - [31/Jan/2026:12:00:00 +0100] "GET / HTTP/1.1" 200 12',
        dt.datetime(2026, 1, 31, 11),
        ("31/Jan", "31/Feb"),
    ),
    "apache_error": (
        r"\[(?<time>[^\]]+)\] \[(?<level>\w+)\] (?<line>.*)",
        b"[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok /etc/httpd/conf/workers2.properties",
        dt.datetime(2005, 12, 4, 4, 47, 44),
        ("04:", "24:"),
    ),
    "hdfs": (
        r"(?<time>\d{6} \d{6}) (?<thread>\d+) (?<line>.*)",
        b"081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_38 terminating",
        dt.datetime(2008, 11, 9, 20, 36, 15),
        (" 2036", " 2099"),
    ),
}


@pytest.mark.parametrize("form", LOGS)
def test_times_of_real_logs_are_read_by_the_name_of_their_form(judge, form):
    pattern, line, time, misread = LOGS[form]
    wrong = line.replace(*(part.encode() for part in misread), 1)
    parsed = source("regex", pattern=pattern, time_format={"time": form}, schema="time TIMESTAMP NOT NULL")
    good, dead = judge(parsed, line, wrong)
    assert [row[0] for row in good] == [time]
    assert f"is not a time in the form {form}" in dead[wrong]


def test_numbers_and_patterns_are_times_when_the_source_says_so(judge):
    formats = {"a": "epoch_ms", "b": "epoch", "c": "dd.MM.yyyy", "d": "log4j"}
    parsed = source("json", schema="a TIMESTAMP, b TIMESTAMP, c DATE, d TIMESTAMP, e INT", time_format=formats)
    noon = dt.datetime(2026, 1, 1, 12, microsecond=500_000)
    bad = {
        b'{"a": "soon"}': "column a: soon is not a time in the form epoch_ms",
        b'{"b": 1e300}': "column b: 1.0E300 is not a time in the form epoch",
        b'{"a": 1, "e": "x"}': "column e: x is not int",
    }
    fine = b'{"a": 1767268800500, "b": 1767268800.5, "c": "31.12.2025", "d": "2026-01-01 12:00:00,500", "e": 1}'
    good, dead = judge(parsed, fine, b"{}", *bad)
    assert good == [(noon, noon, dt.date(2025, 12, 31), noon, 1), (None,) * 5]
    assert dead == bad


def test_a_year_that_a_log_leaves_out_can_be_said(judge):
    parsed = source("csv", schema="time TIMESTAMP", time_format={"time": "syslog 2015"})
    assert judge(parsed, b"Feb  3 10:00:00") == ([(dt.datetime(2015, 2, 3, 10),)], {})
