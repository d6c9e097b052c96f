"""What is guessed from a sample of a topic, and the file that is written from it."""

from __future__ import annotations

import io
import json
import tomllib

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.inference.guess import Guess, guess
from pyspark_zurau.engine.inference.write import pipeline_file
from pyspark_zurau.engine.read import read_pipeline


def of_lines(*lines: str) -> Guess:
    return guess([line.encode() for line in lines])


def test_columns_of_json_have_the_types_that_all_values_fit():
    objects = [
        {"id": 1, "price": 2, "at": "2026-01-31T12:00:00Z", "tags": ["a"], "inner": {"x": 1}, "odd-name": None},
        {"id": 2, "price": 2.5, "at": "2026-01-31T12:00:01.5+01:00", "tags": [], "day": "2026-01-31", "mixed": 1},
        {"id": 3, "ok": True, "mixed": "x"},
    ]
    found = of_lines(*map(json.dumps, objects * 2), "broken")
    assert found.fits == 6
    assert found.keys["schema"] == (
        "id BIGINT, price DOUBLE, at TIMESTAMP, tags ARRAY<STRING>, inner STRUCT<x: BIGINT>, `odd-name` STRING, "
        "day DATE, mixed STRING, ok BOOLEAN"
    )
    assert "time_format" not in found.keys


@pytest.mark.parametrize(("broken", "found"), [(1, "json"), (2, "text")])
def test_json_may_have_a_broken_value_among_four(broken, found):
    assert of_lines('{"page": "/"}', '{"page": "/"}', '{"page": "/"}', *["this is not JSON"] * broken).format == found


def test_numbers_are_times_only_in_columns_that_are_called_so():
    found = of_lines('{"created_at": 1769860800500, "ts": 1769860800, "id": 1769860800}')
    assert found.keys["schema"] == "created_at TIMESTAMP, ts TIMESTAMP, id BIGINT"
    assert found.keys["time_format"] == {"created_at": "epoch_ms", "ts": "epoch"}


def test_csv_has_the_names_of_its_heading():
    found = of_lines("date;team;goals", *["2026-01-31;Rovers;2", "2026-02-01;United;0"] * 2)
    assert (found.format, found.keys) == (
        "csv",
        {"schema": "date DATE, team STRING, goals BIGINT", "separator": ";"},
    )
    assert "the first record is a heading" in found.notes[0]


@pytest.mark.parametrize(
    ("line", "what", "time_format"),
    [
        ("Dec 10 06:55:46 LabSZ sshd[24200]: Invalid user webmaster", "syslog", "syslog"),
        ("[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok", "error log of Apache", "apache_error"),
        ("081109 203615 148 INFO dfs.DataNode$PacketResponder: terminating", "log of HDFS", "hdfs"),
        ('1.2.3.4 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12', "access log of Apache or nginx", "apache"),
        ("2026-01-31 12:00:00,123 - INFO [main] up", "log of Log4j or of Python's logging", "log4j"),
        ("2026-01-31T12:00:00.5Z all is well", "lines that begin with a time", "iso"),
    ],
)
def test_logs_that_are_well_known_are_recognised(line, what, time_format):
    found = of_lines(line, line, line, line, "a line that is not like the others")
    assert (found.what, found.fits, found.keys["time_format"]) == (what, 4, {"time": time_format})


def test_avro_is_read_with_the_schema_file_that_fits(tmp_path):
    fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'zurau[avro]'")
    schema = {"type": "record", "name": "Goal", "fields": [{"name": "minute", "type": "int"}]}
    (tmp_path / "goal.avsc").write_text(json.dumps(schema))
    (tmp_path / "text.avsc").write_text(json.dumps({**schema, "fields": [{"name": "player", "type": "string"}]}))
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), {"minute": 90})
    found = guess([b"\0\0\0\0\1" + buffer.getvalue()] * 3, sorted(tmp_path.glob("*.avsc")))
    assert found.keys == {"schema_file": str(tmp_path / "goal.avsc"), "framing": "confluent"}


def test_what_is_like_nothing_else_is_text_or_bytes():
    assert of_lines("hello", "you there").format == "text"
    assert guess([b"\xff\xfe\xfd"]).format == "raw"


@pytest.mark.parametrize(
    "lines",
    [
        ('{"at": "2026-01-31T12:00:00Z", "it\'s": 1}',),
        ("Dec 10 06:55:46 LabSZ sshd[24200]: it's",),
        ("a,1", "b,2"),
        ("hello",),
    ],
)
def test_the_file_that_is_written_is_a_pipeline(tmp_path, lines):
    file = tmp_path / "begun.toml"
    file.write_text(pipeline_file("web.logs", "far:9092", str(file), of_lines(*lines), 1))
    assert tomllib.loads(file.read_text())["bootstrap"] == "far:9092"
    source = read_pipeline(file).sources["web_logs"]
    assert (source.topics, source.dead_letter) == (("web.logs",), "web.logs-dead")
