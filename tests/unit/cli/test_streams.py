"""Commands whose streams are closed, full or read by nobody, as processes of a shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

ZURAU = f"{sys.executable} -m zurau"
#: One of each way to write a result; `{topic}` has a record.
PRINTING = [
    "topic list",
    "topic list --format json",
    "topic list --format csv",
    "topic describe {topic}",
    "topic config {topic}",
    "produce {topic} --format json /dev/null",
    "consume {topic} --from-beginning --until-end",
    "group list",
    "cluster",
    "version",
    "--version",
    "--help",
    "topic create --help",
    "serve --help",
]


@pytest.fixture
def shell(broker, topic, zurau):
    """Runs `zurau COMMAND REDIRECTED` in a shell; returns the exit code and what came on stderr."""
    zurau("produce", topic, stdin="a\n")

    def run(command: str, redirected: str) -> tuple[int, str]:
        line = f"set -o pipefail; {ZURAU} {command.format(topic=topic)} {redirected}"
        environment = os.environ | {"ZURAU_BOOTSTRAP": broker.bootstrap}
        done = subprocess.run(
            ["bash", "-c", line],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("command", PRINTING)
def test_a_result_that_does_not_fit_is_an_error_that_says_so(shell, command):
    words = "zurau: cannot write the result to stdout: No space left on device; send it somewhere else\n"
    assert shell(command, ">/dev/full") == (1, words)


@pytest.mark.parametrize("command", PRINTING)
def test_a_result_for_a_closed_stdout_is_an_error_that_says_so(shell, command):
    assert shell(command, ">&-") == (
        1,
        "zurau: cannot write the result to stdout: it is closed; send it somewhere else\n",
    )


@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_is_gone_ends_a_command_quietly(shell, command):
    assert shell(command, "| exit 0") in [(141, ""), (0, "")]  # 0 if it was quicker than the reader


@pytest.mark.parametrize("command", ["topic list", "produce {topic}", "group list"])
def test_remarks_that_nobody_can_read_change_nothing(shell, command):
    assert shell(command, "2>/dev/full") == (0, "")
    assert shell(command, "2>&-") == (0, "")


@pytest.mark.parametrize(("command", "code"), [("topic describe nosuch", 1), ("nosuch", 2), ("serve --nosuch", 2)])
def test_the_exit_code_tells_even_where_the_error_cannot(shell, command, code):
    assert shell(command, "2>/dev/full")[0] == code
    assert shell(command, ">&- 2>&- <&-")[0] == code


def test_producing_from_a_closed_stdin_says_what_to_do(shell):
    assert shell("produce {topic}", "<&-") == (1, "zurau: stdin is closed; name a file, or pipe the lines in\n")


def test_a_question_that_nobody_can_answer_says_how_to_go_without(shell):
    code, errors = shell("topic delete {topic}", "<&-")
    assert (code, errors.count("\n")) == (1, 1)
    assert "--yes" in errors


def test_a_group_keeps_what_could_not_be_printed(shell, zurau, topic, unique):
    group = unique("group")
    reading = f"consume {{topic}} --group {group} --from-beginning --until-end"
    assert shell(reading, ">/dev/full")[0] == 1
    assert zurau("consume", topic, "--group", group, "--from-beginning", "--until-end").stdout == "a\n"


def test_many_programs_without_keys_do_not_all_write_to_one_partition(zurau, unique):
    name = unique("topic")
    zurau("topic", "create", name, "--partitions", "3")
    for _ in range(30):
        zurau("produce", name, stdin="x\n")
    counts = [zurau("consume", name, "--partition", f"{n}", "--from-beginning", "--until-end").stdout for n in range(3)]
    assert sum(map(len, counts)) == 60
    assert all(counts)


def test_ctrl_c_while_there_is_no_input_ends_with_130_and_keeps_what_was_written(broker, topic, zurau):
    process = subprocess.Popen(
        [*ZURAU.split(), "produce", topic, "-b", broker.bootstrap],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("before\n")
    process.stdin.flush()
    assert zurau("consume", topic, "--from-beginning", "--max", "1").stdout == "before\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (130, "")
