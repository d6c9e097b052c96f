"""The logs pipeline, from generated lines to every result, compared with what the generator knows."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.dataset as ds

from pyspark_zurau.pipelines.generated import BROKEN, TOO_LATE
from pyspark_zurau.pipelines.logs.generate import expect, make_lines, render

pytestmark = pytest.mark.xdist_group("spark")

START_MS = 1_767_225_600_000


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


@pytest.fixture(scope="module")
def lines():
    return list(make_lines(3000, seed=11, start_ms=START_MS, closes=True))


@pytest.fixture
def results(lines, new_topic, unique, generate, run_ready_made, contents, tmp_path):
    """Runs the pipeline over all lines, and gives the rows of its result topics."""
    topics = {"web": new_topic(2), "services": new_topic(2)}
    word, lake = unique("logs"), tmp_path / "lake"
    generate(render(line, topics) for line in lines)
    run_ready_made("logs", **topics, results=word, lake=str(lake))

    def rows(name: str) -> list[dict]:
        return [json.loads(record.value) for _, record in contents(f"{word}-{name}")]

    rows.dead = lambda: [record for _, record in contents(f"{word}-dead")]
    rows.lake = lake
    return rows


def test_every_result_is_exactly_what_the_generator_expects(lines, results):
    expected = expect(lines)
    newest = {(row["service"], second(row["window_start"])): row for row in results("stats")}
    assert {
        key: (row["requests"], row["errors"], row["p50_ms"], row["p95_ms"], row["p99_ms"])
        for key, row in newest.items()
    } == {
        key: (window.requests, window.errors, *map(window.percentile_ms, (0.5, 0.95, 0.99)))
        for key, window in expected.windows.items()
    }

    talkers = {key: sorted(client["count"] for client in row["talkers"] or []) for key, row in newest.items()}
    assert talkers == {
        key: sorted(count for _, count in expected.talkers[key].most_common(5)) for key in expected.windows
    }

    sessions = [
        (row["client"], second(row["began"]), second(row["ended"]), row["requests"]) for row in results("sessions")
    ]
    assert sorted(sessions) == sorted(expected.sessions)

    alerts = [(row["service"], second(row["window_start"])) for row in results("alerts")]
    assert sorted(alerts) == sorted(expected.alerts(min_requests=10, min_error_rate=0.2))
    assert alerts, "the generator makes one service ill"

    assert len(results.dead()) == expected.kinds[BROKEN]
    lake = ds.dataset(results.lake, format="parquet", partitioning="hive")
    assert lake.count_rows() == expected.parsed
    problems = [problem for problem in lake.to_table(columns=["problem"])["problem"].to_pylist() if problem]
    assert problems == ["it came too late"] * expected.kinds[TOO_LATE]
