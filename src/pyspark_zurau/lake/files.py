"""A lake as a table of Arrow, whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds

from pyspark_zurau.history.history import FOLDERS, checked, open_delta
from pyspark_zurau.lake.compact import settled
from zurau.errors import SettingsError


@contextmanager
def opened(lake: Path) -> Iterator[ds.Dataset]:
    """An archive of topics, whose files stay where they are meanwhile; raises when it is something else."""
    if not lake.is_dir():
        raise SettingsError(f"there is no lake at {lake}")
    if (lake / "_delta_log").is_dir():
        yield checked(lake, open_delta(lake).to_pyarrow_dataset())
        return
    with settled(lake):
        yield checked(lake, ds.dataset(lake, format="parquet", partitioning=ds.partitioning(FOLDERS, flavor="hive")))
