"""Small files become large ones, and no row is lost or doubled wherever a crash comes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pyspark_zurau.lake import compact as compacting
from pyspark_zurau.lake.compact import compact, recover, settled
from zurau.errors import SettingsError


@pytest.fixture
def lake(tmp_path):
    """Two folders with five small files each, as a pipeline writes them; the newest come first in the listing."""
    for folder in ("topic=a/date=2026-01-01", "topic=b/date=2026-01-01"):
        for number in range(5):
            path = tmp_path / folder / f"part-{9 - number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = {"partition": pa.array([0] * 10, pa.int32()), "offset": range(number * 10, number * 10 + 10)}
            pq.write_table(pa.table(rows), path)
    return tmp_path


def rows(lake: Path) -> list[tuple[str, int]]:
    """What a reader sees."""
    table = ds.dataset(lake, format="parquet", partitioning="hive").to_table()
    return sorted(zip(table["topic"].to_pylist(), table["offset"].to_pylist(), strict=True))


#: Two merges of five files each: two renames, and the sources and the plan removed.
STEPS = 2 * (2 + 5 + 1)
EVERYTHING = sorted((topic, offset) for topic in "ab" for offset in range(50))


def test_small_files_of_a_folder_become_one(lake):
    outcome = compact(lake)
    assert (outcome.files_before, outcome.files_after, outcome.merged_rows) == (10, 2, 100)
    assert rows(lake) == EVERYTHING


def test_merged_records_are_in_the_order_of_their_offsets(lake):
    compact(lake)
    (file,) = (lake / "topic=a/date=2026-01-01").glob("*.parquet")
    assert pq.read_table(file)["offset"].to_pylist() == list(range(50))


def test_what_is_large_enough_is_left_alone(lake):
    largest_bytes = max(file.stat().st_size for file in lake.rglob("*.parquet"))
    outcome = compact(lake, target_bytes=largest_bytes)
    assert (outcome.files_before, outcome.files_after) == (10, 10)


def test_a_second_time_finds_nothing_to_do(lake):
    compact(lake)
    outcome = compact(lake)
    assert (outcome.files_before, outcome.files_after, outcome.merged_rows) == (2, 2, 0)


def test_files_of_different_columns_are_not_mixed(lake):
    pq.write_table(pa.table({"other": ["x"]}), lake / "topic=a/date=2026-01-01/part-0.parquet")
    assert compact(lake).files_after == 3


class Crash(BaseException):
    """The machine is gone."""


@pytest.mark.parametrize("survived", range(STEPS))
def test_a_crash_at_any_step_loses_and_doubles_nothing(lake, survived, monkeypatch):
    """Every step that changes the lake's files is one at which the power may go."""
    left = iter(range(survived))

    def unless_crashed(change):
        def changed(self, *arguments, **more):
            if next(left, None) is None:
                raise Crash
            return change(self, *arguments, **more)

        return changed

    with monkeypatch.context() as patch:
        for name in ("rename", "unlink"):
            patch.setattr(Path, name, unless_crashed(getattr(Path, name)))
        with pytest.raises(Crash):
            compact(lake)
    assert set(rows(lake)) == set(EVERYTHING)
    compact(lake)
    assert rows(lake) == EVERYTHING
    assert len(list(lake.rglob("*.parquet"))) == 2


def test_all_steps_of_that_test_are_crashed_at(lake, monkeypatch):
    """Should compacting take more steps one day, the test above has to know."""
    steps = []
    for name in ("rename", "unlink"):
        change = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda *given, change=change, **more: (steps.append(1), change(*given, **more)))
    compact(lake)
    assert len(steps) == STEPS


def test_a_merged_file_without_a_plan_is_removed(lake):
    stray = lake / "topic=a/date=2026-01-01/.compact-part-compact-1.parquet"
    stray.write_bytes(b"torn")
    assert recover(lake) == 0
    assert not stray.exists()


def test_nothing_is_removed_for_a_merged_file_with_too_few_rows(lake):
    folder = lake / "topic=a/date=2026-01-01"
    pq.write_table(pa.table({"offset": [1]}), folder / "short.parquet")
    plan = {"folder": "topic=a/date=2026-01-01", "merged": "short.parquet", "sources": ["part-9.parquet"], "rows": 10}
    (lake / compacting.PLANS).mkdir()
    (lake / compacting.PLANS / "short.parquet.json").write_text(json.dumps(plan))
    with pytest.raises(SettingsError, match="nothing was removed"):
        compact(lake)
    assert (folder / "part-9.parquet").exists()


def test_only_one_at_a_time_compacts(lake):
    with settled(lake), pytest.raises(SettingsError, match="is in use"):
        compact(lake)


def test_a_delta_table_is_compacted_by_delta_itself(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")
    for number in range(4):
        deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"offset": [number]}), mode="append")
    outcome = compact(tmp_path / "t")
    assert (outcome.files_before, outcome.files_after) == (4, 1)
    assert sorted(deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["offset"].to_pylist()) == [0, 1, 2, 3]
