"""A lake as a table of Arrow, whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from pyspark_zurau.lake.compact import settled
from zurau.errors import SettingsError

#: What an archive has in the names of its folders. Types are given: a topic may well be called 7.
FOLDERS = pa.schema([("topic", pa.string()), ("date", pa.string())])
NEEDED = ("key", "value", "headers", "timestamp", "topic", "partition", "offset")


@contextmanager
def opened(lake: Path) -> Iterator[ds.Dataset]:
    """An archive of topics, whose files stay where they are meanwhile; raises when it is something else."""
    if not lake.is_dir():
        raise SettingsError(f"there is no lake at {lake}")
    if (lake / "_delta_log").is_dir():
        yield _checked(lake, open_delta(lake).to_pyarrow_dataset())
        return
    with settled(lake):
        yield _checked(lake, ds.dataset(lake, format="parquet", partitioning=ds.partitioning(FOLDERS, flavor="hive")))


def _checked(lake: Path, found: ds.Dataset) -> ds.Dataset:
    missing = [name for name in NEEDED if name not in found.schema.names]
    if missing:
        raise SettingsError(
            f"{lake} is not an archive of topics: it has no column {', '.join(missing)}; archives are written by"
            " `zurau pipeline run archive`"
        )
    return found


def open_delta(lake: Path) -> Any:
    try:
        import deltalake
    except ImportError:
        raise SettingsError(f"{lake} is a Delta table; for those: pip install 'zurau[delta]'") from None
    return deltalake.DeltaTable(str(lake))
