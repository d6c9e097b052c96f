"""Log lines of web servers and services, and what the pipeline must make of them.

Lines are first made as plain facts, with a kind: most are good, some come late but in time, some too late, some twice,
some are broken. `render` writes them as a web server or a service would; `expect` adds the facts up in plain Python,
without ever looking at a line, so that it shares nothing with the pipeline.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, LATE, TOO_LATE, Generated

SITES = ("www", "api")
SERVICES = ("checkout", "search", "mailer")
PATHS = ("/", "/cart", "/search", "/item/7", "/item/1883", "/login")
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", 'curl/8.5 "quoted"', "-")
#: How often each kind comes.
CHANCES = {DUPLICATE: 0.02, LATE: 0.05, TOO_LATE: 0.01, BROKEN: 0.02}
#: One service has a bad time in every fourth minute.
SICK, SICK_EVERY_S = "checkout", 240
#: By the parameters of the pipeline that name them.
TOPICS = {"web": "weblogs", "services": "servicelogs"}


@dataclass(frozen=True)
class Line:
    """The facts of one line. Web servers write whole seconds, and so do all of these."""

    kind: str
    arrived_ms: int
    at_s: int
    service: str
    #: None for services, which do not know who asked.
    client: str | None
    path: str
    status: int
    size: int
    latency_ms: int

    @property
    def is_error(self) -> bool:
        return self.status >= 500

    @property
    def counts(self) -> bool:
        return self.kind not in {DUPLICATE, TOO_LATE, BROKEN}


def generate(
    count: int, seed: int, *, start_ms: int, per_s: float, topics: Mapping[str, str]
) -> Iterator[tuple[str, Generated]]:
    """Records with their kinds."""
    for line in make_lines(count, seed, start_ms=start_ms, per_s=per_s):
        yield line.kind, render(line, topics)


def make_lines(
    count: int, seed: int, *, start_ms: int, per_s: float = 50.0, lateness_s: int = 30, closes: bool = False
) -> Iterator[Line]:
    """So many lines. The last one can come half an hour after the others: it closes every window and session."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    recent: list[Line] = []
    for number in range(count - closes):
        arrived_ms = start_ms + int(number * 1000 / per_s)
        kind = _choose_kind(chance)
        if kind == DUPLICATE and recent:
            yield replace(chance.choice(recent), kind=DUPLICATE, arrived_ms=arrived_ms)
            continue
        line = _make_line(chance, "" if kind == DUPLICATE else kind, arrived_ms, lateness_s, number)
        if line.counts:
            recent = [*recent[-20:], line]
        yield line
    if closes:
        last_ms = start_ms + int(count * 1000 / per_s) + 1_800_000
        yield Line("", last_ms, last_ms // 1000, "www", "10.0.0.1", "/closing", 200, count, 1)


def render(line: Line, topics: Mapping[str, str]) -> Generated:
    if line.service in SITES:
        return Generated(topics["web"], line.service.encode(), _web_line(line).encode(), line.arrived_ms)
    return Generated(topics["services"], line.service.encode(), _service_line(line).encode(), line.arrived_ms)


@dataclass
class Window:
    requests: int = 0
    errors: int = 0
    latencies_ms: list[int] = field(default_factory=list)

    def percentile_ms(self, part: float) -> int:
        """The smallest latency that `part` of all are not above."""
        return sorted(self.latencies_ms)[max(0, math.ceil(part * len(self.latencies_ms)) - 1)]


@dataclass
class Expected:
    produced: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: By service and the second in which the window begins.
    windows: dict[tuple[str, int], Window] = field(default_factory=lambda: defaultdict(Window))
    #: Requests of each client, by service and window.
    talkers: dict[tuple[str, int], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: Client, first and last second, and how many requests; those that are over.
    sessions: set[tuple[str, int, int, int]] = field(default_factory=set)
    #: What ended by this second is over.
    watermark_s: int = 0
    window_s: int = 0

    @property
    def parsed(self) -> int:
        return self.produced - self.kinds[BROKEN]

    def alerts(self, min_requests: int, min_error_rate: float) -> set[tuple[str, int]]:
        """Service and window; of windows that are over."""
        return {
            key
            for key, window in self.windows.items()
            if window.requests >= min_requests and window.errors / window.requests >= min_error_rate
            if key[1] + self.window_s <= self.watermark_s
        }


def expect(
    lines: Iterable[Line], *, window_s: int = 10, session_gap_s: int = 60, watermark_delay_s: int = 60
) -> Expected:
    expected = Expected(window_s=window_s)
    newest_s = 0
    visits: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        expected.produced += 1
        expected.kinds[line.kind] += 1
        if not line.counts:
            continue
        newest_s = max(newest_s, line.at_s)
        start = line.at_s - line.at_s % window_s
        window = expected.windows[line.service, start]
        window.requests += 1
        window.errors += line.is_error
        window.latencies_ms.append(line.latency_ms)
        if line.client is not None:
            expected.talkers[line.service, start][line.client] += 1
            visits[line.client].append(line.at_s)
    expected.watermark_s = newest_s - watermark_delay_s
    for client, seconds in visits.items():
        for first, last, count in _sessions(sorted(seconds), session_gap_s):
            if last + session_gap_s <= expected.watermark_s:
                expected.sessions.add((client, first, last, count))
    return expected


def _sessions(seconds: list[int], gap_s: int) -> Iterator[tuple[int, int, int]]:
    """First and last second, and how many, of each run without a gap."""
    first, count = seconds[0], 1
    for earlier, later in itertools.pairwise(seconds):
        if later - earlier > gap_s:
            yield first, earlier, count
            first, count = later, 0
        count += 1
    yield first, seconds[-1], count


def _choose_kind(chance: random.Random) -> str:
    draw = chance.random()
    for kind, share in CHANCES.items():
        if draw < share:
            return kind
        draw -= share
    return ""


def _make_line(chance: random.Random, kind: str, arrived_ms: int, lateness_s: int, number: int) -> Line:
    ages_s = {LATE: (3, lateness_s - 2), TOO_LATE: (lateness_s + 60, lateness_s + 600)}
    at_s = arrived_ms // 1000 - chance.randint(*ages_s.get(kind, (0, 2)))
    service = chance.choice(SITES + SERVICES)
    is_sick = service == SICK and at_s % SICK_EVERY_S < SICK_EVERY_S // 4
    status = 503 if chance.random() < (0.4 if is_sick else 0.02) else chance.choice((200, 200, 200, 304, 404))
    latency_ms = min(int(chance.lognormvariate(3.5, 0.8)), 9000) + (400 if is_sick else 0)
    # A few clients talk much, most little.
    client = f"10.0.0.{min(int(chance.expovariate(0.3)), 250)}" if service in SITES else None
    # The size is the line's number: no two lines are the same by accident.
    return Line(kind, arrived_ms, at_s, service, client, chance.choice(PATHS), status, number, latency_ms)


def _web_line(line: Line) -> str:
    """The combined log format, and how long it took, which most people add to it."""
    moment = datetime.fromtimestamp(line.at_s, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    agent = AGENTS[line.size % len(AGENTS)].replace('"', '\\"')
    text = (
        f'{line.client} - - [{moment}] "GET {line.path} HTTP/1.1" {line.status} {line.size} "-" "{agent}"'
        f" {line.latency_ms / 1000:.3f}"
    )
    return text if line.kind != BROKEN else text[: 20 + line.size % 30]


def _service_line(line: Line) -> str:
    facts = {
        "time": datetime.fromtimestamp(line.at_s, UTC).isoformat(),
        "service": line.service,
        "level": "ERROR" if line.is_error else "INFO",
        "status": line.status,
        "duration_ms": line.latency_ms,
        "request": line.size,
        "message": f"{line.path} answered",
    }
    if line.kind != BROKEN:
        return json.dumps(facts)
    # Cut off in the middle, or with a time that is none.
    return json.dumps(facts)[: 10 + line.size % 40] if line.size % 2 else json.dumps(facts | {"time": "yesterday"})
