"""Data as the world has it: lines of OpenSSH, Apache and HDFS, and results of football matches, with all their quirks.

The data sets with which pipelines were first tried are other people's; these are of the same shapes. A line comes with
the fact that it tells, or without one if nothing can be made of it, so that what a pipeline has to say is worked out
here in plain Python, from facts alone.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Generic, NamedTuple, TypeVar

Fact = TypeVar("Fact")


class Line(NamedTuple, Generic[Fact]):
    value: bytes
    #: When it reached the topic.
    arrived: datetime
    fact: Fact | None


class Attempt(NamedTuple):
    """A login that failed, or something else that sshd says: then without an address."""

    hour: datetime
    address: str | None
    person: str
    times: int


class Request(NamedTuple):
    time: datetime
    client: str
    method: str
    path: str
    status: int
    size: int | None
    agent: str


class BlockEvent(NamedTuple):
    time: datetime
    blocks: tuple[str, ...]
    received_bytes: int


class Match(NamedTuple):
    home: str
    away: str
    home_goals: int
    away_goals: int


# Around the turn of a year, since syslog does not say which one it is.
NEW_YEAR = datetime(2025, 12, 31, 12, tzinfo=UTC)
ADDRESSES = ("203.0.113.7", "198.51.100.23", "2001:db8::17", "192.0.2.200")
PEOPLE = ("root", "admin", "ubnt", "", "a b", "from", "0101", "müller")


def ssh_lines(count: int, seed: int) -> Iterator[Line[Attempt]]:
    """A line every few minutes for some days. Days below ten have a space in front, and repeated lines are folded."""
    chance = random.Random(seed)
    time = NEW_YEAR
    for _ in range(count):
        time += timedelta(seconds=chance.randint(1, 400))
        address, person, port = chance.choice(ADDRESSES), chance.choice(PEOPLE), chance.randint(1024, 65535)
        known = "" if person == "root" else "invalid user "
        failed = f"Failed password for {known}{person} from {address} port {port} ssh2"
        times = chance.randint(2, 5)
        hour = time.replace(minute=0, second=0)
        said, fact = chance.choices(
            [
                (failed, Attempt(hour, address, person, 1)),
                (f"message repeated {times} times: [ {failed}]", Attempt(hour, address, person, times)),
                ("pam_unix(sshd:auth): check pass; user unknown", Attempt(hour, None, "", 1)),
                (f"Received disconnect from {address}: 11: Bye Bye [preauth]", Attempt(hour, None, "", 1)),
                (None, None),
            ],
            [60, 10, 10, 10, 5],
        )[0]
        stamp = f"{time:%b} {time.day:2d} {time:%H:%M:%S}"
        head = f"{stamp} gate sshd[{chance.randint(100, 32000)}]: "
        text = head + said if said else head[: chance.randint(0, 14)]
        yield Line(text.encode(), time + timedelta(seconds=chance.randint(0, 5)), fact)


def failed_logins(lines: Iterable[Line[Attempt]]) -> dict[tuple[datetime, str], tuple[int, list[str]]]:
    """Of each hour and address: how often, and as whom."""
    times: defaultdict[tuple[datetime, str], int] = defaultdict(int)
    people: defaultdict[tuple[datetime, str], set[str]] = defaultdict(set)
    for fact in facts(lines):
        if fact.address is not None:
            times[fact.hour, fact.address] += fact.times
            people[fact.hour, fact.address].add(fact.person)
    return {key: (count, sorted(people[key])) for key, count in times.items()}


PATHS = ("/", "/images/web/2009/banner.png", "/blog/tags/puppet?flav=rss20", "/%7Ejo/a%20b", "/?q=[x]&r=%22")
AGENTS = (
    "-",
    "Mozilla/5.0 (X11; Linux x86_64)",
    r"say \"friend\" (1.0)",
    r"back\\slash",
    "UniversalFeedParser/4.2-pre-314",
)
#: What clients send that do not speak HTTP, as Apache writes it down.
NOT_HTTP = (r"\x16\x03\x01\x02", "-", r"\n", "")


def access_lines(count: int, seed: int) -> Iterator[Line[Request]]:
    """The combined format, in two time zones; sizes that are not there, quotes within quotes, and no HTTP at all."""
    chance = random.Random(seed)
    time = datetime(2025, 5, 17, 10, 5, tzinfo=UTC)
    for _ in range(count):
        time += timedelta(seconds=chance.randint(0, 20))
        zone = chance.choice((UTC, timezone(timedelta(hours=2))))
        request = Request(
            time,
            chance.choice(ADDRESSES),
            chance.choice(("GET", "HEAD", "POST", "PROPFIND")),
            chance.choice(PATHS),
            chance.choice((200, 200, 200, 206, 304, 404, 500)),
            chance.choice((None, 0, 3638, 2_500_000_000)),
            chance.choice(AGENTS),
        )
        is_http = chance.random() > 0.04
        asked = f"{request.method} {request.path} HTTP/1.1" if is_http else chance.choice(NOT_HTTP)
        size = "-" if request.size is None else request.size
        text = (
            f'{request.client} - - [{time.astimezone(zone):%d/%b/%Y:%H:%M:%S %z}] "{asked}" {request.status} {size}'
            f' "-" "{request.agent}"'
        )
        yield Line(text.encode(), time, request if is_http else None)


def hdfs_lines(count: int, seed: int) -> Iterator[Line[BlockEvent]]:
    """Blocks are written, copied and deleted, many in one line; and Java puts stack traces in between."""
    chance = random.Random(seed)
    time = datetime(2008, 11, 9, 20, 35, 18, tzinfo=UTC)
    blocks = [f"blk_{chance.randint(-(2**63), 2**63 - 1)}" for _ in range(40)]
    for _ in range(count):
        time += timedelta(seconds=chance.randint(0, 9))
        block, some = chance.choice(blocks), tuple(chance.sample(blocks, chance.randint(2, 6)))
        size = chance.randint(1, 67_108_864)
        node, other = (f"10.250.{chance.randint(0, 99)}.{chance.randint(1, 254)}" for _ in range(2))
        component, said, fact = chance.choice(
            [
                (
                    "dfs.DataNode$DataXceiver",
                    f"Receiving block {block} src: /{node}:54106 dest: /{other}:50010",
                    BlockEvent(time, (block,), 0),
                ),
                (
                    "dfs.DataNode$PacketResponder",
                    f"Received block {block} of size {size} from /{node}",
                    BlockEvent(time, (block,), size),
                ),
                ("dfs.FSNamesystem", f"BLOCK* ask {node}:50010 to delete {' '.join(some)}", BlockEvent(time, some, 0)),
            ]
        )
        if chance.random() < 0.05:
            text, fact = "\tat org.apache.hadoop.dfs.DataNode$DataXceiver.run(DataNode.java:763)", None
        else:
            text = f"{time:%y%m%d %H%M%S} {chance.randint(1, 9999)} INFO {component}: {said}"
        yield Line(text.encode(), time, fact)


def block_histories(lines: Iterable[Line[BlockEvent]]) -> dict[str, tuple[int, int, datetime]]:
    """Of each block: in how many lines it is, how much of it was received, and when it was heard of last."""
    found: dict[str, tuple[int, int, datetime]] = {}
    for fact in facts(lines):
        for block in fact.blocks:
            count, size, last = found.get(block, (0, 0, fact.time))
            found[block] = (count + 1, size + fact.received_bytes, max(last, fact.time))
    return found


TEAMS = ("Schottland", "England", "Curaçao", "Côte d'Ivoire", "Korea, Republic of", 'The "Old" Boys', "Türkiye")


def match_lines(count: int, seed: int) -> Iterator[Line[Match]]:
    """A file of results as CSV: its first line names the columns, texts may be quoted, and some scores are missing."""
    chance = random.Random(seed)
    day = datetime(1872, 11, 30, tzinfo=UTC)
    yield Line(b"date,home_team,away_team,home_score,away_score,tournament,neutral", day, None)
    for _ in range(count - 1):
        day += timedelta(days=chance.randint(0, 3))
        home, away = chance.sample(TEAMS, 2)
        match = Match(home, away, chance.randint(0, 5), chance.randint(0, 5))
        is_played = chance.random() > 0.04
        scores = (match.home_goals, match.away_goals) if is_played else ("NA", "NA")
        columns = (f"{day:%Y-%m-%d}", home, away, *scores, "Friendly, amateur", chance.choice(("TRUE", "FALSE")))
        yield Line(",".join(map(_quoted, columns)).encode(), NEW_YEAR, match if is_played else None)


def standings(lines: Iterable[Line[Match]]) -> dict[str, tuple[int, int, int]]:
    """Of each team: matches, goals and points."""
    table: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for fact in facts(lines):
        for team, scored, conceded in (
            (fact.home, fact.home_goals, fact.away_goals),
            (fact.away, fact.away_goals, fact.home_goals),
        ):
            points = 3 if scored > conceded else 1 if scored == conceded else 0
            table[team] = [old + new for old, new in zip(table[team], (1, scored, points), strict=True)]
    return {team: (played, goals, points) for team, (played, goals, points) in table.items()}


def facts(lines: Iterable[Line[Fact]]) -> Iterator[Fact]:
    return (line.fact for line in lines if line.fact is not None)


def _quoted(column: Any) -> str:
    text = str(column)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text
