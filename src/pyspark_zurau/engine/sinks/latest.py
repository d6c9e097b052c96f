"""Of several rows with the same key in a batch, the one that counts."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it


def latest_of_each_key(rows: DataFrame, key: Sequence[str], latest_by: str | None) -> DataFrame:
    """The row with the greatest value; without `latest_by` all of them, and two of a key are the database's error."""
    if latest_by is None:
        return rows
    newest = F.max_by(F.struct(*rows.columns), F.col(latest_by)).alias("newest")
    return rows.groupBy(*key).agg(newest).select("newest.*")
