"""From a lake back into a topic, with a real broker. Spark is not needed for this."""

from __future__ import annotations

import json

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")

import pyarrow.parquet as pq

from pyspark_zurau.lake.replay import Wanted, replay
from zurau.errors import SettingsError

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("headers", HEADERS),
    ]
)
START_MS = 1_767_225_600_000
TOPIC = "7"  # a name that could be taken for a number


def record(partition: int, offset: int) -> dict[str, object]:
    return {
        "key": None if offset % 3 == 0 else b"k%d" % offset,
        "value": None if offset % 5 == 0 else b"p%d-%d" % (partition, offset),
        "partition": partition,
        "offset": offset,
        "timestamp": (START_MS + offset * 1000) * 1000,
        "headers": None if offset % 2 else [{"key": "h", "value": b"%d" % offset}, {"key": "n", "value": None}],
    }


@pytest.fixture
def lake(tmp_path):
    """Two partitions of 100 records, in files that overlap and are listed in the wrong order."""
    folder = tmp_path / "lake" / f"topic={TOPIC}" / "date=2026-01-01"
    folder.mkdir(parents=True)
    for number in range(4):
        rows = [record(partition, offset) for partition in (1, 0) for offset in range(100) if offset % 4 == number]
        pq.write_table(pa.Table.from_pylist(rows[::-1], schema=SCHEMA), folder / f"part-{9 - number}.parquet")
    return tmp_path / "lake"


@pytest.fixture
def replayed(contents):
    """What a topic holds, by partition: records as the lake has them, offsets left out."""

    def replayed(topic: str) -> dict[int, list[tuple]]:
        found: dict[int, list[tuple]] = {}
        for partition, one in contents(topic):
            found.setdefault(partition.partition, []).append((one.key, one.value, one.timestamp, list(one.headers)))
        return found

    return replayed


def expected(partition: int, offsets: range) -> list[tuple]:
    rows = [record(partition, offset) for offset in offsets]
    return [
        (row["key"], row["value"], row["timestamp"] // 1000, [(h["key"], h["value"]) for h in row["headers"] or []])
        for row in rows
    ]


def test_everything_comes_back_as_it_was(lake, cluster, replayed, unique):
    into = unique("replayed")
    assert replay(lake, Wanted(TOPIC), cluster, into) == 200
    assert replayed(into) == {partition: expected(partition, range(100)) for partition in (0, 1)}


@pytest.mark.parametrize(
    ("bounds", "offsets"),
    [
        ({"from_offset": 90}, range(90, 100)),
        ({"from_offset": 10, "to_offset": 20}, range(10, 20)),
        ({"from_time_ms": START_MS + 95_000}, range(95, 100)),
        ({"to_time_ms": START_MS + 3_000}, range(3)),
    ],
)
def test_a_part_is_replayed_from_any_offset_or_time(lake, cluster, replayed, unique, bounds, offsets):
    into = unique("part")
    assert replay(lake, Wanted(TOPIC, **bounds), cluster, into) == 2 * len(offsets)
    assert replayed(into)[1] == expected(1, offsets)


class Interrupted(Exception):
    """Somebody pressed Ctrl-C."""


def test_an_interrupted_replay_goes_on_without_writing_anything_twice(
    lake, cluster, replayed, unique, tmp_path, monkeypatch
):
    monkeypatch.setattr("pyspark_zurau.lake.replay.SLICE_RECORDS_MAX", 30)
    into, state, seen = unique("resumed"), tmp_path / "state.json", []

    def advance(count: int) -> None:
        seen.append(count)
        if sum(seen) > 120:
            raise Interrupted

    with pytest.raises(Interrupted):
        replay(lake, Wanted(TOPIC), cluster, into, state=state, begin=lambda _: advance)
    monkeypatch.setattr("pyspark_zurau.lake.replay.SLICE_RECORDS_MAX", 17)
    left = 200 - sum(map(len, replayed(into).values()))
    assert replay(lake, Wanted(TOPIC), cluster, into, state=state) == left
    assert replayed(into) == {partition: expected(partition, range(100)) for partition in (0, 1)}


def test_the_state_of_another_replay_is_refused(lake, cluster, unique, tmp_path):
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"into": "elsewhere", "extents": {}, "ends": {}}))
    with pytest.raises(SettingsError, match="another replay"):
        replay(lake, Wanted(TOPIC), cluster, unique("t"), state=state)


def test_a_topic_that_holds_something_is_not_written_to_by_accident(lake, cluster, new_topic, produce):
    topic = new_topic(2)
    produce(topic, b"x", partition=1)
    with pytest.raises(SettingsError, match="1 records already"):
        replay(lake, Wanted(TOPIC), cluster, topic)
    assert replay(lake, Wanted(TOPIC), cluster, topic, adds=True) == 200


def test_a_topic_with_too_few_partitions_is_refused(lake, cluster, new_topic):
    with pytest.raises(SettingsError, match="add-partitions"):
        replay(lake, Wanted(TOPIC), cluster, new_topic(1))


def test_a_topic_that_the_lake_does_not_have_is_told(lake, cluster, unique):
    with pytest.raises(SettingsError, match="it has '7'"):
        replay(lake, Wanted("nobody"), cluster, unique("t"))


def test_a_directory_that_is_no_archive_is_told(tmp_path, cluster, unique):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(SettingsError, match="is not an archive of topics"):
        replay(tmp_path, Wanted(TOPIC), cluster, unique("t"))
