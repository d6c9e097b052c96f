"""Writing what a Python sink cannot take: results of the output modes `update` and `complete`.

Spark lets a streaming sink in Python append and no more. Its `foreachBatch` takes any mode, and each batch is then
written as a batch query. At least once, as the sink itself: a batch that is run again is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame


def write_each_batch(options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """For `writeStream.outputMode("update").foreachBatch(...)`; the options are those of the sink."""

    def write(rows: DataFrame, _batch_id: int) -> None:
        rows.write.format("zurau").options(**options).mode("append").save()

    return write
