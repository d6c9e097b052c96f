"""The league table, which SQL over a stream cannot make: it adds up matches that are themselves sums of goals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

ROW = "team STRING, played INT, won INT, drawn INT, lost INT, goals_for INT, goals_against INT, points INT"


def table(events: DataFrame) -> DataFrame:
    """All teams of a season, each time something happens in it. Events that were sent twice count once."""
    standings = F.udf(stand, f"array<struct<position INT, {ROW}>>", useArrow=False)
    happened = F.collect_set(F.struct("id", "match", "home", "away", "what", "team", "goal"))
    seasons = events.groupBy("season").agg(standings(happened).alias("rows"))
    rows = seasons.select("season", F.explode("rows").alias("row")).select("season", "row.*")
    return rows.select(F.concat_ws("|", "season", "team").alias("id"), "*")


def stand(events: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The table as it stands: a match counts from its kick-off on, with its score of this moment."""
    events = list(events)
    taken_back = {event.goal for event in events}
    scores: dict[tuple[str, str, str], list[int]] = {
        (event.match, event.home, event.away): [0, 0] for event in events if event.what == "kick-off"
    }
    for event in events:
        score = scores.get((event.match, event.home, event.away))
        if score is not None and event.what == "goal" and event.id not in taken_back:
            score[event.team == event.away] += 1
    lines: dict[str, list[int]] = defaultdict(lambda: [0] * 7)
    for (_, home, away), (at_home, of_guests) in scores.items():
        for team, scored, conceded in ((home, at_home, of_guests), (away, of_guests, at_home)):
            outcome = (scored > conceded, scored == conceded, scored < conceded)
            result = (1, *outcome, scored, conceded, 3 * outcome[0] + outcome[1])
            lines[team] = [sum(pair) for pair in zip(lines[team], result, strict=True)]
    order = sorted(lines, key=lambda team: (-lines[team][6], lines[team][5] - lines[team][4], -lines[team][4], team))
    return [(position, team, *lines[team]) for position, team in enumerate(order, 1)]
