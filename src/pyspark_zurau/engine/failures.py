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
from typing import Any

from pyspark.errors import PySparkException

from pyspark_zurau.engine.problems import BadPipeline, Problem
from zurau.errors import SettingsError

_PYTHON_ERROR = re.compile(
    r"^(?:\s*(?:Caused by: )?(?:[\w.]+: )?)(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Lost|Changed|Records|Refused|"
    r"Unreachable|TimedOut|Failed|Busy|Fault|NoLeader|UnknownTopic)): (?P<text>\S.*)$"
)
#: One of ours, wherever in a line: it is told without its stack.
_OWN_ERROR = re.compile(r"\b(?:pyspark_)?zurau(?:\.\w+)+: (?P<text>\S.*)$")
_JAVA_NOISE = re.compile(
    r"^(?:\[STREAM_FAILED\].*?terminated with exception: |(?:[\w.$]+(?:Exception|Error): )+|\[[A-Z_.]+\] |"
    r"Job aborted due to stage failure: |Exception thrown in awaitResult: ?|"
    r"Task \d+ in stage [\d.]+ failed \d+ times?, most recent failure: |"
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): )"
)


_JAVA_CLASS = re.compile(r"(?:.*?exception: |Caused by: )?(?P<kind>(?:[a-z]\w*\.)+[A-Z][\w$]*)(?::|$)")
_STACK = re.compile(r"(at [\w.$/]+\(|\.\.\. \d+ more)")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def explain(error: BaseException) -> str:
    """One paragraph."""
    text = str(error)
    own = [found for line in text.splitlines() if (found := _OWN_ERROR.search(line))]
    if own:
        return _SQLSTATE.sub("", own[-1]["text"]).strip()
    python = [found for line in text.splitlines() if (found := _PYTHON_ERROR.match(line)) and not _is_wrapper(found)]
    in_traceback = "Traceback (most recent call last)" in text
    if in_traceback and python:
        last = python[-1]
        text = _first_sentence(last["text"])
        return text if last["kind"].startswith("pyspark.") else f"{last['kind'].rpartition('.')[2]}: {text}"
    return _first_sentence(text)


def java_classes(error: BaseException) -> set[str]:
    """The classes of everything that caused it, as Java names them; those of a task are told only in its text."""
    found: set[str] = set()
    cause: Any = getattr(error, "_cause", None)
    texts = [str(error)]
    while isinstance(cause, PySparkException):
        texts += [str(cause), getattr(cause, "_stackTrace", None) or ""]
        cause = getattr(cause, "_cause", None)
    for text in texts:
        found.update(match["kind"] for line in text.splitlines() if (match := _JAVA_CLASS.match(line)))
    return found


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
    for line in text.splitlines():
        first = line.strip().removeprefix("Caused by: ")
        while (shorter := _JAVA_NOISE.sub("", first, count=1)) != first:
            first = shorter
        # A wrapper that says nothing by itself is passed over, and so is its stack.
        if first and not _STACK.match(first):
            return _SQLSTATE.sub("", first).strip()
    return text.strip() or "Spark gave no reason"
