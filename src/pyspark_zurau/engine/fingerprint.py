"""What a checkpoint was made by, so that a changed pipeline does not go on from it without a word.

Spark keeps offsets and state in the checkpoint, not what was asked of them. A changed filter would go on where the old
one stopped, and its results would be neither the old ones nor the new. So the parts of a pipeline that decide what its
rows are stand in a file beside them: sources, steps (with the code of Python ones) and sinks. Parts may be added, which
have no past, and taken away. Addresses, credentials and triggers may change.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from pyspark_zurau.engine.declaration import Pipeline, Sink, Source, Step
from pyspark_zurau.engine.locate import as_typed
from pyspark_zurau.engine.steps import load_function
from pyspark_zurau.spark.checkpoint_lock import local_path
from zurau.errors import SettingsError

FILE = "declaration.json"

Parts = dict[str, dict[str, Any]]

_NOT_OF_SOURCE = {"name", "bootstrap", "starting", "options", "dead_letter", "fail_on_dead"}
_NOT_OF_TARGET = {"bootstrap", "options", "dsn", "create", "rows"}


def compare_with_checkpoint(pipeline: Pipeline, *, accept_changes: bool) -> None:
    """Raise if the checkpoint was made by something else; note what it is made by from now on."""
    directory = local_path(pipeline.checkpoint)
    if directory is None:
        return
    before, now = _read(directory), parts_of(pipeline)
    changed = changes(before, now) if _has_results(directory) else []
    if changed and not accept_changes:
        raise SettingsError(
            f"pipeline {pipeline.name} has changed since its checkpoint was made: {'; '.join(changed)}. "
            "Its results so far are of the old one. Either put the file back, or name another checkpoint (and another "
            f"place for results), or run `zurau pipeline reset {as_typed(pipeline.file)}` and read everything again, "
            "or go on with --accept-changes: old records keep their old results, and Spark may refuse to use its state"
        )
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f".{FILE}"
    fresh.write_text(json.dumps(before | now, indent=1), encoding="utf-8")
    fresh.replace(directory / FILE)


def parts_of(pipeline: Pipeline) -> Parts:
    """Every part with what decides its rows, as plain values."""
    parts = {f"sources.{name}": _source(source) for name, source in pipeline.sources.items()}
    parts |= {f"steps.{name}": _step(step, pipeline.directory) for name, step in pipeline.steps.items()}
    parts |= {f"sinks.{name}": _sink(sink) for name, sink in pipeline.sinks.items()}
    return parts


def changes(before: Parts, now: Parts) -> list[str]:
    """What is not as it was, part by part."""
    found = []
    for part, then in before.items():
        if part not in now:
            continue
        keys = [key for key in {**then, **now[part]} if then.get(key) != now[part].get(key)]
        if keys:
            found.append(f"{part}: {', '.join(keys)}")
    return found


def _source(source: Source) -> dict[str, Any]:
    values = _values(source, _NOT_OF_SOURCE)
    if source.schema_file is not None:
        values["schema_file"] = _digest(source.schema_file.read_bytes())
    return values


def _step(step: Step, directory: Path) -> dict[str, Any]:
    values = _values(step, {"name"})
    if step.sql is not None:
        values["sql"] = " ".join(step.sql.split())
    if step.python is not None:
        values["code"] = _digest(_code(step.python, directory))
    return values


def _sink(sink: Sink) -> dict[str, Any]:
    values = {"from": sink.origin, "kind": sink.kind, "mode": sink.mode, **_values(sink.target, _NOT_OF_TARGET)}
    # Another connector reads then.
    return values | ({"real_time": True} if sink.trigger.real_time else {})


def _values(declared: Any, leave_out: set[str]) -> dict[str, Any]:
    """As JSON would have them, so that what is read back compares equal."""
    found = {one.name: getattr(declared, one.name) for one in fields(declared) if one.name not in leave_out}
    plain: dict[str, Any] = json.loads(json.dumps(found, default=_plain))
    return plain


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else {one.name: getattr(value, one.name) for one in fields(value)}


def _code(name: str, directory: Path) -> bytes:
    """The file of a Python step: what else is in it may matter too."""
    place, _, _ = name.rpartition(":")
    if place.endswith(".py"):
        return (directory / place).read_bytes() if (directory / place).is_file() else b""
    return inspect.getsource(load_function(name, directory)).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _has_results(directory: Path) -> bool:
    """Whether any query has finished a batch: until then the file may change as it likes."""
    return any(True for place in ("*", "dead-letters/*") for _ in directory.glob(f"{place}/commits/[0-9]*"))


def _read(directory: Path) -> Parts:
    """Empty for a checkpoint that is new, or older than this file."""
    file = directory / FILE
    if not file.is_file():
        return {}
    found: Parts = json.loads(file.read_text(encoding="utf-8"))
    return found
