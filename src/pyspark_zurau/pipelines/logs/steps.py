"""What SQL cannot say: a watermark on a computed column, and leaving out what was sent twice."""

from __future__ import annotations

from pyspark.sql import DataFrame


def once(lines: DataFrame, *, column: str, delay: str) -> DataFrame:
    """Each line once, for as long as the watermark lets its window stay open."""
    if not lines.isStreaming:  # a preview
        return lines.dropDuplicates()
    return lines.withWatermark(column, delay).dropDuplicatesWithinWatermark(lines.columns)
