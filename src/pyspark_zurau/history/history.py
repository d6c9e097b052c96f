"""A lake as the past of topics: where it begins and ends in each partition, and its records of a range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FileType

from pyspark_zurau.history.listing import list_files
from pyspark_zurau.history.store import Lake, is_there
from zurau.errors import SettingsError
from zurau.ids import Offset, TopicPartition

#: What an archive has in the names of its folders. Types are given: a topic may well be called 7.
FOLDERS = pa.schema([("topic", pa.string()), ("date", pa.string())])
NEEDED = ("key", "value", "headers", "timestamp", "topic", "partition", "offset")
#: How many offsets are read at a time, so that a long past passes through little memory.
SLICE_OFFSETS = 50_000
#: How often a look is begun anew because a file was merged into another one meanwhile.
ATTEMPTS = 20

Extents = dict[TopicPartition, tuple[Offset, Offset]]


@dataclass(frozen=True)
class History:
    """Travels with the task that may need it."""

    lake: Lake

    @classmethod
    def at(cls, location: str) -> History:
        return cls(Lake(location))

    def extents(self, topics: set[str]) -> Extents:
        """Of each partition the first offset, and the one after the last."""
        found = _first_and_last(self._look(["topic", "partition", "offset"], ds.field("topic").isin(sorted(topics))))
        return {partition: (first, last + 1) for partition, (first, last) in found.items()}

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        """Of each partition the first record that is not older than its time; those without one are left out."""
        found: dict[TopicPartition, Offset] = {}
        for time_ms in sorted(set(timestamps_ms.values())):
            wanted = {partition for partition, its_ms in timestamps_ms.items() if its_ms == time_ms}
            moment = pa.scalar(time_ms * 1000, pa.timestamp("us", "UTC"))
            among = ds.field("topic").isin(sorted({partition.topic for partition in wanted}))
            young = self._look(["topic", "partition", "offset"], among & (ds.field("timestamp") >= moment))
            found |= {one: first for one, (first, _) in _first_and_last(young).items() if one in wanted}
        return found

    def read(
        self, partition: TopicPartition, start: Offset, end: Offset, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The records from `start` to before `end`, in order and each once."""
        while start < end:
            until = min(start + SLICE_OFFSETS, end)
            rows = self._slice(partition, start, until)
            if rows.num_rows:
                yield from rows.select(schema.names).cast(schema).combine_chunks().to_batches()
            start = until

    def _slice(self, partition: TopicPartition, start: Offset, end: Offset) -> pa.Table:
        wanted = (
            (ds.field("topic") == partition.topic)
            & (ds.field("partition") == partition.partition)
            & (ds.field("offset") >= start)
            & (ds.field("offset") < end)
        )
        return _each_once(self._look(None, wanted))

    def _look(self, columns: list[str] | None, wanted: ds.Expression) -> pa.Table:
        """All of the lake that is wanted, anew if a file was merged into another one before it was read."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._open().to_table(columns=columns, filter=wanted)
            except FileNotFoundError:
                continue
        return self._open().to_table(columns=columns, filter=wanted)

    def _open(self) -> ds.Dataset:
        store, place = self.lake.open(), self.lake.location
        if store.get_file_info("").type != FileType.Directory:
            raise SettingsError(f"history: there is no lake at {place}; name the place that the archive writes to")
        if is_there(store, "_delta_log"):
            return checked(place, open_delta(place, self.lake.access).to_pyarrow_dataset())
        files = list_files(store)
        if not files:
            return _empty()
        partitioning = ds.partitioning(FOLDERS, flavor="hive")
        return checked(place, ds.dataset(files, filesystem=store, format="parquet", partitioning=partitioning))


def _first_and_last(rows: pa.Table) -> Extents:
    found = rows.group_by(["topic", "partition"]).aggregate([("offset", "min"), ("offset", "max")])
    return {
        TopicPartition(row["topic"], row["partition"]): (row["offset_min"], row["offset_max"])
        for row in found.to_pylist()
    }


def checked(lake: Path | str, found: ds.Dataset) -> ds.Dataset:
    missing = [name for name in NEEDED if name not in found.schema.names]
    if missing:
        raise SettingsError(
            f"{lake} is not an archive of topics: it has no column {', '.join(missing)}; archives are written by"
            " `zurau pipeline run archive`"
        )
    return found


def open_delta(lake: Path | str, access: Mapping[str, str] | None = None) -> Any:
    try:
        import deltalake
    except ImportError:
        raise SettingsError(f"{lake} is a Delta table; for those: pip install 'zurau[delta]'") from None
    return deltalake.DeltaTable(str(lake), storage_options=dict(access) if access else None)


def _empty() -> ds.Dataset:
    """Of a lake into which nothing has come yet."""
    types = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC")}
    fields = [(name, types.get(name, pa.string())) for name in NEEDED]
    return ds.dataset(pa.schema(fields).empty_table())


def _each_once(rows: pa.Table) -> pa.Table:
    """In the order of their offsets. The same row may be in two files, while one is merged into the other."""
    rows = rows.sort_by("offset")
    offsets = rows["offset"].combine_chunks()
    if len(offsets) < 2:
        return rows
    is_new = pc.not_equal(offsets.slice(1), offsets.slice(0, len(offsets) - 1))
    return rows.filter(pa.concat_arrays([pa.array([True]), is_new]))
