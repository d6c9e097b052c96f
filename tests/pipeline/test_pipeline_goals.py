"""The goals pipeline: timelines and table, compared with what the generator knows."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.pipelines.generated import BROKEN, TOO_LATE
from pyspark_zurau.pipelines.goals.generate import TEAMS, expect, make_events, render

pytestmark = pytest.mark.xdist_group("spark")

START_MS = 1_767_281_400_000


def test_timelines_and_table_are_exactly_what_the_generator_expects(
    new_topic, unique, generate, run_ready_made, contents
):
    events = list(make_events(600, seed=5, start_ms=START_MS))
    expected = expect(events)
    topics, word = {"goals": new_topic(2)}, unique("goals")
    generate(render(event, topics) for event in events)
    run_ready_made("goals", **topics, results=word)

    def newest(name: str) -> dict[bytes, dict]:
        return {record.key: json.loads(record.value) for _, record in contents(f"{word}-{name}")}

    timelines = {
        row["match"]: [(goal["minute"], goal["team"], goal["score"]) for goal in row["goals"]]
        for row in newest("timeline").values()
    }
    assert timelines == expected.timelines

    numbers = ("played", "won", "drawn", "lost", "goals_for", "goals_against", "points")
    table = {(row["season"], row["team"]): row for row in newest("table").values()}
    assert {key: [row[name] for name in numbers] for key, row in table.items()} == {
        key: [getattr(standing, name) for name in numbers] for key, standing in expected.standings.items()
    }
    ordered = sorted(table.values(), key=lambda row: row["position"])
    assert [row["points"] for row in ordered] == sorted((row["points"] for row in ordered), reverse=True)

    assert len(contents(f"{word}-late")) == expected.kinds[TOO_LATE]
    assert len(contents(f"{word}-dead")) == expected.kinds[BROKEN]


def test_a_season_has_every_team_play_every_other_twice():
    events = list(make_events(1400, seed=2, start_ms=START_MS))
    season = events[0].match.partition("-")[0]
    pairs = Counter(
        (event.home, event.away)
        for event in events
        if event.what == "kick-off" and event.match.startswith(season) and event.counts
    )
    assert set(pairs.values()) <= {1}
    assert all(home != away for home, away in pairs)
    assert {team for pair in pairs for team in pair} == set(TEAMS)
