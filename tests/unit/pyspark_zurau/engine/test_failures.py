"""The one sentence that matters in what Spark says."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.failures import explain, java_classes

OURS = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure: Task 0 failed
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "reader.py", line 1, in read
    raise CorruptRecords("bad")
zurau.client.errors.CorruptRecords: t-0 at offset 5: its checksum does not fit

\tat org.apache.spark.Something(Something.scala:1)
Caused by: java.lang.IllegalStateException: never mind
"""
WRAPPED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Exception thrown in awaitResult:
\tat org.apache.spark.Something(Something.scala:1)
\t... 12 more
Caused by: java.io.IOException: the disk is full
"""
IN_A_LINE = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: zurau.errors.SettingsError: \
the option subscribe is missing SQLSTATE: 38000
"""
THEIRS = """[STREAM_FAILED] Query [id = 1] terminated with exception: whatever
Traceback (most recent call last):
  File "shout.py", line 2, in louder
    return text.upper()
AttributeError: 'NoneType' object has no attribute 'upper'
"""
SPARKS = """[STREAM_FAILED] Query [id = 1] terminated with exception: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OURS, "t-0 at offset 5: its checksum does not fit"),
        (IN_A_LINE, "the option subscribe is missing"),
        (WRAPPED, "the disk is full"),
        (THEIRS, "AttributeError: 'NoneType' object has no attribute 'upper'"),
        (SPARKS, "Division by zero."),
    ],
    ids=["ours", "in-a-line", "wrapped", "theirs", "sparks"],
)
def test_a_failure_is_told_in_one_sentence(text, reason):
    assert explain(Exception(text)) == reason


def test_the_classes_of_a_failure_are_found_down_to_its_cause():
    text = (
        "[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure: Lost task 0.0\n"
        "org.apache.spark.SparkException: Python worker failed to connect back.\n"
        "\tat org.apache.spark.Something(Something.scala:1)\n"
        "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back\n"
    )
    assert java_classes(Exception(text)) == {
        "org.apache.spark.SparkException",
        "java.net.SocketTimeoutException",
    }
