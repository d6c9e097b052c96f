"""From a TOML file to a `Pipeline`. Every mistake that the file itself shows is found in one reading.

What is read (schema files, Python files) is looked for beside the file; what is written (lakes, checkpoints) is meant
from where the command runs, since ready-made pipelines lie where nobody should write.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark_zurau.engine.declaration import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_EVERY,
    DEFAULT_REAL_TIME,
    Defaults,
    Pipeline,
    Sink,
    Source,
    Step,
    Trigger,
)
from pyspark_zurau.engine.parameters import choose_values, fill_in, read_parameters
from pyspark_zurau.engine.problems import BadPipeline, Problem, Problems, did_you_mean
from pyspark_zurau.engine.read_real_time import check_real_time
from pyspark_zurau.engine.read_sinks import read_sink
from pyspark_zurau.engine.read_sources import read_source, read_watermark
from pyspark_zurau.engine.table import Table
from pyspark_zurau.spark.checkpoint_lock import local_path

#: Names are views in SQL, and directories of checkpoints.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_DURATION = re.compile(r"\d+\s+(millisecond|second|minute|hour|day)s?", re.IGNORECASE)


def state_directory() -> Path:
    """Where checkpoints are kept that were given no other place."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "zurau" / "pipelines"


def read_pipeline(file: Path, given: Mapping[str, str] | None = None, *, bootstrap: str | None = None) -> Pipeline:
    """Read and check; `given` are values of parameters, `bootstrap` counts before the file's own."""
    problems = Problems(str(file))
    document = read_document(file)
    chosen = choose_values(read_parameters(document, problems), given or {}, problems)
    filled = fill_in({key: value for key, value in document.items() if key != "parameters"}, chosen, "", problems)
    # A parameter that is missing would be told again by every key that uses it.
    problems.raise_any()
    pipeline = _read(Table(filled, "", problems), file, chosen, bootstrap, problems)
    _check_names(pipeline, problems)
    check_real_time(pipeline, problems)
    problems.raise_any()
    return pipeline


def read_document(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPipeline(str(file), [Problem("", "", f"cannot be read: {error.strerror}")]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPipeline(str(file), [Problem("", "", f"is not TOML: {error}")]) from None


def _read(top: Table, file: Path, chosen: Mapping[str, Any], bootstrap: str | None, problems: Problems) -> Pipeline:
    name = top.required_text("name", "logs")
    if name and not PIPELINE_NAME.fullmatch(name):
        top.report("name", f"{name!r} must be letters, digits, - and _")
    doc = top.text("doc", "") or ""
    named = top.text("bootstrap", DEFAULT_BOOTSTRAP) or DEFAULT_BOOTSTRAP
    defaults = Defaults(bootstrap or named, {f"kafka.{key}": value for key, value in top.flat("kafka").items()})
    trigger = _read_trigger(top.table("trigger"))
    checkpoint = top.text("checkpoint") or str(state_directory() / (name or "unnamed"))
    # Spark's Java process may have another idea of where relative paths begin.
    checkpoint = str(local_path(checkpoint) or checkpoint)
    settings = {_spark_name(key): value for key, value in top.flat("spark").items()}
    pipeline = Pipeline(
        name=name,
        doc=doc,
        file=file,
        checkpoint=checkpoint,
        trigger=trigger,
        spark=settings,
        sources={key: _read_source(key, table, defaults, file) for key, table in top.tables("sources").items()},
        steps={key: _read_step(key, table) for key, table in top.tables("steps").items()},
        sinks={key: _read_sink(key, table, defaults, trigger) for key, table in top.tables("sinks").items()},
        parameters=chosen,
    )
    top.finish()
    for kind, example in (("sources", "sources.requests"), ("sinks", "sinks.out")):
        if not getattr(pipeline, kind):
            problems.add("", kind, f"a pipeline needs at least one: write [{example}]")
    return pipeline


def _read_source(name: str, table: Table, defaults: Defaults, file: Path) -> Source:
    _check_name(name, table)
    source = read_source(name, table, defaults, file)
    table.finish()
    return source


def _read_sink(name: str, table: Table, defaults: Defaults, trigger: Trigger) -> Sink:
    _check_name(name, table)
    if "every" in table and trigger.real_time:
        table.report("every", "has no meaning with real_time, which waits for nothing")
    elif "every" in table:
        trigger = replace(trigger, every=_read_every(table))
    sink = read_sink(name, table, defaults, trigger)
    table.finish()
    return sink


def _read_step(name: str, table: Table) -> Step:
    _check_name(name, table)
    sql, python = table.text("sql"), table.text("python")
    inputs, arguments = table.texts("inputs"), table.raw("arguments")
    if (sql is None) == (python is None):
        table.report("", "needs one of sql (a query) and python (file.py:function)")
    elif python is not None and ":" not in python:
        table.report("python", f"{python!r} names no function; write it as file.py:function or package.module:function")
    elif python is not None and not inputs:
        table.report("inputs", 'which frames the function gets is not said; for example inputs = ["requests"]')
    elif sql is not None and (inputs or arguments):
        table.report("inputs", "is for python steps; SQL names what it reads itself")
    if arguments is not None and not isinstance(arguments, dict):
        table.report("arguments", "must be a table, like arguments = {gap = '30 minutes'}")
        arguments = None
    watermark = read_watermark(table)
    table.finish()
    return Step(name, sql, python, inputs, arguments, watermark)


def _read_trigger(table: Table) -> Trigger:
    available_now = table.truth("available_now")
    if available_now and "every" in table:
        table.report("every", "has no meaning with available_now = true, which reads what there is and ends")
    real_time = _read_duration(table, "real_time", DEFAULT_REAL_TIME) if "real_time" in table else None
    if real_time and (available_now or "every" in table):
        table.report("real_time", "is a trigger of its own; leave out every and available_now")
    trigger = Trigger(_read_every(table), available_now, real_time)
    table.finish()
    return trigger


def _read_every(table: Table) -> str:
    return _read_duration(table, "every", DEFAULT_EVERY)


def _read_duration(table: Table, key: str, default: str) -> str:
    duration = table.text(key, default) or default
    if not _DURATION.fullmatch(duration.strip()):
        table.report(key, f"{duration!r} is not a duration; write it as '200 milliseconds', '1 second' or '5 minutes'")
        return default
    return duration


def _check_name(name: str, table: Table) -> None:
    if not NAME.fullmatch(name):
        table.report("", f"{name!r} must be letters, digits and _, and begin with a letter: it is a name in SQL")


def _check_names(pipeline: Pipeline, problems: Problems) -> None:
    """Everything that is named exists, and nothing twice."""
    views = {*pipeline.sources}
    for step in pipeline.steps.values():
        for name in step.inputs:
            if name not in views:
                later = (
                    " before its time: steps see the sources and the steps above them" if name in pipeline.steps else ""
                )
                what = f"reads {name!r}{later}" if later else f"there is no {name!r}{did_you_mean(name, views)}"
                problems.add(f"steps.{step.name}", "inputs", what)
        if step.name in views:
            problems.add(f"steps.{step.name}", "", "a source has the same name; call one of them differently")
        views.add(step.name)
    for sink in pipeline.sinks.values():
        if sink.origin and sink.origin not in views:
            what = f"there is no source or step {sink.origin!r}{did_you_mean(sink.origin, views)}"
            problems.add(f"sinks.{sink.name}", "from", what)


def _spark_name(key: str) -> str:
    return key if key.startswith("spark.") else f"spark.{key}"
