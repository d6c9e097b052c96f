"""A football season as a stream of events, and the table and timelines that must come out of it.

Everybody plays everybody. Events are facts first: kick-off, goals, goals that are taken back, the final whistle. Some
reach the topic late, some too late to count, some twice, some broken. `expect` works with the facts only.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, LATE, TOO_LATE, Generated

TEAMS = (
    "Adler", "Borea", "Cormoran", "Dynamo Ost", "Eintracht Süd", "Falken", "Gradnik", "Hellas",
    "Inter Nord", "Juventud", "Koralle", "Lokomotive",
)  # fmt: skip
PLAYERS = ("Alvarez", "Brandt", "Costa", "Dubois", "Eriksen", "Ferrari", "Güneş", "Horvat")
CHANCES = {DUPLICATE: 0.03, LATE: 0.06, TOO_LATE: 0.02, BROKEN: 0.02}
KICK_OFF, GOAL, CANCELLED, FULL_TIME = "kick-off", "goal", "cancelled", "full-time"
DAY_MS, MINUTE_MS = 86_400_000, 60_000
TOPICS = {"goals": "goals"}


@dataclass(frozen=True)
class Event:
    kind: str
    arrived_ms: int
    id: str
    match: str
    kickoff_ms: int
    home: str
    away: str
    what: str
    minute: int
    team: str | None = None
    player: str | None = None
    #: The goal that is taken back.
    goal: str | None = None

    @property
    def counts(self) -> bool:
        return self.kind not in {DUPLICATE, TOO_LATE, BROKEN}


def duration_ms(count: int) -> int:
    """How long that takes at most: a round every seven days, of six matches with two events at least."""
    return (count // 12 + 1) * 7 * DAY_MS


def generate(
    count: int,
    seed: int,
    *,
    start_ms: int,
    per_s: float,  # noqa: ARG001 - other generators can be hurried
    topics: Mapping[str, str],
) -> Iterator[tuple[str, Generated]]:
    """Records with their kinds. Matches take as long as they take, however fast they are produced."""
    for event in make_events(count, seed, start_ms=start_ms):
        yield event.kind, render(event, topics)


def make_events(count: int, seed: int, *, start_ms: int, final_after_h: int = 4) -> Iterator[Event]:
    """So many events in the order in which they arrive. A season is some 700 of them; then comes the next."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    rounds = _rounds(start_ms)
    waiting: list[Event] = []
    given = 0
    while given < count:
        matches = next(rounds)
        waiting += [
            late
            for match in matches
            for event in _play(chance, *match)
            for late in _spoil(chance, event, final_after_h)
        ]
        waiting.sort(key=lambda event: event.arrived_ms)
        # What comes before the next round is complete; rounds are days apart, and nothing is late for so long.
        yield from waiting[: count - given]
        given += len(waiting)
        waiting = []


def render(event: Event, topics: Mapping[str, str]) -> Generated:
    facts = {
        "id": event.id,
        "season": event.match.partition("-")[0],
        "match": event.match,
        "kickoff": datetime.fromtimestamp(event.kickoff_ms / 1000, UTC).isoformat(),
        "home": event.home,
        "away": event.away,
        "what": event.what,
        "minute": event.minute,
        "team": event.team,
        "player": event.player,
        "goal": event.goal,
    }
    text = json.dumps(facts, ensure_ascii=False)
    value = text if event.kind != BROKEN else text[: len(text) // 2]
    return Generated(topics["goals"], event.match.encode(), value.encode(), event.arrived_ms)


@dataclass
class Standing:
    played: int = 0
    won: int = 0
    drawn: int = 0
    lost: int = 0
    goals_for: int = 0
    goals_against: int = 0

    @property
    def points(self) -> int:
        return 3 * self.won + self.drawn

    def add(self, scored: int, conceded: int) -> None:
        self.played += 1
        self.won += scored > conceded
        self.drawn += scored == conceded
        self.lost += scored < conceded
        self.goals_for += scored
        self.goals_against += conceded


@dataclass
class Expected:
    produced: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: The goals of each match that stand, in order: minute, team, score.
    timelines: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    #: By season and team.
    standings: dict[tuple[str, str], Standing] = field(default_factory=lambda: defaultdict(Standing))


def expect(events: Iterable[Event]) -> Expected:
    expected = Expected()
    matches: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        expected.produced += 1
        expected.kinds[event.kind] += 1
        if event.counts:
            matches[event.match].append(event)
    for match, its_events in matches.items():
        home, away, season = its_events[0].home, its_events[0].away, match.partition("-")[0]
        taken_back = {event.goal for event in its_events}
        goals = [event for event in its_events if event.what == GOAL and event.id not in taken_back]
        goals.sort(key=lambda event: (event.minute, event.id))
        score = {home: 0, away: 0}
        timeline = expected.timelines[match] = []
        for goal in goals:
            assert goal.team is not None
            score[goal.team] += 1
            timeline.append((goal.minute, goal.team, f"{score[home]}:{score[away]}"))
        expected.standings[season, home].add(score[home], score[away])
        expected.standings[season, away].add(score[away], score[home])
    return expected


def _rounds(start_ms: int) -> Iterator[list[tuple[str, int, str, str]]]:
    """Matches as (name, kick-off, home, away), one round after the other, by turning a circle of teams."""
    year = datetime.fromtimestamp(start_ms / 1000, UTC).year
    day = 0
    while True:
        number = 0
        for turn in range(2 * (len(TEAMS) - 1)):
            circle = TEAMS[1:]
            shift = turn % len(circle)
            order = (TEAMS[0], *circle[shift:], *circle[:shift])
            half = len(order) // 2
            pairs = list(zip(order[:half], reversed(order[half:]), strict=True))
            matches = []
            for slot, (one, other) in enumerate(pairs):
                home, away = (one, other) if (turn + slot) % 2 else (other, one)
                number += 1
                matches.append(
                    (f"{year}-{number:03}", start_ms + day * DAY_MS + slot % 3 * 150 * MINUTE_MS, home, away)
                )
            yield matches
            day += 7
        year += 1


def _play(chance: random.Random, match: str, kickoff_ms: int, home: str, away: str) -> Iterator[Event]:
    """What happens in one match, at the moment when it happens."""

    def event(number: int, what: str, minute: int, **more: str) -> Event:
        arrived_ms = kickoff_ms + minute * MINUTE_MS + chance.randint(0, 20_000)
        return Event("", arrived_ms, f"{match}-{number}", match, kickoff_ms, home, away, what, minute, **more)

    yield event(0, KICK_OFF, 0)
    number = 0
    for minute in sorted(chance.sample(range(1, 91), min(int(chance.expovariate(0.35)), 9))):
        number += 1
        team = home if chance.random() < 0.55 else away
        goal = event(number, GOAL, minute, team=team, player=chance.choice(PLAYERS))
        yield goal
        if chance.random() < 0.08:
            number += 1
            yield event(number, CANCELLED, minute + 1, goal=goal.id)
    yield event(number + 1, FULL_TIME, 92)


def _spoil(chance: random.Random, event: Event, final_after_h: int) -> Iterator[Event]:
    """The event as it reaches the topic: once, twice, late, broken."""
    draw = chance.random()
    kind = ""
    for name, share in CHANCES.items():
        if 0 <= draw < share:
            kind = name
        draw -= share
    # A kick-off is what a match is known by; it is never lost.
    if event.what == KICK_OFF and kind in {TOO_LATE, BROKEN}:
        kind = ""
    delays_ms = {LATE: chance.randint(5, 40) * MINUTE_MS, TOO_LATE: (final_after_h * 60 + 30) * MINUTE_MS}
    spoilt = replace(
        event, kind="" if kind == DUPLICATE else kind, arrived_ms=event.arrived_ms + delays_ms.get(kind, 0)
    )
    yield spoilt
    if kind == DUPLICATE:
        yield replace(spoilt, kind=DUPLICATE, arrived_ms=spoilt.arrived_ms + chance.randint(1, 60_000))
