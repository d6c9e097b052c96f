"""The one sentence that matters in what Spark says."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.failures import explain

OURS = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure: Task 0 failed
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "reader.py", line 1, in read
    raise CorruptRecords("bad")
zurau.client.errors.CorruptRecords: t-0 at offset 5: its checksum does not fit

\tat org.apache.spark.Something(Something.scala:1)
Caused by: java.lang.IllegalStateException: never mind
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
        (THEIRS, "AttributeError: 'NoneType' object has no attribute 'upper'"),
        (SPARKS, "Division by zero."),
    ],
    ids=["ours", "theirs", "sparks"],
)
def test_a_failure_is_told_in_one_sentence(text, reason):
    assert explain(Exception(text)) == reason
