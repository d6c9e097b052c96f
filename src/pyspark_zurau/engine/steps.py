"""Steps: plain Spark SQL, or a function of the user's that gets frames and returns one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from pyspark_zurau.engine.declaration import Pipeline, Step
from pyspark_zurau.engine.failures import placed
from pyspark_zurau.engine.sources import good_rows
from zurau.errors import SettingsError


def make_views(spark: SparkSession, pipeline: Pipeline) -> dict[str, DataFrame]:
    """Every source and step by its name, known to SQL as well."""
    frames: dict[str, DataFrame] = {}
    real_time = pipeline.trigger.real_time is not None
    for source in pipeline.sources.values():
        with placed(pipeline.file, f"sources.{source.name}", "schema"):
            frames[source.name] = register(source.name, good_rows(spark, source, real_time=real_time))
    for step in pipeline.steps.values():
        with placed(pipeline.file, f"steps.{step.name}", "sql" if step.sql else "python"):
            frames[step.name] = register(step.name, run_step(spark, pipeline.directory, step, frames))
    return frames


def register(name: str, frame: DataFrame) -> DataFrame:
    frame.createOrReplaceTempView(name)
    return frame


def run_step(spark: SparkSession, directory: Path, step: Step, frames: dict[str, DataFrame]) -> DataFrame:
    rows = spark.sql(step.sql) if step.sql is not None else _call(directory, step, frames)
    return rows.withWatermark(step.watermark.column, step.watermark.delay) if step.watermark else rows


def _call(directory: Path, step: Step, frames: dict[str, DataFrame]) -> DataFrame:
    assert step.python is not None
    function = load_function(step.python, directory)
    made = function(*(frames[name] for name in step.inputs), **(step.arguments or {}))
    if not isinstance(made, DataFrame):
        raise SettingsError(f"{step.python} returned {type(made).__name__} instead of a DataFrame")
    return made


def load_function(name: str, directory: Path) -> Callable[..., Any]:
    """`file.py:function`, beside the pipeline's file, or `package.module:function`."""
    place, _, function = name.rpartition(":")
    module = _load_file(directory / place) if place.endswith(".py") else _import(place)
    found = getattr(module, function, None)
    if not callable(found):
        raise SettingsError(f"there is no function {function!r} in {place}")
    return found  # type: ignore[no-any-return]


def _load_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise SettingsError(f"there is no file {file}")
    name = f"zurau_step_{file.stem}"
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise SettingsError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    # Workers do not have this file, so what it defines travels to them as code.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(f"{name} cannot be imported: {error}; is it installed, or is a .py missing?") from None
