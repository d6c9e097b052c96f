"""Many small files become few large ones, and a crash in the middle costs nothing.

A merged file is written under a hidden name; then a plan says which files it stands for; then it is given its name and
those are removed. The plan is the moment of decision: whoever finds a merged file without a plan removes it, and who
finds a plan carries it out. So at any time, and after any crash, no row is lost; only a reader that lists the directory
between the last two steps sees rows twice. A Delta table has no such moment, since its log says what belongs to it, and
it is left to Delta's own way of doing this.

A pipeline may go on writing meanwhile: its files have names of their own, and what is there already is never changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_zurau.history.history import open_delta
from zurau.errors import SettingsError
from zurau.settings import MIB

PLANS = ".compact"
HIDDEN = ".compact-"
TARGET_BYTES = 128 * MIB
#: Rows are gathered until they make a row group worth reading.
GROUP_BYTES = 32 * MIB


@dataclass(frozen=True, slots=True)
class Outcome:
    files_before: int
    files_after: int
    merged_rows: int


@dataclass(frozen=True, slots=True)
class Plan:
    #: From the lake's directory.
    folder: str
    #: The merged file's name; until it is renamed, it has `.compact-` in front.
    merged: str
    sources: list[str]
    rows: int


def compact(
    lake: Path, *, target_bytes: int = TARGET_BYTES, advance: Callable[[int], None] = lambda _: None
) -> Outcome:
    """Merge what is smaller than `target_bytes`, folder by folder. `advance` is told how many files are dealt with."""
    if not lake.is_dir():
        raise SettingsError(f"there is no lake at {lake}")
    if (lake / "_delta_log").is_dir():
        return _compact_delta(lake, target_bytes)
    with settled(lake):
        before = count_files(lake)
        rows = 0
        for folder, files in _folders(lake):
            for bundle in _bundles(files, target_bytes):
                plan = _merge(lake, folder, bundle)
                carry_out(lake, plan)
                rows += plan.rows
            advance(len(files))
        return Outcome(before, count_files(lake), rows)


def recover(lake: Path) -> int:
    """Finish what was decided, undo what was not; how many plans were carried out."""
    plans = [Plan(**json.loads(file.read_text(encoding="utf-8"))) for file in sorted((lake / PLANS).glob("*.json"))]
    for plan in plans:
        carry_out(lake, plan)
    for stray in (*lake.rglob(f"{HIDDEN}*"), *(lake / PLANS).glob("*.fresh")):
        stray.unlink()
    return len(plans)


def carry_out(lake: Path, plan: Plan) -> None:
    folder = lake / plan.folder
    hidden, merged = folder / f"{HIDDEN}{plan.merged}", folder / plan.merged
    if hidden.exists():
        hidden.rename(merged)
        _flush_folder(folder)
    if pq.read_metadata(merged).num_rows != plan.rows:
        raise SettingsError(f"{merged} does not have the {plan.rows} rows that were merged; nothing was removed")
    for source in plan.sources:
        (folder / source).unlink(missing_ok=True)
    _flush_folder(folder)
    (lake / PLANS / f"{plan.merged}.json").unlink(missing_ok=True)


def count_files(lake: Path) -> int:
    return sum(len(files) for _, files in _folders(lake))


def _folders(lake: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Every folder with the files in it that readers see."""
    folders: dict[Path, list[Path]] = {}
    for file in sorted(lake.rglob("*.parquet")):
        if not any(part.startswith((".", "_")) for part in file.relative_to(lake).parts):
            folders.setdefault(file.parent, []).append(file)
    yield from folders.items()


def _bundles(files: Sequence[Path], target_bytes: int) -> Iterator[list[Path]]:
    """Two or more small files of the same columns that make one of about the wanted size."""
    by_schema: dict[str, list[Path]] = {}
    for file in files:
        if file.stat().st_size < target_bytes:
            by_schema.setdefault(pq.read_schema(file).to_string(show_schema_metadata=False), []).append(file)
    for alike in by_schema.values():
        bundle: list[Path] = []
        size_bytes = 0
        for file in alike:
            if bundle and size_bytes + file.stat().st_size > target_bytes:
                if len(bundle) > 1:
                    yield bundle
                bundle, size_bytes = [], 0
            bundle.append(file)
            size_bytes += file.stat().st_size
        if len(bundle) > 1:
            yield bundle


def _merge(lake: Path, folder: Path, bundle: Sequence[Path]) -> Plan:
    name = f"part-compact-{uuid.uuid4().hex[:16]}.parquet"
    hidden = folder / f"{HIDDEN}{name}"
    rows = 0
    with pq.ParquetWriter(hidden, pq.read_schema(bundle[0]), compression="zstd") as writer:
        for group in _gathered(bundle):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    _flush(hidden)
    plan = Plan(str(folder.relative_to(lake)), name, [file.name for file in bundle], rows)
    (lake / PLANS).mkdir(exist_ok=True)
    fresh = lake / PLANS / f"{name}.fresh"
    fresh.write_text(json.dumps(asdict(plan)), encoding="utf-8")
    _flush(fresh)
    fresh.rename(lake / PLANS / f"{name}.json")
    _flush_folder(lake / PLANS)
    return plan


def _gathered(bundle: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of all files, where they have offsets in that order, in groups that are worth reading."""
    waiting: list[pa.Table] = []
    schema = pq.read_schema(bundle[0])
    for file in sorted(bundle, key=_first_offset):
        with pq.ParquetFile(file) as opened:
            for number in range(opened.num_row_groups):
                waiting.append(opened.read_row_group(number).cast(schema))
                if sum(table.nbytes for table in waiting) >= GROUP_BYTES:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _first_offset(file: Path) -> tuple[int, int, str]:
    """Partition and offset of its first record, as far as the file's statistics tell."""
    metadata = pq.read_metadata(file)
    found = {"partition": 0, "offset": 0}
    for index in range(metadata.num_columns if metadata.num_row_groups else 0):
        column = metadata.row_group(0).column(index)
        if column.path_in_schema in found and column.statistics is not None and column.statistics.has_min_max:
            found[column.path_in_schema] = column.statistics.min
    return found["partition"], found["offset"], file.name


@contextmanager
def settled(lake: Path) -> Iterator[None]:
    """While the block runs, no file is merged or removed but by it; what was left half done is settled first."""
    (lake / PLANS).mkdir(exist_ok=True)
    with (lake / PLANS / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"{lake} is in use: another compact or replay is at it; wait until that is done"
            ) from None
        recover(lake)
        yield


def _compact_delta(lake: Path, target_bytes: int) -> Outcome:
    table = open_delta(lake)
    before = len(table.file_uris())
    metrics = table.optimize.compact(target_size=target_bytes)
    table.update_incremental()
    return Outcome(before, before - metrics["numFilesRemoved"] + metrics["numFilesAdded"], metrics.get("totalRows", 0))


def _flush(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
