"""What went wrong, in a sentence or two, out of the long story that Spark tells.

Spark wraps the error of a task in that of the job, the query and the Java call, each with its stack. What a
person needs is the innermost message: the last line of Python's traceback, or the first line that is not about
Spark itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException

from pyspark_zurau.engine.problems import BadPipeline, Problem
from zurau.errors import SettingsError

_PYTHON_ERROR = re.compile(
    r"^(?:\s*(?:Caused by: )?(?:[\w.]+: )?)(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Lost|Changed|Records|Refused|"
    r"Unreachable|TimedOut|Failed|Busy|Fault|NoLeader|UnknownTopic)): (?P<text>\S.*)$"
)
_OWN = ("zurau.", "pyspark_zurau.")
_JAVA_NOISE = re.compile(
    r"^(?:\[STREAM_FAILED\].*?terminated with exception: |(?:[\w.$]+(?:Exception|Error): )+|\[[A-Z_.]+\] |"
    r"Job aborted due to stage failure: |Task \d+ in stage [\d.]+ failed \d+ times?, most recent failure: |"
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): )"
)


def explain(error: BaseException) -> str:
    """One paragraph."""
    text = str(error)
    python = [found for line in text.splitlines() if (found := _PYTHON_ERROR.match(line)) and not _is_wrapper(found)]
    own = [found for found in python if found["kind"].startswith(_OWN)]
    if own:
        return own[-1]["text"].strip()
    in_traceback = "Traceback (most recent call last)" in text
    if in_traceback and python:
        last = python[-1]
        text = _first_sentence(last["text"])
        return text if last["kind"].startswith("pyspark.") else f"{last['kind'].rpartition('.')[2]}: {text}"
    return _first_sentence(text)


def in_words(error: Exception) -> str:
    """What is wrong with a query, without Spark's codes and its plan."""
    text = str(error)
    if isinstance(error, PySparkException):
        text = re.split(r"\n\s*'?\w+ ?[\[(+]|;\n'|\n\n?== |\nJVM stacktrace", text)[0]
        text = re.sub(r"^\s*\[[\w.]+\]\s*", "", text)
        text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    return " ".join(text.split()).rstrip(";")


@contextmanager
def placed(file: Path, table: str, key: str) -> Iterator[None]:
    """Says of an error in the block which place of the file it is about."""
    try:
        yield
    except (PySparkException, SettingsError) as error:
        raise BadPipeline(str(file), [Problem(table, key, in_words(error))]) from error


def _is_wrapper(found: re.Match[str]) -> bool:
    return found["kind"].startswith(("org.apache.", "java.", "py4j.", "scala.")) or found["kind"] == "PythonException"


def _first_sentence(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Spark gave no reason")
    while (shorter := _JAVA_NOISE.sub("", first, count=1)) != first:
        first = shorter
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", first).strip() or text.strip()
