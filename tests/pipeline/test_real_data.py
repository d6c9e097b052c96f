"""Pipelines over data of real shapes, while broker and driver are killed with -9: what comes out is exact all the same.

Four sources, each with its dead letters, go to four kinds of sinks: hours that are closed by a watermark to Parquet,
rows to Postgres, changing results to a topic, and a league table that is merged into Delta. What they must hold is
worked out in plain Python. `ZURAU_KILL_ROUNDS` sets how often everything is killed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from broker_process import ZurauBroker
from checkpoints import wait_for_mid_batch
from drivers import PATIENCE_S, SMALL_JAVA, Driver, insist
from real_shapes import (
    Line,
    access_lines,
    block_histories,
    facts,
    failed_logins,
    hdfs_lines,
    match_lines,
    ssh_lines,
    standings,
)

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.inference.logs import LOGS
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer

# Each start of a driver takes its time, in which the other tests go on.
pytestmark = [pytest.mark.xdist_group("spark-drivers"), pytest.mark.timeout(1500)]

SINKS = ("logins", "requests", "blocks", "league")
ROUNDS = int(os.environ.get("ZURAU_KILL_ROUNDS", "2"))
#: New lines of each kind before each start: several batches for every sink.
EACH = 300

PIPELINE = """
name = "real"
checkpoint = "<<directory>>/checkpoint"
[trigger]
available_now = true
[spark]
<<small java>>

[sources.ssh]
topics = ["ssh"]
format = "regex"
pattern = '''<<syslog>>'''
time_format = "syslog"
schema = "time TIMESTAMP, pid INT"
watermark = { column = "time", delay = "2 hours" }
dead_letter = "dead"
options = { maxOffsetsPerTrigger = 60 }

[sources.access]
topics = ["access"]
format = "regex"
pattern = '''<<access log of Apache or nginx>>'''
time_format = "apache"
schema = "time TIMESTAMP, status INT"
dead_letter = "dead"
options = { maxOffsetsPerTrigger = 60 }

[sources.hdfs]
topics = ["hdfs"]
format = "regex"
pattern = '''<<log of HDFS>>'''
time_format = "hdfs"
schema = "time TIMESTAMP, thread INT"
dead_letter = "dead"
options = { maxOffsetsPerTrigger = 60 }

[sources.matches]
topics = ["matches"]
format = "csv"
schema = \"\"\"
day DATE NOT NULL, home STRING NOT NULL, away STRING NOT NULL, home_goals INT NOT NULL, away_goals INT NOT NULL,
tournament STRING, neutral BOOLEAN
\"\"\"
dead_letter = "dead"
options = { maxOffsetsPerTrigger = 60 }

[steps.attempts]
sql = '''
SELECT time,
       regexp_extract(line, r'Failed password for (?:invalid user )?(.*) from \\S+ port \\d+ ssh2', 1) AS person,
       regexp_extract(line, r'Failed password for .* from (\\S+) port \\d+ ssh2', 1) AS address,
       coalesce(try_cast(regexp_extract(line, r'^message repeated (\\d+) times: ', 1) AS INT), 1) AS times
FROM ssh WHERE line LIKE '%Failed password for%'
'''

[steps.logins]
sql = '''
SELECT window.start AS hour, address, sum(times) AS times, array_sort(collect_set(person)) AS people
FROM attempts GROUP BY window(time, '1 hour'), address
'''

[steps.requests]
sql = "SELECT time, client, method, path, status, try_cast(size AS BIGINT) AS size, agent FROM access"

[steps.named]
sql = '''
SELECT time, explode(regexp_extract_all(line, r'(blk_-?\\d+)', 1)) AS block,
       coalesce(try_cast(regexp_extract(line, r'^Received block \\S+ of size (\\d+) ', 1) AS BIGINT), 0) AS size
FROM hdfs
'''

[steps.blocks]
sql = "SELECT block, count(*) AS lines, sum(size) AS received, max(time) AS last FROM named GROUP BY block"

[steps.scores]
sql = '''
SELECT home AS team, home_goals AS scored, away_goals AS conceded FROM matches
UNION ALL SELECT away, away_goals, home_goals FROM matches
'''

[steps.league]
sql = '''
SELECT team, count(*) AS played, sum(scored) AS goals,
       sum(CASE WHEN scored > conceded THEN 3 WHEN scored = conceded THEN 1 ELSE 0 END) AS points
FROM scores GROUP BY team
'''

[sinks.logins]
from = "logins"
kind = "parquet"
path = "<<directory>>/logins"

[sinks.requests]
from = "requests"
kind = "postgres"
dsn = "<<dsn>>"
table = "requests"

[sinks.blocks]
from = "blocks"
kind = "topic"
topic = "blocks"
key = "block"
mode = "update"

[sinks.league]
from = "league"
kind = "delta"
path = "<<directory>>/league"
key = ["team"]
mode = "update"
"""

COUNT = ROUNDS * EACH
SSH, ACCESS = list(ssh_lines(COUNT, seed=1)), list(access_lines(COUNT, seed=2))
HDFS, MATCHES = list(hdfs_lines(COUNT, seed=3)), list(match_lines(COUNT, seed=4))
TOPICS: dict[str, list[Line]] = {"ssh": SSH, "access": ACCESS, "hdfs": HDFS, "matches": MATCHES}


def produce(bootstrap: str, part: slice) -> None:
    with Cluster(bootstrap) as cluster, Producer(cluster) as producer:
        for topic, lines in TOPICS.items():
            for number, line in enumerate(lines[part]):
                at_ms = int(line.arrived.timestamp() * 1000)
                producer.send(topic, line.value, partition=number % 2, timestamp_ms=at_ms)


@pytest.fixture(scope="module")
def survived(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Where the results are, and the broker that has the rest, after all kills."""
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")
    directory = tmp_path_factory.mktemp("real")
    words = {
        "directory": str(directory),
        "dsn": postgres,
        "small java": SMALL_JAVA,
        **{kind.what: kind.pattern for kind in LOGS},
    }
    text = PIPELINE
    for name, word in words.items():
        text = text.replace(f"<<{name}>>", word)
    file = directory / "real.toml"
    file.write_text(text)

    with ZurauBroker(directory / "broker", retention_ms=-1) as broker:

        def start_and_kill_all(sink: str) -> None:
            driver = Driver(file, broker.bootstrap)
            for victim in (broker, driver):
                wait_for_mid_batch(directory / "checkpoint" / sink, PATIENCE_S, driver.check_alive)
                victim.kill()
                broker.start() if victim is broker else None

        with Cluster(broker.bootstrap) as cluster:
            for topic in (*TOPICS, "dead", "blocks"):
                Admin(cluster).create_topic(NewTopic(topic, 2))
        for number in range(ROUNDS):
            produce(broker.bootstrap, slice(number * EACH, (number + 1) * EACH))
            insist(partial(start_and_kill_all, SINKS[number % len(SINKS)]))
        insist(lambda: Driver(file, broker.bootstrap).finish())
        yield directory, broker.bootstrap


def test_hours_of_an_ssh_log_are_counted_once_as_the_watermark_closes_them(survived):
    import pyarrow.parquet as pq

    rows = pq.read_table(survived[0] / "logins").to_pylist()
    found = Counter((row["hour"], row["address"]) for row in rows)
    assert set(found.values()) == {1}
    last = max(line.fact.hour for line in SSH if line.fact)
    expected = failed_logins(SSH)
    counted = {(row["hour"], row["address"]): (row["times"], row["people"]) for row in rows}
    assert counted == {key: expected[key] for key in counted}
    # What the watermark has not passed yet is still open; nothing else is missing.
    assert {hour for hour, _ in expected.keys() - counted.keys()} <= {last - timedelta(hours=past) for past in range(4)}
    assert len(counted) > len(expected) / 2


def test_requests_of_an_access_log_are_in_postgres_once(survived, postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        rows = connection.execute("SELECT time, client, method, path, status, size, agent FROM requests").fetchall()
    assert Counter(rows) == Counter(tuple(fact) for fact in facts(ACCESS))


def test_what_became_of_each_block_of_hdfs_is_in_the_newest_record_of_its_key(survived, contents):
    newest = {record.key.decode(): json.loads(record.value) for _, record in contents("blocks", survived[1])}
    assert {
        block: (row["lines"], row["received"], datetime.fromisoformat(row["last"])) for block, row in newest.items()
    } == block_histories(HDFS)


def test_a_league_table_of_matches_is_merged_exactly(survived):
    from deltalake import DeltaTable

    rows = DeltaTable(str(survived[0] / "league")).to_pyarrow_table().to_pylist()
    assert {row["team"]: (row["played"], row["goals"], row["points"]) for row in rows} == standings(MATCHES)
    assert len(rows) == len(standings(MATCHES))


def test_every_line_that_tells_nothing_is_a_dead_letter(survived, contents):
    letters = {
        (headers["zurau.topic"], headers["zurau.partition"], headers["zurau.offset"], record.value)
        for _, record in contents("dead", survived[1])
        for headers in [{name: value.decode() for name, value in record.headers if value is not None}]
    }
    assert Counter((topic, value) for topic, _, _, value in letters) == Counter(
        (topic, line.value) for topic, lines in TOPICS.items() for line in lines if line.fact is None
    )
