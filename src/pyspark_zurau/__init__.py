"""Topics as Spark tables: `spark.read.format("zurau")`, `spark.readStream.format("zurau")`, and the same to write.

Spark finds this package by its name and imports it in a process of its own on first use, so importing it is light:
each job's code is imported when that job begins.

Nouns: *options* (what the user asked for, checked), *offsets* (how far each partition is), a *range* (what one task
reads), *parts* and *columns* (a batch before and after decoding).

Laws: the same schema, option names, defaults and offset JSON as Spark's own Kafka connector. Brokers are met only over
the wire, through `zurau.client`, so this works with Apache Kafka too. Everything a task needs travels in its input
partition; what tasks keep between batches (connections) is kept per process and can be lost at any time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyspark_zurau.source import DefaultSource

if TYPE_CHECKING:
    from pyspark_zurau.spark.lag import LagListener, lag_of
    from pyspark_zurau.spark.session import session
    from pyspark_zurau.writing.each_batch import write_each_batch

__all__ = ["DefaultSource", "LagListener", "lag_of", "session", "write_each_batch"]

_KEPT_IN = {
    "LagListener": "spark.lag",
    "lag_of": "spark.lag",
    "session": "spark.session",
    "write_each_batch": "writing.each_batch",
}


def __getattr__(name: str) -> Any:
    if name not in _KEPT_IN:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"pyspark_zurau.{_KEPT_IN[name]}"), name)
