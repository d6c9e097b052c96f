"""`zurau produce` and `zurau consume`, as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

ALL = ("--from-beginning", "--until-end")


def test_lines_go_in_and_come_out(zurau, topic):
    written = zurau("produce", topic, "--partition", "0", "--format", "json", stdin="one\ntwo\n")
    assert json.loads(written.stdout) == {
        "topic": topic,
        "records": 2,
        "partitions": [{"partition": 0, "records": 2, "first_offset": 0, "last_offset": 1}],
    }
    assert zurau("consume", topic, *ALL).stdout == "one\ntwo\n"


def test_keys_and_headers_travel_along(zurau, topic):
    zurau("produce", topic, "--key-separator", ":", "--header", "from=shop", stdin="k:v:w\n")
    assert zurau("consume", topic, *ALL, "--keys", "--headers").stdout == "from=shop\tk\tv:w\n"


def test_a_line_without_the_key_separator_is_named(zurau, topic):
    failed = zurau("produce", topic, "-k", ":", stdin="a:b\nnokey\n")
    assert failed.returncode == 1
    assert failed.stderr == (
        "zurau: line 2: there is no key separator ':' in it (write KEY:VALUE, or leave out --key-separator for records "
        "without a key); the lines before it were written\n"
    )
    assert zurau("consume", topic, *ALL).stdout == "b\n"


def test_records_as_json_can_be_piped_from_topic_to_topic(zurau, topic, unique):
    copy = unique("copy")
    line = '{"key": "k", "value": {"base64": "/w=="}, "headers": {"h": "1"}, "timestamp": 5}'
    zurau("produce", topic, "--json", stdin=line + '\n{"key": "gone", "value": null}\n')
    dumped = zurau("consume", topic, *ALL, "--format", "json").stdout
    zurau("produce", copy, "--json", stdin=dumped)
    kept = ("key", "value", "headers", "timestamp")
    records = [json.loads(record) for record in zurau("consume", copy, *ALL, "-f", "json").stdout.splitlines()]
    copied = sorted([record[name] for name in kept] for record in records)
    assert copied == sorted([json.loads(record)[name] for name in kept] for record in dumped.splitlines())
    assert ["k", {"base64": "/w=="}, [["h", "1"]], 5] in copied


def test_a_line_that_is_not_json_is_named(zurau, topic):
    failed = zurau("produce", topic, "--json", stdin="{oops\n")
    assert failed.returncode == 1
    assert failed.stderr.startswith("zurau: line 1: this is not JSON")


def test_files_are_read_and_packed(zurau, topic, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"line {number}\n" for number in range(5000)))
    zurau("produce", topic, str(file), "--partition", "1", "--compression", "zstd")
    assert zurau("consume", topic, *ALL).stdout == file.read_text()


def test_whole_files_are_records_with_their_names_as_keys(zurau, topic, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text("<a>\n</a>\n")
    (tmp_path / "b.xml").write_text("<b/>")
    zurau("produce", topic, "--whole-files", str(tmp_path / "in"), str(tmp_path / "b.xml"), "--partition", "0")
    shown = zurau("consume", topic, *ALL, "--format", "json").stdout.splitlines()
    records = [json.loads(line) for line in shown]
    assert [(record["key"], record["value"]) for record in records] == [("a.xml", "<a>\n</a>\n"), ("b.xml", "<b/>")]


def test_lines_of_several_files_are_written_in_their_order(zurau, topic, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}\n")
    zurau("produce", topic, str(tmp_path / "two"), str(tmp_path / "one"), "--partition", "0")
    assert zurau("consume", topic, *ALL).stdout == "two\none\n"


def test_a_missing_file_is_one_line_of_error(zurau, topic):
    failed = zurau("produce", topic, "no-such-file")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "zurau: cannot read no-such-file: No such file or directory; check the path\n"


@pytest.fixture
def numbers(zurau, topic):
    """Partition 0 holds 0 to 9, one a second since 1970."""
    lines = "".join(json.dumps({"value": str(n), "timestamp": 1000 * n}) + "\n" for n in range(10))
    zurau("produce", topic, "--json", "--partition", "0", stdin=lines)
    return topic


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (["--from-offset", "7"], [7, 8, 9]),
        (["--from-offset", "-2"], [8, 9]),
        (["--from-offset", "-99"], list(range(10))),
        (["--from-time", "1970-01-01T00:00:06+00:00"], [6, 7, 8, 9]),
        (["--from-time", "10m"], []),
        (["--from-beginning", "--max", "3"], [0, 1, 2]),
        ([], []),
    ],
)
def test_reading_begins_where_it_was_told(zurau, numbers, options, values):
    read = zurau("consume", numbers, "--partition", "0", "--until-end", *options)
    assert [int(line) for line in read.stdout.split()] == values


def test_a_template_says_what_to_print(zurau, numbers):
    template = r"{topic}/{partition}/{offset} {time} <{key}>\t{value}\n"
    read = zurau("consume", numbers, "--from-offset", "1", "--max", "1", "--partition", "0", "--template", template)
    assert read.stdout == f"{numbers}/0/1 1970-01-01T00:00:01.000Z <>\t1\n"


def test_an_unknown_field_in_a_template_is_wrong_usage(zurau, numbers):
    wrong = zurau("consume", numbers, "--template", "{valeu}")
    assert wrong.returncode == 2
    assert "there is no field {valeu}" in wrong.stderr


def test_two_places_to_begin_are_wrong_usage(zurau, numbers):
    assert zurau("consume", numbers, "--from-beginning", "--from-offset", "3").returncode == 2


def test_a_topic_that_does_not_exist_is_one_line_of_error(zurau):
    failed = zurau("consume", "nowhere")
    assert failed.returncode == 1
    assert failed.stderr.startswith("zurau: topic 'nowhere': there is no such topic")
    assert failed.stderr.count("\n") == 1


def test_a_group_goes_on_after_what_was_printed(zurau, numbers, unique):
    group = unique("group")
    first = zurau("consume", numbers, "--group", group, "--from-beginning", "--max", "4")
    rest = zurau("consume", numbers, "--group", group, "--until-end")
    assert [int(line) for line in (first.stdout + rest.stdout).split()] == list(range(10))


def test_an_interrupt_ends_it_quietly(broker, numbers):
    command = [sys.executable, "-m", "zurau", "consume", numbers, "--from-beginning", "-b", broker.bootstrap]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")


def test_lines_are_written_as_soon_as_the_input_pauses(broker, zurau, topic):
    command = [sys.executable, "-m", "zurau", "produce", topic, "-b", broker.bootstrap]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ)
    assert process.stdin is not None
    process.stdin.write(b"now\n")
    process.stdin.flush()
    read = zurau("consume", topic, "--from-beginning", "--max", "1")
    process.communicate(timeout=30)
    assert read.stdout == "now\n"
