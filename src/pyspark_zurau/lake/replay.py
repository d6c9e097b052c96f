"""The way back: records of a lake are written into a topic, as they were.

Key, value, headers, timestamp and partition are kept, and within a partition the order of offsets; only the offsets
themselves are new. Records are read in slices of each partition, so a lake of any size passes through little memory.

With a state file a replay that was interrupted goes on where it stopped. The file says how far the topic reached when
the replay began; what has been added to a partition since then is what was replayed, so many records are passed over,
and none is written twice. That holds as long as nobody else writes to the topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyspark_zurau.arrow.encode import pack
from pyspark_zurau.lake.files import opened
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.errors import UnknownTopic
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.producer import Producer
from zurau.errors import SettingsError
from zurau.ids import TopicPartition
from zurau.settings import KIB, MIB

SLICE_BYTES = 32 * MIB
SLICE_RECORDS_MAX = 50_000
BATCH_BYTES = 256 * KIB
COLUMNS = ["key", "value", "headers", "partition", "timestamp", "offset"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records of a topic; the ends are not included."""

    topic: str
    from_offset: int | None = None
    to_offset: int | None = None
    from_time_ms: int | None = None
    to_time_ms: int | None = None

    def filter(self) -> ds.Expression:
        found = ds.field("topic") == self.topic
        for column, bound, is_lower in (
            ("offset", self.from_offset, True),
            ("offset", self.to_offset, False),
            ("timestamp", _moment(self.from_time_ms), True),
            ("timestamp", _moment(self.to_time_ms), False),
        ):
            if bound is not None:
                found &= ds.field(column) >= bound if is_lower else ds.field(column) < bound
        return found


@dataclass(frozen=True, slots=True)
class Extent:
    """What a partition has in the lake."""

    first: int
    last: int
    records: int


def replay(
    lake: Path,
    wanted: Wanted,
    cluster: Cluster,
    into: str,
    *,
    state: Path | None = None,
    adds: bool = False,
    begin: Callable[[int], Callable[[int], None]] = lambda _: lambda _: None,
) -> int:
    """Write the wanted records into a topic and return how many were written, all acknowledged.

    `begin` is called with how many there are, and gives what is called with how many more are done.
    """
    with opened(lake) as archive:
        return _replay(archive, wanted, cluster, into, state=state, adds=adds, begin=begin)


def _replay(
    archive: ds.Dataset,
    wanted: Wanted,
    cluster: Cluster,
    into: str,
    *,
    state: Path | None,
    adds: bool,
    begin: Callable[[int], Callable[[int], None]],
) -> int:
    extents = survey(archive, wanted)
    if not extents:
        raise SettingsError(f"the lake has no such records of {wanted.topic!r}; it has {_topics(archive)}")
    _prepare_topic(cluster, into, max(extents) + 1)
    done = _already_done(cluster, into, extents, state, adds=adds)
    advance = begin(sum(extent.records for extent in extents.values()))
    advance(sum(done.values()))
    written = 0
    with Producer(cluster) as producer:
        count = producer.partition_count(into)
        for partition, extent in sorted(extents.items()):
            for rows in _after(_slices(archive, wanted, partition, extent), done.get(partition, 0)):
                _send(producer, into, count, rows)
                written += rows.num_rows
                advance(rows.num_rows)
        producer.flush()
    return written


def survey(archive: ds.Dataset, wanted: Wanted) -> dict[int, Extent]:
    """The extent of every partition that has such records."""
    found: dict[int, Extent] = {}
    scanner = archive.scanner(columns=["partition", "offset"], filter=wanted.filter())
    for batch in scanner.to_batches():
        groups = pa.Table.from_batches([batch]).group_by("partition")
        for row in groups.aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")]).to_pylist():
            seen = Extent(row["offset_min"], row["offset_max"], row["offset_count"])
            known = found.get(row["partition"], Extent(seen.first, seen.last, 0))
            found[row["partition"]] = Extent(
                min(known.first, seen.first), max(known.last, seen.last), known.records + seen.records
            )
    return found


def _slices(archive: ds.Dataset, wanted: Wanted, partition: int, extent: Extent) -> Iterator[pa.Table]:
    """The records of one partition in the order of their offsets."""
    mine = wanted.filter() & (ds.field("partition") == partition)
    step = SLICE_RECORDS_MAX
    first = extent.first
    while first <= extent.last:
        within = (ds.field("offset") >= first) & (ds.field("offset") < first + step)
        rows = archive.to_table(columns=COLUMNS, filter=mine & within)
        first += step
        if rows.num_rows:
            yield rows.sort_by("offset")
            # Records of one topic are mostly alike: as many as fit the next time.
            step = max(100, min(SLICE_RECORDS_MAX, SLICE_BYTES * rows.num_rows // max(rows.nbytes, 1)))


def _after(slices: Iterator[pa.Table], skipped: int) -> Iterator[pa.Table]:
    for rows in slices:
        if skipped < rows.num_rows:
            yield rows.slice(skipped)
        skipped = max(0, skipped - rows.num_rows)


def _send(producer: Producer, topic: str, partition_count: int, rows: pa.Table) -> None:
    now_ms = int(time.time() * 1000)
    for batch in rows.drop_columns(["offset"]).combine_chunks().to_batches():
        for partition, count, payload, timestamps_ms in pack(
            topic,
            batch,
            partition_count=partition_count,
            fallback=0,
            limit_bytes=BATCH_BYTES,
            now_ms=now_ms,
            keeps_timestamps=True,
        ):
            producer.send_packed(TopicPartition(topic, partition), payload, count, timestamps_ms)


def _prepare_topic(cluster: Cluster, topic: str, partition_count: int) -> None:
    """The topic exists and has all the partitions that records were in."""
    admin = Admin(cluster)
    try:
        known = len(admin.describe_topic(topic).partitions)
    except UnknownTopic:
        admin.create_topic(NewTopic(topic, partition_count))
        return
    if known < partition_count:
        raise SettingsError(
            f"{topic!r} has {known} partitions, and the records are from {partition_count}; add some with `zurau topic"
            f" add-partitions {topic} {partition_count}`, or replay into another topic"
        )


def _already_done(
    cluster: Cluster, topic: str, extents: Mapping[int, Extent], state: Path | None, *, adds: bool
) -> dict[int, int]:
    """How many records of each partition an earlier run has written."""
    partitions = [TopicPartition(topic, partition) for partition in extents]
    ends = {partition.partition: end for partition, end in end_offsets(cluster, partitions).items()}
    if state is not None and state.exists():
        begun = json.loads(state.read_text(encoding="utf-8"))
        if begun["into"] != topic or begun["extents"] != _plain(extents):
            raise SettingsError(f"{state} is of another replay; remove it to begin anew, or name another file")
        return {partition: end - begun["ends"][str(partition)] for partition, end in ends.items()}
    starts = start_offsets(cluster, partitions)
    held = sum(ends[partition.partition] - start for partition, start in starts.items())
    if held and not adds:
        raise SettingsError(
            f"{topic!r} holds {held} records already; pass --add to write behind them, or --into a new topic"
        )
    if state is not None:
        text = json.dumps({"into": topic, "extents": _plain(extents), "ends": ends})
        fresh = state.with_name(f".{state.name}.fresh")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(state)
    return {}


def _plain(extents: Mapping[int, Extent]) -> dict[str, list[int]]:
    return {
        str(partition): [extent.first, extent.last, extent.records] for partition, extent in sorted(extents.items())
    }


def _topics(archive: ds.Dataset) -> str:
    names = set()
    for batch in archive.scanner(columns=["topic"]).to_batches():
        names.update(pc.unique(batch.column("topic")).to_pylist())
    return ", ".join(sorted(map(repr, names))) or "nothing"


def _moment(time_ms: int | None) -> pa.Scalar | None:
    return None if time_ms is None else pa.scalar(time_ms * 1000, pa.timestamp("us", "UTC"))
