"""A pipeline's file for a topic, as a person would begin it."""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark_zurau.engine.declaration import DEFAULT_BOOTSTRAP
from pyspark_zurau.engine.inference.guess import Guess

_TEMPLATE = """\
# Begun by `zurau pipeline init {topic}`, from {seen} of its records: {what}, which {fits} of them fit.
#
#   zurau pipeline preview {file}
#   zurau pipeline run {file} --create-topics

name = "{name}"
{bootstrap}
[sources.{view}]
topics = [{quoted_topic}]
{keys}

# What to make of the rows: any query of Spark SQL.
[steps.result]
sql = "SELECT * FROM {view}"

# Where results go: console, topic, parquet, delta, iceberg, postgres.
[sinks.out]
from = "result"
kind = "console"
"""


def pipeline_file(topic: str, bootstrap: str, file: str, guess: Guess, seen: int) -> str:
    view = view_name(topic)
    keys = {"format": guess.format, **guess.keys}
    if guess.format != "raw":
        keys["dead_letter"] = f"{topic}-dead"
    return _TEMPLATE.format(
        topic=topic,
        seen=seen,
        what=guess.what,
        fits=guess.fits,
        file=file,
        name=re.sub(r"[^A-Za-z0-9_-]", "-", topic).strip("-_") or "pipeline",
        bootstrap="" if bootstrap == DEFAULT_BOOTSTRAP else f"bootstrap = {_toml(bootstrap)}\n",
        view=view,
        quoted_topic=_toml(topic),
        keys="\n".join(f"{key} = {_toml(value)}" for key, value in keys.items()),
    )


def view_name(topic: str) -> str:
    """A name in SQL for a topic."""
    name = re.sub(r"\W", "_", topic, flags=re.ASCII).strip("_")
    return name if name[:1].isalpha() else f"topic_{name}"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if "\\" in value and "'''" not in value:
        return f"'''{value}'''" if "'" in value else f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)
